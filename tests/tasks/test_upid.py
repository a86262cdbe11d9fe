from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmox_mcp.errors import InvalidArgument
from proxmox_mcp.tasks import TaskVerdict, Upid, verdict, verdict_of_list_item
from tests.pve_schema import SHARED

HEX = "0123456789ABCDEFabcdef"


def test_a_upid_tells_its_parts() -> None:
    upid = Upid.parse("UPID:pve1:000006BF:0007205C:6B0E2E40:imgdel:310@local:root@pam!mcp:")
    assert (upid.node, upid.type, upid.id) == ("pve1", "imgdel", "310@local")
    assert (upid.user, upid.token) == ("root@pam", "mcp")
    assert (upid.pid, upid.pstart, upid.started) == (0x6BF, 0x7205C, 1796091456)


def test_a_upid_of_a_user_has_no_token() -> None:
    assert Upid.parse("UPID:pve1:00000001:00000001:5F000000:qmstart:100:root@pam:").token is None


@pytest.mark.parametrize(
    "text",
    [
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump::ops@pve!mcp:",
        "UPID:pve1:000006D7:000720A2:6B0E2E41:imgcopy::root@pam!mcp:",
        "UPID:pve1:000006E4:000720F1:6B0E2E42:download:dl.iso:root@pam!mcp:",
        "UPID:node-7:000006E4:000720F1:6B0E2E42:aptupdate::root@pam:",
        r"UPID:pbs:000006E4:000720F1:000E2E42:backup:main\x3avm-101:sync@pbs:",
        "UPID:pve1:00007323:001036A5:6419CAF8:hastart:101:first.last@ad.example!ci-1:",
    ],
)
def test_g42_real_shapes_are_read_and_kept_to_the_letter(text: str) -> None:
    assert str(Upid.parse(text)) == text
    assert Upid.parse(f" \t{text}\r\n") == Upid.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "OK",
        "",
        "UPID:pve1:xyz",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump::ops@pve!mcp",  # the last colon is missing
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump::ops@pve!mcp::",
        "UPID:pve2:000A1B2:1C0FFEE00:69A4B000:vzdump::ops@pve:",  # seven digits
        "UPID:pve2:0000A1B2:1C0FFEE0000:69A4B000:vzdump::ops@pve:",
        "UPID:-pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump::ops@pve:",
        "UPID:../pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump::ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:a b:ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:..:ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:a/b:ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:a%2fb:ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:1?x=1:ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:１０１:ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:1\x00:ops@pve:",
        "UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:1:ops@pve:\nUPID:",
        f"UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:{'9' * 300}:ops@pve:",
    ],
)
def test_g42_malformed_ones_are_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Upid.parse(text)
    assert caught.value.argument == "upid"
    assert "UPID:<node>:<pid>:<pstart>:<starttime>:<type>:<id>:<user>:" in str(caught.value)


_digits = st.text(HEX, min_size=8, max_size=8)
_label = st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?", fullmatch=True)
_free = st.from_regex(r"[A-Za-z0-9@!_.,=\\-]{0,20}", fullmatch=True).filter(lambda text: ".." not in text)


@given(
    node=_label,
    numbers=st.tuples(_digits, st.text(HEX, min_size=8, max_size=9), _digits),
    kind=st.from_regex(r"[a-z][a-z-]{0,15}", fullmatch=True),
    ident=_free,
    user=st.from_regex(r"[a-z0-9_.-]{1,12}@[a-z]{2,8}", fullmatch=True).filter(lambda text: ".." not in text),
    token=st.none() | st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{1,12}", fullmatch=True),
)
def test_every_well_formed_upid_survives(
    node: str, numbers: tuple[str, str, str], kind: str, ident: str, user: str, token: str | None
) -> None:
    text = f"UPID:{node}:{':'.join(numbers)}:{kind}:{ident}:{user}{f'!{token}' if token else ''}:"
    upid = Upid.parse(text)
    assert str(upid) == text
    assert (upid.node, upid.type, upid.id, upid.user, upid.token) == (node, kind, ident, user, token)
    assert upid.started == int(numbers[2], 16)


@given(
    st.text()
    | st.builds(
        lambda text, at, bad: text[:at] + bad + text[at:],
        st.just("UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump:101:ops@pve!mcp:"),
        st.integers(0, 61),
        st.text(min_size=1, max_size=5),
    )
)
def test_what_is_taken_for_a_upid_can_be_part_of_a_path(text: str) -> None:
    try:
        taken = str(Upid.parse(text))
    except InvalidArgument:
        return
    assert taken == text.strip()
    assert re.fullmatch(r"UPID:[!-~]+:", taken)
    assert not set(taken) & set("/?#% ")
    assert ".." not in taken
    assert taken.count(":") == 8
    assert len(taken) <= 256


def test_every_upid_that_the_real_api_gave_is_read() -> None:
    file = SHARED / "pve" / "captures.json"
    if not file.is_file():
        pytest.skip("../shared/pve/captures.json is not here")
    found = set(re.findall(r"UPID:[^\s\"/?]+:[^\s\"/?]*:", json.dumps(json.loads(file.read_text()))))
    real = {text for text in found if re.match(r"UPID:[^:]+:[0-9A-F]{8}:", text)}
    assert len(real) > 100
    assert {str(Upid.parse(text)) for text in real} == real


# --- verdicts


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"status": "stopped", "exitstatus": "OK"}, TaskVerdict("ok", "OK")),
        ({"status": "running"}, TaskVerdict("running")),
        ({"status": "running", "exitstatus": "OK"}, TaskVerdict("running")),
        ({"status": "stopped", "exitstatus": "WARNINGS: 1"}, TaskVerdict("warnings", "WARNINGS: 1", 1)),
        ({"status": "stopped", "exitstatus": "WARNINGS: 12"}, TaskVerdict("warnings", "WARNINGS: 12", 12)),
        ({"status": "stopped", "exitstatus": "WARNINGS: many"}, TaskVerdict("warnings", "WARNINGS: many", None)),
        ({"status": "stopped", "exitstatus": "job errors"}, TaskVerdict("failed", "job errors")),
        ({"status": "stopped", "exitstatus": "OK but not really"}, TaskVerdict("failed", "OK but not really")),
        ({"status": "stopped", "exitstatus": "received interrupt"}, TaskVerdict("failed", "received interrupt")),
        ({"status": "stopped", "exitstatus": "unexpected status"}, TaskVerdict("unknown", "unexpected status")),
        ({"status": "stopped"}, TaskVerdict("unknown", "no exit status recorded")),
        ({"status": "stopped", "exitstatus": None}, TaskVerdict("unknown", "no exit status recorded")),
        ({}, TaskVerdict("unknown", "status missing")),
    ],
)
def test_g38_g39_the_verdict_of_a_status(status: dict[str, Any], expected: TaskVerdict) -> None:
    assert verdict(status) == expected


def test_only_ok_and_warnings_count_as_done() -> None:
    ends = ("OK", "WARNINGS: 1", "job errors", "unexpected status", "")
    assert [end for end in ends if verdict({"status": "stopped", "exitstatus": end}).done] == ["OK", "WARNINGS: 1"]
    assert not verdict({"status": "running"}).done


@pytest.mark.parametrize(
    ("item", "state"),
    [
        ({"status": "OK", "endtime": 1}, "ok"),
        ({"status": "RUNNING"}, "running"),
        ({"status": "WARNINGS: 2", "endtime": 1}, "warnings"),
        ({"status": "unexpected status", "endtime": 1}, "unknown"),
        ({"status": "storage 'nope' does not exist", "endtime": 1}, "failed"),
        ({"starttime": 1}, "unknown"),
        ({"status": None}, "unknown"),
    ],
)
def test_g41_the_verdict_of_an_item_in_a_list(item: dict[str, Any], state: str) -> None:
    assert verdict_of_list_item(item).state == state
