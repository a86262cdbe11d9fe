"""`zpool status` as text and as JSON: the same verdict, nothing that is wrong left unsaid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.storages import zpools
from proxmox_mcp.zfs import pool_status
from proxmox_mcp.zfs.pool_status import Scan, from_json, from_text, scan_of
from tests.zfs import samples

FACTS = Path(__file__).parents[3] / "shared" / "host" / "FACTS.md"


def test_several_pools_in_one_answer() -> None:
    bulk, susp = from_text(samples.DEGRADED + "\n" + samples.SUSPENDED)
    assert zpools.findings(bulk) == ["state DEGRADED", "wwn-0x5000c50000000a03 OFFLINE"]
    assert bulk["action"] == "Online the device using 'zpool online' or replace the device with 'zpool replace'."
    # its device line says ONLINE, the state does not; 26.4K is a count of 1024s
    assert zpools.findings(susp) == [
        "state SUSPENDED",
        "data errors: 211 data errors, use '-v' for a list",
        "/dev/sdg1 ONLINE, read 3, write 27033.6",
    ]


def test_online_with_errors_is_not_healthy() -> None:
    (frag,) = from_text(samples.DAMAGED)
    assert frag["state"] == "ONLINE"
    assert frag["files"] == ["/frag/victim", "frag@a:/victim"]
    assert zpools.findings(frag)[:2] == ["data errors: 2 data errors", "/dev/sdg1 ONLINE, cksum 2"]


def test_g54_a_damaged_pool_with_wrapped_sentences() -> None:
    (tank,) = from_text(samples.FAULTED)
    assert tank["status"].startswith("One or more devices are faulted in response to persistent errors. Sufficient replicas")
    assert tank["status"].endswith("functioning in a degraded state.")
    assert zpools.findings(tank) == ["state DEGRADED", "sdb FAULTED, read 3, write 12, too many errors"]
    assert scan_of(tank) == Scan("resilver", "ended")


def test_groups_that_stand_in_for_a_disk_and_devices_beside_the_pool() -> None:
    (tank,) = from_text(samples.SPARES)
    places = {device.name: device.vdev for device in zpools.devices(tank) if device.name != "sdd"}
    assert places["sda"] == "spare-0"
    assert places["spare-0"] == "mirror-0"
    assert places["sdf"] == "replacing-0"
    assert places["nvme1n1"] == "cache"
    assert places["logs"] is None
    assert [str(device) for device in zpools.devices(tank) if device.bad and device.leaf] == [
        "sda UNAVAIL, read 4, write 44, was /dev/sda1"
    ]
    assert next(device.msg for device in zpools.devices(tank) if device.state == "INUSE") == "currently in use"
    assert scan_of(tank) == Scan("resilver", "running", 33.33)


@pytest.mark.parametrize(
    ("line", "scan"),
    [
        (None, Scan("none", "ended")),
        ("none requested", Scan("none", "ended")),
        ("scrub canceled on Tue Dec  1 01:37:01 2026", Scan("scrub", "ended")),
        ("scrub repaired 0B in 00:00:02 with 0 errors on Tue Dec  1 01:32:21 2026", Scan("scrub", "ended")),
        ("scrub paused since Tue Dec  1 01:37:00 2026 12.5% done", Scan("scrub", "paused", 12.5)),
        ("scrub in progress since Tue Dec  1 01:37:00 2026", Scan("scrub", "running")),
    ],
)
def test_scans(line: str | None, scan: Scan) -> None:
    assert scan_of({"scan": line}) == scan


def test_a_scrub_that_runs() -> None:
    assert scan_of(from_text(samples.SCRUBBING)[0]) == Scan("scrub", "running", 11.47)


def device(name: str, state: str = "ONLINE", **more: object) -> dict[str, object]:
    return {"name": name, "state": state, "read_errors": 0, "write_errors": 0, "checksum_errors": 0, **more}


def answer(**pool: object) -> str:
    known = {"name": "tank", "state": "ONLINE", "error_count": 0, "vdevs": {"tank": device("tank", vdevs={"sda": device("sda")})}}
    return json.dumps({"output_version": {"command": "zpool status"}, "pools": {"tank": {**known, **pool}}})


def test_json_gives_the_same_shape() -> None:
    vdevs = {
        "tank": device(
            "tank", "DEGRADED", vdevs={"raidz1-0": device("raidz1-0", "DEGRADED", vdevs={"sdb": device("sdb", "FAULTED", read_errors=3)})}
        )
    }
    text = answer(state="DEGRADED", vdevs=vdevs, status="One or more\n\tdevices", spares={"sdd": {"name": "sdd", "state": "AVAIL"}})
    (tank,) = from_json(text) or ()
    assert zpools.findings(tank) == ["state DEGRADED", "sdb FAULTED, read 3"]
    assert tank["status"] == "One or more devices"
    assert {d.name: d.vdev for d in zpools.devices(tank)}["sdd"] == "spares"


def test_json_names_damaged_files() -> None:
    (tank,) = from_json(answer(error_count=1, errlist=["/frag/victim"])) or ()
    assert zpools.findings(tank) == ["data errors: 1 data errors"]
    assert tank["files"] == ["/frag/victim"]
    assert from_json(answer())[0]["errors"] == "No known data errors"  # type: ignore[index]


@pytest.mark.parametrize(
    ("stats", "scan", "line"),
    [
        (
            {"function": "SCRUB", "state": "FINISHED", "end_time": 1796088741, "processed": 0, "errors": 0},
            Scan("scrub", "ended"),
            "with 0 errors on 2026",
        ),
        (
            {
                "function": "SCRUB",
                "state": "SCANNING",
                "start_time": 1796088739,
                "to_examine": 200,
                "examined": 200,
                "issued": 50,
                "errors": 2,
            },
            Scan("scrub", "running", 25.0),
            "with 2 errors",
        ),
        (
            {"function": "SCRUB", "state": "SCANNING", "start_time": 1, "scrub_pause": 5, "to_examine": 0},
            Scan("scrub", "paused"),
            "paused since",
        ),
        (
            {"function": "RESILVER", "state": "FINISHED", "end_time": 1796088741, "processed": 1024, "errors": 0},
            Scan("resilver", "ended"),
            "resilvered 1.0K",
        ),
        ({"function": "SCRUB", "state": "CANCELED", "end_time": 1796088741}, Scan("scrub", "ended"), "canceled"),
        ({"function": "NONE", "state": "NONE"}, Scan("none", "ended"), "none requested"),
    ],
)
def test_json_scans(stats: dict[str, object], scan: Scan, line: str) -> None:
    (tank,) = from_json(answer(scan_stats=stats)) or ()
    assert scan_of(tank) == scan
    assert line in tank["scan"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"pools": []}', '{"pools": {"tank": {}}}', '{"pools": {"tank": {"state": "ONLINE"}}}', "[" * 100_000]
)
def test_what_is_no_such_json_leaves_it_to_the_text(text: str) -> None:
    assert from_json(text) is None


@given(st.text(alphabet=st.sampled_from("pool: state\n\t ONLINE0123NAMEerrors:configx")))
def test_no_text_breaks_the_parser(text: str) -> None:
    for pool in from_text(f"  pool: tank\n{text}"):
        zpools.findings(pool)
        pool_status.scan_of(pool)


def test_every_recorded_status_is_read() -> None:
    if not FACTS.exists():
        pytest.skip("the recorded host answers are not here")
    text = FACTS.read_text().replace("\\t", "\t")
    answers = re.findall(r"`\$ zpool (?:status|scrub)[^`]*`  → exit \*\*\d+\*\*\n```\n(  pool: .*?)```", text, re.DOTALL)
    assert len(answers) >= 12
    for found in answers:
        pools = from_text(found)
        assert pools
        for pool in pools:
            healthy = pool["state"] == "ONLINE" and "errors" in pool and pool["errors"] == "No known data errors"
            assert bool(zpools.findings(pool)) != healthy or "errors" not in pool
