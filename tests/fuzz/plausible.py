"""Arguments made from a tool's own schema: plausible ones, wrong ones, hostile ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

HOSTILE = (
    "../pve2",
    "..",
    "/",
    "a/b",
    "a?b=c",
    "a#b",
    "a%2fb",
    "%00",
    "a\r\nX-Y: z",
    "a\x00b",
    "-rf",
    "--help",
    "$(id)",
    "`id`",
    "a;id",
    "a b",
    "",
    " ",
    "\u202eevil",
    "p\u0443e1",
    "\ud800",
    "x" * 5000,
    "{}",
    "null",
    "local:../../etc/shadow",
    "tank@-x",
    "tank/../x",
    "@",
    "UPID:",
    "null\n",
)
# what a model that has read some lists would say; the names are those of the served cluster
SENSIBLE: dict[str, tuple[Any, ...]] = {
    "node": ("pve1", "pve2", "PVE1", "pve9"),
    "target_node": ("pve1", "pve2"),
    "vmid": (100, 101, 102, 103, 999),
    "newid": (4711, 100),
    "storage": ("local", "local-lvm", "local-zfs", "nas", "nope"),
    "disk_storage": ("local-lvm", "local-zfs", "nas"),
    "target_storage": ("local-lvm", "local-zfs", "nas"),
    "snapname": ("before", "nightly", "current"),
    "disk": ("scsi0", "rootfs", "/dev/sda", "sdb"),
    "device": ("/dev/sdb", "/dev/sdc"),
    "name": ("tank", "web", "rpool/data", "data"),
    "pool": ("tank", "rpool"),
    "dataset": ("tank", "rpool/data", "tank/data@a"),
    "source": ("tank/data@a",),
    "archive": ("nas:backup/vzdump-qemu-100-2026_03_01-02_00_00.vma.zst", "local:backup/vzdump-lxc-103-2026_03_01-02_00_00.tar.zst"),
    "ostemplate": ("local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst",),
    "iso": ("local:iso/debian-13.iso",),
    "command": ("uptime", "cat /etc/os-release", "rm -rf /tmp/x"),
    "alias": ("web",),
    "path": ("/var/log/syslog", "/mnt/x"),
    "upid": ("UPID:pve1:0000A1B2:00C0FFEE:69A4B000:vzdump:101:root@pam!mcp:",),
    "ip": ("dhcp", "10.0.0.5/24"),
    "gateway": ("10.0.0.1",),
    "fields": (["vmid"], ["name", "node"], ["nope"]),
    "devices": (["/dev/sdb"], ["/dev/sdb", "/dev/sdc"]),
    "properties": ({"compression": "lz4"}, {"x y": "z"}),
    "service": ("nginx", "ssh.service"),
    "nodes": ("pve1,pve2",),
    "content": ("images,rootdir", "iso"),
}
_ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.integers(), max_size=2))


def value(name: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A value of one argument: mostly plausible, else of the right type, else anything."""
    kinds: list[st.SearchStrategy[Any]] = [st.sampled_from(SENSIBLE[name])] * 3 if name in SENSIBLE else []
    if "enum" in schema:
        kinds += [st.sampled_from(schema["enum"])] * 3
    kind = schema.get("type")
    if kind == "boolean":
        kinds += [st.booleans()] * 3
    elif kind in ("integer", "number"):
        kinds += [st.integers(0, 300), st.integers()]
    elif kind == "string":
        kinds += [st.sampled_from(HOSTILE), st.text(max_size=40)]
    elif kind == "array":
        kinds += [st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=10)), max_size=3)]
    elif kind == "object":
        kinds += [st.dictionaries(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE), max_size=2)]
    return st.one_of(*kinds, _ANYTHING) if kinds else _ANYTHING


def arguments(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a whole call: each optional argument there or not, now and then one that nobody knows."""
    properties = schema["properties"]
    required = {name: value(name, properties[name]) for name in schema.get("required", ())}
    optional = {name: value(name, spec) for name, spec in properties.items() if name not in required}
    known = st.fixed_dictionaries(required, optional=optional)
    stray = st.dictionaries(st.sampled_from(["vm_id", "dryrun", "x"]), st.booleans(), max_size=1)
    return st.one_of(known, known, known, st.builds(lambda a, b: {**a, **b}, known, stray))
