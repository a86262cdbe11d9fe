"""A person's word through the real SDK client, in both protocol eras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.elicitation import AcceptedElicitation
from mcp.shared.exceptions import MCPError
from mcp.types import ClientCapabilities, ElicitationCapability, ElicitRequestParams, ElicitResult

from proxmox_mcp import approval
from proxmox_mcp.approval import SdkPeer
from proxmox_mcp.errors import Refused
from proxmox_mcp.mcp_instance import build
from proxmox_mcp.plan import Plan, Risk
from proxmox_mcp.questions import Questions
from tests.piped import POWER, piped, records, serve_guest

pytestmark = pytest.mark.anyio
DESTROY = {"vmid": 101, "action": "destroy", "confirm": True, "i_understand_data_loss": True}
ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])


class Person:
    """Answers a form as told; `asked` holds what it was shown."""

    def __init__(self, action: str, content: dict[str, Any] | None = None, before: Any = None) -> None:
        self.action, self.content, self.before = action, content, before
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        if self.before:
            self.before()
        return ElicitResult(action=self.action, content=self.content)  # type: ignore[arg-type]


async def ask(app: Any, era: str, person: Person | None, arguments: dict[str, Any] = DESTROY) -> tuple[bool, str]:
    async with Client(build(app, [POWER]), mode=era, elicitation_callback=person) as client:
        found = await client.call_tool("power", arguments)
        return bool(found.is_error), found.content[0].text  # type: ignore[union-attr]


@ERAS
async def test_yes_runs_exactly_what_was_shown_once(tmp_path: Path, era: str) -> None:
    async with piped(tmp_path) as (api, app):
        person = Person("accept", {"approve": True})
        failed, text = await ask(app, era, person)
        assert not failed, text
        (shown,) = person.asked
        assert shown.startswith("destroy guest 101 on pve1\nThis can destroy data.\n1. POST /nodes/pve1/qemu/101/status/destroy")
        assert [r.path for r in api.writes] == ["/nodes/pve1/qemu/101/status/destroy"]
        question, intent, _ = records(tmp_path)  # asked once, though the call comes twice in the later era
        assert question["event"] == "a person is asked"
        assert intent["approved"] == "person"


@ERAS
@pytest.mark.parametrize(
    ("action", "content"),
    [("decline", None), ("cancel", None), ("accept", {"approve": False}), ("accept", {"approve": "yes"}), ("accept", {}), ("accept", None)],
)
async def test_anything_but_an_explicit_yes_changes_nothing(tmp_path: Path, era: str, action: str, content: Any) -> None:
    async with piped(tmp_path) as (api, app):
        failed, text = await ask(app, era, Person(action, content))
        assert failed
        assert text.startswith("Nothing was changed")
        assert not api.writes
        assert [r["event"].partition(":")[0] for r in records(tmp_path)] == ["a person is asked", "refused"]


@ERAS
async def test_a_client_without_the_capability_goes_by_the_flags(tmp_path: Path, era: str) -> None:
    async with piped(tmp_path) as (api, app):
        failed, _ = await ask(app, era, None)
        assert not failed
        assert len(api.writes) == 1
        assert [r.get("event") for r in records(tmp_path)] == [None, None]  # nobody was asked


@ERAS
async def test_a_client_without_the_capability_is_refused_when_the_owner_says_so(tmp_path: Path, era: str) -> None:
    async with piped(tmp_path, approval_fallback="deny") as (api, app):
        failed, text = await ask(app, era, None)
        assert failed
        assert "PROXMOX_APPROVAL_FALLBACK" in text
        assert not api.writes


@ERAS
async def test_a_changed_world_runs_nothing(tmp_path: Path, era: str) -> None:
    async with piped(tmp_path) as (api, app):
        failed, text = await ask(app, era, Person("accept", {"approve": True}, before=lambda: serve_guest(api, node="pve2")))
        assert failed
        assert "the situation changed" in text
        assert not api.writes


async def test_an_approval_is_good_for_one_act(tmp_path: Path) -> None:
    """From 2026-07-28 on the answer travels with a state that a client could send again."""
    async with piped(tmp_path) as (api, app):
        sent: list[dict[str, Any]] = []
        async with Client(build(app, [POWER]), mode="auto", elicitation_callback=Person("accept", {"approve": True})) as client:
            original = client.session.send_request

            async def spy(request: Any, *args: Any, **kwargs: Any) -> Any:
                sent.append(request.model_dump(by_alias=True, exclude_none=True))
                return await original(request, *args, **kwargs)

            client.session.send_request = spy  # type: ignore[method-assign]
            await client.call_tool("power", DESTROY)
            again = [s for s in sent if s.get("params", {}).get("requestState")]
            assert again
            assert len(api.writes) == 1
            from mcp.types import CallToolRequest, CallToolResult

            result = await original(CallToolRequest.model_validate(again[-1]), CallToolResult)
            assert result.is_error
            assert "used before or has expired" in result.content[0].text
            assert len(api.writes) == 1


class Told:
    """Stands for the SDK's context of one call: what it was told to report, and how it answers a form."""

    def __init__(self, *, fails: Exception | None = None, version: str | None = "2025-11-25", modes: dict[str, Any] | None = None) -> None:
        self.reported: list[tuple[float, str]] = []
        self.asked: list[str] = []
        self.protocol_version = version
        self.client_capabilities = ClientCapabilities(elicitation=ElicitationCapability(**({"form": {}} if modes is None else modes)))
        self.input_responses = None
        self.request_state: str | None = None
        self._fails = fails

    async def report_progress(self, progress: float, *, message: str) -> None:
        self.reported.append((progress, message))

    async def elicit(self, message: str, schema: Any) -> Any:
        self.asked.append(message)
        if self._fails is not None:
            raise self._fails
        return AcceptedElicitation(data=schema(approve=True))


def peer(told: Told) -> SdkPeer:
    return SdkPeer(told, Questions())  # type: ignore[arg-type]


async def test_progress_is_told_once_a_second_and_without_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = Told(), 1_000.0
    monkeypatch.setattr(approval.time, "monotonic", lambda: now)
    one = peer(told)
    await one.progress(1.26, "a\x1b[2J" + "b" * 500)
    for step in (0.5, 0.25, 0.25, 0.5, 0.5):
        now += step
        await one.progress(now, "more")
    assert [progress for progress, _ in told.reported] == [1.3, 1_001.0, 1_002.0]
    assert "\x1b" not in told.reported[0][1]
    assert told.reported[0][1] == f"a{'b' * 199}…(+301)"


@pytest.mark.parametrize("fails", [MCPError(-32601, "no such method"), ValueError("does not fit the form")])
async def test_a_client_that_cannot_ask_after_all_has_not_approved(fails: Exception) -> None:
    plan = Plan("destroy it", (), Risk.DATA_LOSS, ())
    told = Told(fails=fails)
    assert await peer(told).approve(plan) is False
    assert told.asked[0].startswith("destroy it\nThis can destroy data.")
    assert await peer(Told()).approve(plan) is True


async def test_an_answer_without_its_question_is_refused_with_the_next_step() -> None:
    told = Told(version="2026-07-28")
    told.input_responses, told.request_state = {"approve": ElicitResult(action="accept", content={"approve": True})}, "0" * 32  # type: ignore[assignment]
    with pytest.raises(Refused) as refused:
        await peer(told).approve(Plan("destroy it", (), Risk.DATA_LOSS, ()))
    assert refused.value.what == "Nothing was changed: this approval was used before or has expired"
    assert refused.value.hint == "call again to ask anew"


async def test_a_client_without_forms_is_not_asked() -> None:
    plan = Plan("destroy it", (), Risk.DATA_LOSS, ())
    url_only = Told(modes={"url": {}})
    assert await peer(url_only).approve(plan) is None
    assert url_only.asked == []
    plain = Told(modes={})  # capabilities of the first revision: a form without saying so
    assert await peer(plain).approve(plan) is True
    none = Told()
    none.client_capabilities = None  # type: ignore[assignment]
    assert await peer(none).approve(plan) is None
    old = Told(version=None)
    assert await peer(old).approve(plan) is True
