"""Each status and text of the API becomes the right error, with Proxmox's words and a next step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx
import pytest

from proxmox_mcp import errors, text
from proxmox_mcp.config import Member
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.http_client import HttpClient
from proxmox_mcp.http_client.answers import Attempt, Reply, failure
from tests.served_api import TOKEN_ID, settings

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "pve" / "captures.json"
READ = Attempt("GET", "/nodes/pve2/qemu", "pve1:8006", TOKEN_ID)
WRITE = Attempt("POST", "/nodes/pve2/qemu/101/status/start", "pve1:8006", TOKEN_ID)


def answer(
    status: int, reason: str, body: Any = None, *, attempt: Attempt = READ, content_type: str = "application/json;charset=utf-8"
) -> Any:
    raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    parsed = None if isinstance(body, bytes) else body
    return failure(Reply(status, reason, content_type if raw else "", raw), attempt, parsed)


def error(status: int, words: str, **more: Any) -> Any:
    return answer(status, words, {"data": None, "message": f"{words}\n"}, **more)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("no such token 'mcp' for user 'ops@pve'", "PROXMOX_TOKEN_NAME"),
        ("token access expired", "--expire 0"),
        ("token 'mcp' access expired", "--expire 0"),
        ("user 'ops@pve' is expired", "expired"),
        ("user 'ops@pve' is disabled", "--enable 1"),
        ("invalid token value!", "PROXMOX_TOKEN_VALUE"),
        ("no such user ('ops@pve')", "PROXMOX_USER"),
        ("No ticket", "proxy in between"),
        ("Authentication failed!", "PROXMOX_USER (with realm), PROXMOX_TOKEN_NAME and PROXMOX_TOKEN_VALUE"),
    ],
)
def test_g13_401_says_the_reason_and_what_to_check(reason: str, hint: str) -> None:
    found = answer(401, reason)
    assert type(found) is errors.AuthenticationError
    assert found.what.startswith("Authentication failed (HTTP 401)")
    assert found.said == reason
    assert hint in found.hint
    assert "Expecting value" not in str(found)


def test_g14_400_lists_the_fields_in_a_stable_order() -> None:
    fields = {"net0": "invalid format\n", "memory": "value must have a minimum value of 16\n"}
    for extra in ({}, {"message": "Parameter verification failed.\n"}):
        found = answer(400, "Parameter verification failed.", {"data": None, "errors": fields, **extra})
        assert type(found) is errors.ParameterError
        assert list(found.fields.items()) == [("memory", "value must have a minimum value of 16"), ("net0", "invalid format")]
        assert found.said == "[memory] value must have a minimum value of 16; [net0] invalid format"
        assert "(HTTP 400)" in str(found)


def test_g14_errors_before_message_before_reason() -> None:
    assert answer(400, "short", {"data": None, "message": "longer\ntext\n"}).said == "longer text"
    assert answer(400, "short", {"data": None, "message": None, "errors": "odd"}).said == "short"
    assert (
        answer(400, "Hotplug problem", {"data": None, "message": "Hotplug problem\n", "errors": {"cores": "no"}}).said
        == "Hotplug problem [cores] no"
    )
    assert answer(500, "only the reason").said == "only the reason"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, "Permission check failed (user != root@pam)"),
        (403, "Permission check failed (URI '/access/password' not available with API token, need proper ticket."),
        (403, "Permission check failed (mount point type bind is only allowed for root@pam)"),
        (500, "only root can set 'args' config"),
        (500, "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651."),
    ],
)
def test_g15_what_no_token_may_is_told_apart_from_a_missing_role(status: int, words: str) -> None:
    found = error(status, words)
    assert type(found) is errors.TokenNotAllowed
    assert found.what.startswith("Permission denied")
    assert "no API token may do this" in found.what
    assert found.said.startswith(words[:40])
    assert "acl modify" not in found.hint


def test_g15_an_option_for_root_alone_keeps_its_field() -> None:
    found = answer(400, "Parameter verification failed.", {"data": None, "errors": {"skiplock": "Only root may use this option."}})
    assert type(found) is errors.ParameterError
    assert "no API token may set it" in found.hint


def test_403_names_path_privilege_and_the_commands() -> None:
    found = error(403, "Permission check failed (/vms/101, VM.PowerMgmt)")
    assert type(found) is errors.PermissionDenied
    assert found.what == "Permission denied (HTTP 403): root@pam!mcp lacks VM.PowerMgmt on /vms/101"
    assert 'pveum role add mcp-VM.PowerMgmt --privs "VM.PowerMgmt"' in found.hint
    assert "pveum acl modify /vms/101 --tokens 'root@pam!mcp' --roles mcp-VM.PowerMgmt" in found.hint
    assert "on /vms/101 that replaces the roles passed down from above" in found.hint
    assert "--users" not in found.hint  # root@pam holds everything
    assert "replaces" not in error(403, "Permission check failed (/, Sys.Modify)").hint
    theirs = Attempt("POST", "/nodes/pve2/qemu/101/status/stop", "pve1:8006", "mcp@pve!assistant")
    found = error(403, "Permission check failed (/vms/101, VM.PowerMgmt)", attempt=theirs)
    assert "`pveum acl modify /vms/101 --users mcp@pve --roles mcp-VM.PowerMgmt`" in found.hint
    assert (
        "lacks Datastore.Audit or Datastore.AllocateSpace on /storage/local"
        in error(403, "Permission check failed (/storage/local, Datastore.Audit|Datastore.AllocateSpace)").what
    )
    assert "pve-mcp doctor" in error(403, "Permission check failed").hint


def test_403_cannot_smuggle_a_command_into_the_hint() -> None:
    for words in (
        "Permission check failed (/vms/1'; rm -rf /, VM.Audit)",
        "Permission check failed (/x, VM.Audit;reboot)",
        "Permission check failed (/vms/1;reboot, VM.Audit)",
    ):
        found = error(403, words)
        assert type(found) is errors.PermissionDenied
        assert "acl modify" not in found.hint


def test_g16_501_says_version_or_content_with_the_path() -> None:
    found = answer(501, "Unexpected content for method 'DELETE'", b"Unexpected content", content_type="text/plain")
    assert type(found) is errors.Unsupported
    assert "unknown on this Proxmox version, or content where none is allowed" in found.what
    assert "/nodes/pve2/qemu" in found.what


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(200, "OK", "text/html; charset=utf-8", b"<html>login</html>"), ("200 OK", "text/html", "pve1:8006")),
        (
            Reply(301, "Moved Permanently", "", b"", "https://pve.lab:8006/"),
            ("301 Moved Permanently", "redirect to https://pve.lab:8006/", "not followed"),
        ),
        (Reply(302, "Found", "text/html", b"x", "/login"), ("redirect to /login",)),
        (Reply(200, "OK", "application/json", b'{"data":'), ("200 OK", "application/json")),
        (Reply(200, "OK", "application/json", b"[1]"), ("200 OK",)),
        (Reply(200, "OK", "application/json", b'{"success":1}'), ("200 OK",)),
        (Reply(200, "OK", "application/json", b"[" * 100_000), ("200 OK",)),
        (Reply(200, "OK", "", b""), ("no content type",)),
        (Reply(404, "Not Found", "text/html", b"<h1>nginx</h1>"), ("404 Not Found", "text/html")),
        (Reply(404, "Not Found", "", b""), ("404",)),
        (Reply(401, "Unauthorized", "text/html", b"<h1>proxy</h1>"), ("401 Unauthorized",)),
        (Reply(502, "Bad Gateway", "text/plain", b"bad"), ("502 Bad Gateway",)),
        (Reply(503, "Service Unavailable", "", b""), ("503",)),
        (Reply(200, "OK", "application/json", b"", broken="it broke off after 10 bytes"), ("broke off after 10 bytes",)),
    ],
)
def test_g17_what_is_not_the_api_is_said_to_be(reply: Reply, words: tuple[str, ...]) -> None:
    found = failure(reply, READ)
    assert type(found) is errors.NotTheApi
    assert "pve1:8006" in found.what
    assert all(word in found.what for word in words), found.what


@pytest.mark.parametrize(
    ("status", "unknown"), [(200, True), (204, True), (502, True), (503, True), (504, True), (301, False), (404, False), (413, False)]
)
def test_g17_after_a_change_only_a_refusal_is_certain(status: int, unknown: bool) -> None:
    found = failure(Reply(status, "x", "text/html", b"<html>"), WRITE)
    assert type(found) is (errors.OutcomeUnknown if unknown else errors.NotTheApi)


@pytest.mark.parametrize(
    ("words", "kind", "hint"),
    [
        (
            "hostname lookup 'nope' failed - failed to get address info for: nope: Name or service not known",
            errors.NotFound,
            "proxmox_list_nodes",
        ),
        ("no such cluster node 'pve9'", errors.NotFound, "proxmox_list_nodes"),
        ("Configuration file 'nodes/pve1/qemu-server/9999.conf' does not exist", errors.NotFound, ""),
        ("unable to find configuration file for VM 9999 on node 'pve1'", errors.NotFound, ""),
        ("storage 'nope' does not exist", errors.NotFound, ""),
        ("VM is locked (backup)", errors.Busy, "proxmox_list_tasks"),
        ("CT is locked (snapshot-delete)", errors.Busy, "proxmox_list_tasks"),
        ("can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout", errors.Busy, "proxmox_list_tasks"),
        ("cfs-lock 'storage-nas' error: got lock request timeout", errors.Busy, "proxmox_list_tasks"),
        ("cluster not ready - no quorum?", errors.Busy, "pvecm status"),
        ("checksum mismatch (file change by other user?)", errors.Busy, "read it again"),
        ("detected modified configuration - file changed by other user? Try again.", errors.Busy, "read it again"),
        ("QEMU guest agent is not running", errors.ApiError, "qemu-guest-agent"),
        ("VM 101 qmp command 'guest-ping' failed - got timeout", errors.ApiError, ""),
        ("can't remove VM 310 - protection mode enabled", errors.ApiError, "protection=0"),
        ("VM 101 already exists on node 'pve1'", errors.ApiError, "another one"),
        ("storage 'lab2' is not available on node 'pve1'", errors.ApiError, "proxmox_list_storage"),
        ("got no idea", errors.ApiError, ""),
        ("Agent error: failed to open file '/tmp/none' (mode: 'r'): No such file or directory", errors.ApiError, ""),
    ],
)
def test_500_is_told_apart_by_its_words(words: str, kind: type[ProxmoxMcpError], hint: str) -> None:
    found = error(500, words)
    assert type(found) is kind
    assert found.said == words
    assert hint in found.hint
    assert "(HTTP 500)" in str(found)
    assert "Tried: GET /nodes/pve2/qemu." in str(found)


def test_500_that_is_a_400() -> None:
    found = answer(
        500,
        "400 Parameter verification failed.",
        {"data": None, "message": "400 Parameter verification failed.\nvmid: property is missing\n"},
    )
    assert type(found) is errors.ParameterError
    assert "vmid: property is missing" in found.said
    assert type(error(500, "400 Parameter verification failed.\nid: No such job 'nope'\n")) is errors.NotFound


@pytest.mark.parametrize(
    ("name", "why"), [("upid", "no such task"), ("storage", "No such storage."), ("iface", "interface does not exist")]
)
def test_400_for_an_object_that_is_not_there(name: str, why: str) -> None:
    found = answer(400, "Parameter verification failed.", {"data": None, "errors": {name: why}})
    assert type(found) is errors.NotFound
    assert why in str(found)
    assert found.fields == {name: why}


@pytest.mark.parametrize("status", [595, 596, 597, 598, 599])
def test_a_read_that_a_member_did_not_answer(status: int) -> None:
    found = answer(status, "No route to host")
    assert type(found) is errors.NodeUnreachable
    assert "Node pve2" in found.what
    assert f"(HTTP {status})" in found.what
    assert "A cluster member" in failure(Reply(status, "x"), Attempt("GET", "/cluster/resources", "pve1:8006")).what


@pytest.mark.parametrize(
    ("status", "reason", "likely"),
    [
        (595, "No route to host", True),
        (595, "Connection refused", True),
        (595, "Connection timed out", True),
        (595, "Network is unreachable", True),
        (595, "tls: something else", False),
        (595, "", False),
        (596, "Connection refused", False),
        (596, "Connection timed out", False),
        (596, "Broken pipe", False),
        (597, "", False),
        (599, "Too many redirections", False),
    ],
)
def test_the_outcome_of_a_change_that_a_member_did_not_answer_is_unknown(status: int, reason: str, likely: bool) -> None:
    found = answer(status, reason, attempt=WRITE)
    assert type(found) is errors.OutcomeUnknown
    assert ("most likely the change was not delivered" in str(found)) is likely
    assert "proxmox_list_tasks" in found.hint


def test_words_are_cleaned_masked_and_capped() -> None:
    found = error(500, "bad \x1b[31mthing\x1b[0m\u202e password=geheim123 " + "x" * 5000)
    assert "\x1b" not in str(found)
    assert "\u202e" not in str(found)
    assert "geheim123" not in str(found)
    assert len(str(found)) < 2500
    hostile = answer(400, "x", {"data": None, "errors": {"a\nb" * 50: "c\nd" * 500}})
    assert "\n" not in hostile.said
    assert len(hostile.said) < 800


# the real daemon's answers, replayed

KINDS = {
    400: errors.ParameterError, 401: errors.AuthenticationError, 403: errors.PermissionDenied, 424: errors.ApiError, 500: errors.ApiError,
    501: errors.Unsupported, 506: errors.ApiError, 595: errors.NodeUnreachable, 596: errors.NodeUnreachable,
}  # fmt: skip
EXACT: list[tuple[int, str, type[ProxmoxMcpError]]] = [
    (403, "root@pam", errors.TokenNotAllowed),
    (403, "need proper ticket", errors.TokenNotAllowed),
    (403, "pool 'nopool' does not exist", errors.NotFound),
    (500, "only root can", errors.TokenNotAllowed),
    (500, "Only root can", errors.TokenNotAllowed),
    (500, "400 Parameter verification failed. vmid", errors.ParameterError),
    (500, "No such job", errors.NotFound),
    (500, "does not exist", errors.NotFound),
    (500, "no such cluster node", errors.NotFound),
    (500, "hostname lookup", errors.NotFound),
    (500, "unable to find configuration file", errors.NotFound),
    (500, "no such token", errors.NotFound),
    (500, "no such user", errors.NotFound),
    (500, "no such vzdump job", errors.NotFound),
    (500, "no such logical volume", errors.NotFound),
    (500, "no such pool available", errors.NotFound),
    (500, "no rule at position", errors.NotFound),
    (500, "not HA managed", errors.NotFound),
    (500, "is locked (", errors.Busy),
    (500, "checksum mismatch", errors.Busy),
    (500, "detected modified configuration", errors.Busy),
    *((400, part, errors.NotFound) for part in ("no such task", "No such job", "No such storage", "no such template", "does not exist")),
]


class Replay(httpx.AsyncBaseTransport):
    """Answers with one captured exchange."""

    exchange: dict[str, Any]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = self.exchange
        plain, given = exchange.get("answer_text"), exchange.get("answer")
        # a long answer is kept cut off, as text
        body = given if isinstance(given, str) else json.dumps(given) if given is not None else (plain or "").replace("(no body)", "")
        kind = "text/plain" if plain else "application/json;charset=UTF-8"
        headers = {"content-type": kind} if body else {}
        return httpx.Response(exchange["status"], headers=headers, content=body, extensions={"reason_phrase": exchange["reason"].encode()})


@pytest.mark.anyio
async def test_captures_replay() -> None:
    """Every exchange with the real API daemon: data comes back as it is, each failure is the right error with Proxmox's words in it."""
    if not CAPTURES.is_file():
        pytest.skip("needs ../shared/pve/captures.json")
    replay = Replay()
    client = HttpClient(settings(members=(Member("pve1", 8006),)), transport=replay)
    seen: dict[str, int] = {}
    for exchange in json.loads(CAPTURES.read_text()):
        replay.exchange = exchange
        path, _, query = exchange["path"].partition("?")
        parts = tuple(unquote(part) for part in path.strip("/").split("/"))
        if "content" in parts:  # a volume id is one part, slashes and all
            parts = (*parts[: parts.index("content") + 1], *filter(None, ["/".join(parts[parts.index("content") + 1 :])]))
        if exchange["method"] in ("PATCH", "HEAD") or ".." in parts:
            seen["cannot be sent"] = seen.get("cannot be sent", 0) + 1
            continue
        writes = exchange["method"] != "GET"
        status, words = exchange["status"], said_in(exchange)
        failed: ProxmoxMcpError | None = None
        data: Any = None
        total = None
        try:
            if writes:
                data = await client.send(exchange["method"], parts, {})
            else:
                data, total = await client.get_with_total(*parts, params=dict(parse_qsl(query)))
        except ProxmoxMcpError as e:
            failed = e
        seen[type(failed).__name__] = seen.get(type(failed).__name__, 0) + 1
        if failed is None:
            assert status == 200
            assert data == exchange["answer"]["data"]
            assert writes or total == exchange["answer"].get("total")
            continue
        assert type(failed) is expected_kind(status, words, writes, exchange), (exchange, failed)
        if status >= 400:
            assert [line for line in words if line not in str(failed)] == [], exchange
        assert str(failed).count(f"Tried: {exchange['method']} /") == 1
    assert seen["NoneType"] > 480
    assert set(seen) >= {"ParameterError", "NotFound", "Busy", "PermissionDenied", "TokenNotAllowed", "AuthenticationError", "Unsupported"}
    await client.close()


def said_in(exchange: dict[str, Any]) -> list[str]:
    """What must be readable in the error: the texts per parameter, else the message's lines, else the reason phrase."""
    found = exchange.get("answer") if isinstance(exchange.get("answer"), dict) else None
    if found and found.get("errors"):
        return [text.clean(why) for why in found["errors"].values()]
    return [text.clean((found or {}).get("message") or exchange["reason"])]


def expected_kind(status: int, words: list[str], writes: bool, exchange: dict[str, Any]) -> type[ProxmoxMcpError]:
    if status == 200:  # plain text, or a cut body: not what the API gives
        assert "answer_text" in exchange or exchange.get("truncated")
        return errors.OutcomeUnknown if writes else errors.NotTheApi
    if writes and status >= 595:
        return errors.OutcomeUnknown
    joined = " ".join(words)
    for code, part, kind in EXACT:
        if status == code and part in joined:
            return kind
    if status == 500 and (exchange.get("answer") or {}).get("errors"):
        return errors.ParameterError
    return KINDS[status]
