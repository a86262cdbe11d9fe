"""A small model of a node's zfs and zpool, with their own words and exit statuses; standard library only, so that it runs as a program too.

    node = Node.sample()
    status, out, err = node.run(["zfs", "destroy", "-r", "tank/busy"])

As a program it keeps its state in a file: `python node.py STATE zfs list -Hp ...`. Datasets, snapshots and texts are those of the host that
host/FACTS.md was recorded on.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

CREATED = 1796088676
USAGE = "usage:\n\tlist [-Hp] ...\n\nFor the property list, run: zfs set|get\n"
HEALTHY = """  pool: {name}
 state: ONLINE
  scan: {scan}
config:

\tNAME                        STATE     READ WRITE CKSUM
\t{name}                        ONLINE       0     0     0
\t  mirror-0                  ONLINE       0     0     0
\t    wwn-0x5000c50000000a00  ONLINE       0     0     0
\t    wwn-0x5000c50000000a01  ONLINE       0     0     0

errors: No known data errors
"""


@dataclass
class Node:
    """`busy`: datasets that something has open. `fail`: "zfs send" -> (status, stderr) for the next commands of that kind."""

    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    snapshots: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    busy: list[str] = field(default_factory=list)
    fail: dict[str, list[Any]] = field(default_factory=dict)
    json_status: bool = False
    now: int = CREATED + 100_000
    made: int = 1000

    @classmethod
    def sample(cls) -> Node:
        node = cls()
        node.pools = {"tank": {"health": "ONLINE", "scan": "none requested"}}
        for name in ("tank", "tank/data", "tank/backup", "tank/share", "tank/data/with space", "tank/busy", "tank/busy/kid"):
            node.add(name)
        node.add("tank/data/subvol-101-disk-0")
        node.add("tank/data/vm-200-disk-0", type="volume")
        for part in ("before", "autosnap_2025-11-30_00:00:01_daily", "autosnap_2025-12-01_00:00:01_daily", "manual-1"):
            node.snap(f"tank/data@{part}")
        for part in ("manual-1", "clonesrc", "held"):
            node.snap(f"tank/share@{part}")
        for name in ("tank/busy@s1", "tank/busy/kid@s1", "tank/data/subvol-101-disk-0@vzdump", "tank/data/subvol-101-disk-0@manual-1"):
            node.snap(name)
        node.snapshots["tank/share@held"]["holds"] = ["keep"]
        node.add("tank/share-clone", origin="tank/share@clonesrc")
        return node

    def add(self, name: str, **more: Any) -> None:
        self.made += 1
        volume = more.get("type") == "volume"
        place = {"mounted": "-", "mountpoint": "-"} if volume else {"mounted": "yes", "mountpoint": f"/{name}"}
        known = {"type": "filesystem", "guid": str(self.made * 7919), "creation": CREATED + self.made, "used": 98304, "local": {}}
        self.datasets[name] = {**known, **place, "origin": "-", **more}

    def snap(self, name: str, **more: Any) -> None:
        self.made += 1
        known = {"guid": str(self.made * 7919), "creation": CREATED + self.made, "used": 0, "holds": [], "deferred": "off"}
        self.snapshots[name] = {**known, **more}

    # --- commands

    def run(self, argv: list[str], stdin: bytes = b"") -> tuple[int, str, str]:
        for words, answer in list(self.fail.items()):
            if fnmatch.fnmatch(" ".join(argv), words):
                return answer[0], "", answer[1]
        if argv[0] == "date":
            return 0, f"{self.now}\n", ""
        handler = getattr(self, f"_{argv[0]}_{argv[1]}".replace("-", "_"), None)
        if handler is None:
            return 2, "", f"unrecognized command '{argv[1]}'\n{USAGE}"
        if argv[0] == "zfs":
            for word in argv[2:]:
                pool = word.split("/")[0].split("@")[0]
                if self.pools.get(pool, {}).get("health") == "SUSPENDED":
                    return 1, "", f"cannot open '{word}': pool I/O is currently suspended\n"
        result: tuple[int, str, str] = handler(argv[2:], stdin)
        return result

    def _zpool_list(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        columns = args[args.index("-o") + 1].split(",")
        known = {"size": "5905580032", "allocated": "282308608", "free": "5623271424", "fragmentation": "0", "capacity": "4"}
        rows = [{"name": name, "health": pool["health"], **known} for name, pool in sorted(self.pools.items())]
        return 0, "".join("\t".join(row[c] for c in columns) + "\n" for row in rows), ""

    def _zpool_status(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        names = [arg for arg in args if not arg.startswith("-")] or sorted(self.pools)
        if "-j" in args and not self.json_status:
            return 2, "", "invalid option 'j'\nusage:\n\tstatus [-DegiLpPstvx] ...\n"
        if missing := [name for name in names if name not in self.pools]:
            return 1, "", f"cannot open '{missing[0]}': no such pool\n"
        if "-j" in args:
            pools = {name: {"name": name, "state": self.pools[name]["health"], "vdevs": {}, "error_count": 0} for name in names}
            return 0, json.dumps({"pools": pools}), ""
        if "-x" in args and all("status" not in self.pools[name] for name in names):
            return 0, f"pool '{names[0]}' is healthy\n", ""
        return 0, "\n".join(self.pools[name].get("status") or HEALTHY.format(name=name, **self.pools[name]) for name in names), ""

    def _zpool_scrub(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        pool = self.pools[args[-1]]
        running = "in progress" in pool["scan"]
        if "-s" in args:
            if not running:
                return 1, "", f"cannot cancel scrubbing {args[-1]}: there is no active scrub\n"
            pool["scan"] = "scrub canceled on Tue Dec  1 01:37:01 2026"
            return 0, "", ""
        if running:
            return 1, "", f"cannot scrub {args[-1]}: currently scrubbing; use 'zpool scrub -s' to cancel scrub\n"
        pool["scan"] = "scrub in progress since Tue Dec  1 01:37:00 2026\n\t269M / 269M scanned\n\t0B repaired, 11.47% done, 00:00:07 to go"
        return 0, "", ""

    def _zfs_list(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        columns, kinds, deepest, names = [], ["filesystem", "volume"], None, []
        words = iter(args)
        for word in words:
            if word == "-o":
                columns = next(words).split(",")
            elif word == "-t":
                kinds = next(words).split(",")
            elif word == "-r":
                deepest = 99
            elif word == "-d":
                deepest = int(next(words))
            elif not word.startswith("-"):
                names.append(word)
        for name in names:
            if name not in self.datasets and name not in self.snapshots:
                return 1, "", f"cannot open '{name}': dataset does not exist\n"
        deepest = (0 if names else 99) if deepest is None else deepest
        if kinds == ["snapshot"] and "-d" not in args and "-r" not in args:
            deepest = 1 if names else 99
        rows = [row for row in self._rows() if row["type"] in kinds and self._wanted(row["name"], names, deepest)]
        return 0, "".join("\t".join(str(row.get(c, "-")) for c in columns) + "\n" for row in rows), ""

    def _wanted(self, name: str, names: list[str], deepest: int) -> bool:
        if self.pools.get(name.split("/")[0].split("@")[0], {}).get("health") == "SUSPENDED":
            return False
        if not names:
            return True
        for top in names:
            rest = name.removeprefix(top)
            if name == top or (name.startswith(top) and rest[0] in "/@" and rest.count("/") + rest.count("@") <= deepest):
                return True
        return False

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for name, d in sorted(self.datasets.items()):
            rows.append({"name": name, "available": 5438730240, "referenced": 98304, "compressratio": "1.00", **d})
            for snapshot, s in self.snapshots.items():
                if snapshot.startswith(f"{name}@"):
                    clones = ",".join(clone for clone, d in sorted(self.datasets.items()) if d["origin"] == snapshot)
                    told = {"userrefs": len(s["holds"]), "clones": clones, "defer_destroy": s["deferred"], "referenced": 98304}
                    rows.append({"name": snapshot, "type": "snapshot", **s, **told})
        return rows

    def _zfs_holds(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        names = [arg for arg in args if not arg.startswith("-")]
        return 0, "".join(f"{name}\t{tag}\tTue Dec  1 01:32 2026\n" for name in names for tag in self.snapshots[name]["holds"]), ""

    def _zfs_get(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        wanted, name = args[-2:]
        if name not in self.datasets and name not in self.snapshots:
            return 1, "", f"cannot open '{name}': dataset does not exist\n"
        local = self.datasets.get(name, {}).get("local", {})
        known = {
            "quota": ("0", "default"),
            "compression": ("lz4", "inherited from tank"),
            "used": ("98304", "-"),
            "available": ("5438730240", "-"),
        }
        known |= {key: (value, "default") for key, value in (("readonly", "off"), ("exec", "on"), ("canmount", "on"))}
        known |= {"mountpoint": (self.datasets.get(name, {}).get("mountpoint", "-"), "default")}
        known |= {"keystatus": ("-", "-"), "receive_resume_token": ("-", "-"), "atime": ("on", "default")}
        known |= {key: (value, "local") for key, value in local.items()}
        chosen = list(known) if wanted == "all" else wanted.split(",")
        known |= {key: ("-", "-") for key in chosen if ":" in key and key not in known}
        if unknown := [key for key in chosen if key not in known]:
            return 2, "", f"bad property list: invalid property '{unknown[0]}'\n{USAGE}"
        return 0, "".join(f"{name}\t{key}\t{known[key][0]}\t{known[key][1]}\n" for key in chosen), ""

    def _zfs_set(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        key, _, value = args[0].partition("=")
        if key == "quota" and value == "1":
            return 255, "", f"cannot set property for '{args[1]}': size is less than current used or reserved space\n"
        self.datasets[args[1]]["local"][key] = value
        return 0, "", ""

    def _zfs_create(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        name = args[-1]
        if name in self.datasets:
            return 1, "", f"cannot create '{name}': dataset already exists\n"
        parents = [name.rsplit("/", n)[0] for n in range(1, name.count("/") + 1)]
        if parents[0] not in self.datasets and "-p" not in args:
            return 1, "", f"cannot create '{name}': parent does not exist\n"
        if "-n" not in args:
            for place in (*reversed(parents), name):
                if place not in self.datasets:
                    self.add(place, **({"type": "volume"} if "-V" in args and place == name else {}))
        return 0, "", ""

    def _zfs_snapshot(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        dataset, _, part = args[-1].partition("@")
        places = [name for name in self.datasets if name == dataset or ("-r" in args and name.startswith(f"{dataset}/"))]
        if taken := [name for name in places if f"{name}@{part}" in self.snapshots]:
            return 1, "", f"cannot create snapshot '{taken[0]}@{part}': dataset already exists\n"
        for name in places:
            self.snap(f"{name}@{part}")
        return 0, "", ""

    def _zfs_unmount(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        below = [name for name in self.datasets if name == args[0] or name.startswith(f"{args[0]}/")]
        if any(name in self.busy for name in below):
            return 1, "", f"cannot unmount '/{args[0]}': pool or dataset is busy\n"
        for name in below:
            self.datasets[name]["mounted"] = "no"
        return 0, "", ""

    def _zfs_destroy(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        name = args[-1]
        if "@" in name:
            return self._destroy_snapshots(name)
        if name not in self.datasets:
            return 1, "", f"cannot open '{name}': dataset does not exist\n"
        below = [other for other in self.datasets if other == name or other.startswith(f"{name}/")]
        gone = [snapshot for snapshot in self.snapshots if snapshot.split("@")[0] in below]
        if "-r" not in args and (len(below) > 1 or gone):
            return 1, "", f"cannot destroy '{name}': filesystem has children\nuse '-r' to destroy the following datasets:\n"
        if held := [snapshot for snapshot in gone if self.snapshots[snapshot]["holds"]]:
            return 1, "", f"cannot destroy snapshot {held[0]}: it's being held. Run 'zfs holds -r {held[0]}' to see holders.\n"
        # what really happens: children and all snapshots go first, and only then the busy one refuses
        for snapshot in gone:
            del self.snapshots[snapshot]
        for other in below[::-1]:
            if other in self.busy:
                return 1, "", f"cannot destroy '{name}': dataset is busy\n"
            del self.datasets[other]
        return 0, "", ""

    def _destroy_snapshots(self, word: str) -> tuple[int, str, str]:
        dataset, _, parts = word.partition("@")
        names = [f"{dataset}@{part}" for part in parts.split(",") if f"{dataset}@{part}" in self.snapshots]
        if not names:
            return 1, "", "could not find any snapshots to destroy; check snapshot names.\n"
        for name in names:
            if self.snapshots[name]["holds"]:
                return 1, "", f"cannot destroy snapshot {name}: it's being held. Run 'zfs holds -r {name}' to see holders.\n"
            if any(d["origin"] == name for d in self.datasets.values()):
                return 1, "", f"cannot destroy '{name}': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\n"
        for name in names:
            del self.snapshots[name]
        return 0, "", ""

    def _zfs_send(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        source = args[-1]
        if source not in self.snapshots:
            return 1, "", f"cannot open '{source}': dataset does not exist\n"
        if "-nvP" in args:
            return 0, f"full\t{source}\t48240\nsize\t48240\n", ""
        return 0, f"STREAM {source} {self.snapshots[source]['guid']}\n", f"full send of {source} estimated size is 47.1K\n"

    def _zfs_receive(self, args: list[str], stdin: bytes) -> tuple[int, str, str]:
        target = args[-1]
        if not stdin.startswith(b"STREAM "):
            return 1, "", "cannot receive: failed to read from stream\n"
        if target in self.datasets and "F" not in args[0]:
            return 1, "", f"cannot receive new filesystem stream: destination '{target}' exists\nmust specify -F to overwrite it\n"
        _, source, guid = stdin.decode().split()
        if target not in self.datasets:
            self.add(target, mounted="no")
        self.snap(f"{target}@{source.partition('@')[2]}", guid=guid)
        return 0, "", ""


def main(state: str, argv: list[str]) -> int:
    with open(state) as file:
        node = Node(**json.load(file))
    reads = argv[:2] == ["zfs", "receive"]
    status, out, err = node.run(argv, sys.stdin.buffer.read() if reads else b"")
    if argv[1] not in ("send", "list", "get", "status", "holds"):
        with open(state, "w") as file:
            json.dump(asdict(node), file)
    sys.stdout.write(out)
    sys.stderr.write(err)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
