"""The gates one by one: each refusal whole, each flag for itself, nothing that opens by accident."""

from __future__ import annotations

from typing import Any

import pytest

from proxmox_mcp import gates, limits
from proxmox_mcp.arguments import Changing, Destroying
from proxmox_mcp.config import Settings
from proxmox_mcp.errors import InvalidArgument, Refused
from proxmox_mcp.plan import ApiCall, Plan, Risk

STOP = ApiCall("POST", ("nodes", "pve1", "qemu", 101, "status", "stop"))


class Forcing(Destroying):
    force: bool = False


def plan(risk: Risk = Risk.CHANGE, *, targets: tuple[str, ...] = (), **more: Any) -> Plan:
    return Plan("stop guest 101", (STOP,), risk, targets, **more)


def refusal(check: Any, *arguments: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        check(*arguments)
    return refused.value


def test_read_only_mode_says_whose_word_it_is() -> None:
    gates.check_mode(Settings())
    found = refusal(gates.check_mode, Settings(read_only=True))
    assert found.what == "Nothing was changed: the server runs in read-only mode (PROXMOX_READ_ONLY)"
    assert found.hint == "only the owner of the server can change this"


@pytest.mark.parametrize(
    ("targets", "outside"),
    [
        (("guest 101", "node pve1"), ""),
        (("guest 100", "guest 199", "guest 205"), ""),
        (("guest 99",), "guest 99 is outside PROXMOX_ALLOW_VMIDS"),
        (("guest 101", "guest 200"), "guest 200 is outside PROXMOX_ALLOW_VMIDS"),
        (("node pve2", "guest 300"), "node pve2 is outside PROXMOX_ALLOW_NODES"),
        (("storage nas", "dataset tank/a b", "disk /dev/sda", "guests 7"), ""),
        (("node pve1 pve2",), "node pve1 pve2 is outside PROXMOX_ALLOW_NODES"),
    ],
)
def test_limits_hold_for_every_target(targets: tuple[str, ...], outside: str) -> None:
    limited = Settings(allow_vmids=((100, 199), (205, 205)), allow_nodes=("pve1",))
    gates.check_limits(plan(targets=targets), Settings())
    if outside:
        assert refusal(gates.check_limits, plan(targets=targets), limited).what == f"Nothing was changed: {outside}"
    else:
        gates.check_limits(plan(targets=targets), limited)


def test_limits_in_words() -> None:
    limited = Settings(allow_vmids=((100, 199), (205, 205)), allow_nodes=("pve1", "pve2"))
    assert limits.words(limited) == "guests 100-199,205 and nodes pve1,pve2"
    assert limits.words(Settings(allow_vmids=((7, 7),))) == "guests 7"
    assert limits.words(Settings(allow_nodes=("pve1",))) == "nodes pve1"
    assert limits.words(Settings()) == ""


def test_limited_reads_name_the_argument() -> None:
    limited = Settings(allow_vmids=((100, 199),), allow_nodes=("pve1",), limit_reads=True)
    also = "and this server limits reads too (PROXMOX_LIMIT_READS)"
    for wrong, words in (
        ({"vmid": 200}, f"vmid: guest 200 is outside PROXMOX_ALLOW_VMIDS, {also}"),
        ({"node": "pve2"}, f"node: node pve2 is outside PROXMOX_ALLOW_NODES, {also}"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            limits.check_read(limited, **wrong)
        assert caught.value.what == f"Invalid argument {words}"
    limits.check_read(limited, 199, "pve1")
    limits.check_read(limited)
    limits.check_read(Settings(limit_reads=True), 200, "pve2")
    limits.check_read(Settings(allow_vmids=((100, 199),)), 200)


def test_each_missing_flag_is_named_before_the_preview() -> None:
    shown = "\nstop guest 101\nSteps:\n1. POST /nodes/pve1/qemu/101/status/stop\nRisk: {}; needs {}\nWould work."
    change, loss = shown.format("change", "confirm=true"), shown.format("data loss", "confirm=true and i_understand_data_loss=true")
    begins = "Nothing was changed: "
    assert refusal(gates.check_flags, plan(), Changing()).what == f"{begins}confirm=true missing. It would do:{change}"
    both = plan(Risk.DATA_LOSS)
    for args, missing in (
        (Destroying(), "confirm=true and i_understand_data_loss=true"),
        (Destroying(confirm=True), "i_understand_data_loss=true"),
        (Destroying(i_understand_data_loss=True), "confirm=true"),
        (Changing(confirm=True), "i_understand_data_loss=true"),  # a tool without the gate cannot pass it
    ):
        assert refusal(gates.check_flags, both, args).what == f"{begins}{missing} missing. It would do:{loss}"
    gates.check_flags(plan(), Changing(confirm=True))
    gates.check_flags(both, Destroying(confirm=True, i_understand_data_loss=True))


def test_an_obstacle_stops_what_all_flags_have_opened() -> None:
    found = refusal(gates.check_flags, plan(obstacles=("it is locked",)), Changing(confirm=True))
    assert found.what == (
        "Nothing was changed: it would fail.\nstop guest 101\nSteps:\n1. POST /nodes/pve1/qemu/101/status/stop\n"
        "Risk: change; needs confirm=true\nStands in the way:\n- it is locked"
    )


@pytest.mark.parametrize("risk", [Risk.CHANGE, Risk.DATA_LOSS])
@pytest.mark.parametrize("asks", [False, True])
def test_the_policy_decides_who_is_asked(risk: Risk, asks: bool) -> None:
    wanted = {policy: gates.wants_person(plan(risk, asks=asks), Settings(approval=policy)) for policy in ("off", "data_loss", "all")}  # type: ignore[arg-type]
    assert wanted == {"off": False, "data_loss": asks or risk is Risk.DATA_LOSS, "all": True}


def test_the_record_names_the_flags_that_were_given() -> None:
    assert gates.given_flags({}) == ()
    assert gates.given_flags(dict(Changing(confirm=True, dry_run=True))) == ("confirm",)
    everything = Forcing(confirm=True, i_understand_data_loss=True, force=True)
    assert gates.given_flags(dict(everything)) == ("confirm", "i_understand_data_loss", "force")
    assert gates.given_flags({"force": True, "confirm": "true", "i_understand_data_loss": 1}) == ("force",)
