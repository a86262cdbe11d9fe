"""What the API answered: data, or the one error of the tree that fits the status and Proxmox's words."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxmox_mcp import errors, secrets, text
from proxmox_mcp.errors import ApiError, ProxmoxMcpError

MAX_SAID = 2000
_PARAMETERS = "Parameter verification failed."


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was asked, for the error's sake: no query, no secret."""

    method: str
    path: str  # below /api2/json
    address: str = ""  # pve1:8006
    token_id: str = ""  # ops@pve!mcp

    @property
    def changes(self) -> bool:
        return self.method != "GET"

    @property
    def node(self) -> str:
        parts = self.path.split("/")
        return parts[2] if len(parts) > 2 and parts[1] == "nodes" else ""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as it came. `broken` says why the body is not whole."""

    status: int
    reason: str
    content_type: str = ""
    body: bytes = b""
    location: str = ""
    broken: str = ""


def read(reply: Reply, attempt: Attempt) -> dict[str, Any]:
    """The envelope of a success ({"data": ...}, perhaps "total"). Raises what `failure` makes of anything else."""
    parsed = _parsed(reply)
    if 200 <= reply.status < 300 and not reply.broken and isinstance(parsed, dict) and "data" in parsed:
        return parsed
    raise failure(reply, attempt, parsed)


def _parsed(reply: Reply) -> Any:
    """The JSON of the body; None when it is none. NaN and Infinity, which JSON does not have, become null: unknown."""
    if not reply.body or reply.broken:
        return None
    try:
        return json.loads(reply.body.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def failure(reply: Reply, attempt: Attempt, parsed: Any = None) -> ProxmoxMcpError:
    """The error for an answer that is not a success."""
    status = reply.status
    fields, said = _words(reply, parsed)
    if status >= 595:
        return _unreachable(status, said, attempt)
    if _is_foreign(reply, parsed):
        return _foreign(reply, attempt)
    if status == 401:
        return _unauthenticated(said, attempt)
    if status == 403:
        return _forbidden(said, attempt)
    if status == 501:
        return _unsupported(said, attempt)
    if fields or status == 400 or said.startswith(f"400 {_PARAMETERS}"):
        return _wrong_parameters(status, fields, said, attempt)
    return _by_words(status, said, attempt)


# Proxmox's words


def _shown(value: str, limit: int) -> str:
    return secrets.mask_text(text.clean(value, limit))


def _words(reply: Reply, parsed: Any) -> tuple[dict[str, str], str]:
    """The texts per parameter, and everything said in one line: the errors, else the message, else the reason phrase."""
    body = parsed if isinstance(parsed, Mapping) else {}
    given = body.get("errors")
    fields = {_shown(str(k), 60): _shown(str(v), 600) for k, v in sorted(given.items())} if isinstance(given, Mapping) else {}
    message = body.get("message")
    said = _shown(message, MAX_SAID) if isinstance(message, str) else ""
    said = said or _shown(reply.reason, MAX_SAID)
    if fields:
        listed = "; ".join(f"[{name}] {why}" for name, why in fields.items())
        said = text.clean(listed if said in ("", _PARAMETERS) else f"{said} {listed}", MAX_SAID)
    if not said and reply.content_type.startswith("text/plain"):
        said = _shown(reply.body[:4000].decode("utf-8", "replace"), 500)
    return fields, said


# answers that are not Proxmox's


def _is_foreign(reply: Reply, parsed: Any) -> bool:
    """Whether something else than the API spoke: HTML, a redirect, a success without its envelope, a status the API never gives."""
    status = reply.status
    if reply.content_type.startswith(("text/html", "application/xhtml")) or status < 400:
        return True
    enveloped = isinstance(parsed, Mapping) and "data" in parsed
    return not enveloped and status not in (400, 401, 403, 424, 500, 501, 506)


def _foreign(reply: Reply, attempt: Attempt) -> ProxmoxMcpError:
    hint = "check PROXMOX_HOST and PROXMOX_PORT (usually 8006); a reverse proxy in between must let /api2/json through unchanged"
    kind = _shown(reply.content_type.partition(";")[0], 60) or "no content type"
    detail = f"status {reply.status} {_shown(reply.reason, 100)}".rstrip() + f", {kind}"
    if reply.broken:
        what = f"The answer of {attempt.address} is broken: {reply.broken}"
        hint = "try again; see pveproxy's log on the node and any proxy in between"
    elif 300 <= reply.status < 400:
        detail += f", redirect to {_shown(reply.location, 200) or 'nowhere'} (not followed)"
        what = f"{attempt.address} is not the Proxmox API ({detail})"
    else:
        what = f"{attempt.address} is not the Proxmox API: its answer is not what the API gives ({detail})"
    # a refusal is certain whoever refuses; a success or a gateway's error may hide that the change was made
    if attempt.changes and (reply.status < 300 or reply.status >= 500):
        return errors.OutcomeUnknown(f"{what}. It is not known whether the change was made", tried=str(attempt), hint=LOOK_FIRST)
    return errors.NotTheApi(what, status=reply.status, tried=str(attempt), hint=hint)


LOOK_FIRST = "look at the task list (proxmox_list_tasks) and at the object itself before anything is tried again"


# the statuses


def _unsupported(said: str, attempt: Attempt) -> ProxmoxMcpError:
    if "too large" in said:
        return errors.Unsupported(
            f"The request is larger than this Proxmox version accepts (HTTP 501): {attempt}",
            status=501, tried=str(attempt), said=said, hint="send less at once; older versions accept 64 KiB",
        )  # fmt: skip
    return errors.Unsupported(
        f"Method or path unknown on this Proxmox version, or content where none is allowed (HTTP 501): {attempt}",
        status=501, tried=str(attempt), said=said, hint="proxmox_get_node_status shows the version; this call needs another one",
    )  # fmt: skip


def _unauthenticated(said: str, attempt: Attempt) -> ProxmoxMcpError:
    low = said.lower()
    user, name = (shlex.quote(part) for part in attempt.token_id.partition("!")[::2])
    if "no ticket" in low:
        hint = "Proxmox found no token in the request: a proxy in between may have removed the Authorization header"
    elif "no such token" in low or "no tokenid" in low:
        hint = f"check PROXMOX_TOKEN_NAME: `pveum user token list {user}` on a node shows the names"
    elif "no such user" in low or "no such realm" in low:
        hint = "check PROXMOX_USER, with its realm (root@pam, ops@pve): `pveum user list` on a node shows them"
    elif "invalid token value" in low:
        hint = "check PROXMOX_TOKEN_VALUE: the secret is shown once, when the token is made; a lost one means a new token"
    elif "expired" in low:
        hint = f"the token or its user has expired: `pveum user token modify {user} {name} --expire 0` on a node, or a new date"
    elif "disabled" in low:
        hint = f"enable the user on a node: `pveum user modify {user} --enable 1`"
    else:
        hint = "check PROXMOX_USER (with realm), PROXMOX_TOKEN_NAME and PROXMOX_TOKEN_VALUE; user and token must be enabled and not expired"
    return errors.AuthenticationError(
        f"Authentication failed (HTTP 401) for {attempt.token_id or 'the token'} at {attempt.address}",
        status=401, tried=str(attempt), said=said, hint=hint,
    )  # fmt: skip


# what stands in a command to copy must not be more than a path and a privilege
_CHECK = re.compile(r"Permission check failed \((/[A-Za-z0-9/_.@:+-]*), ([A-Za-z.|]+)\)")
_NO_TOKEN = re.compile(r"user != root@pam|need proper ticket|only allowed for root@pam|only root (?:can|may)\b", re.IGNORECASE)


def _forbidden(said: str, attempt: Attempt) -> ProxmoxMcpError:
    if _NO_TOKEN.search(said):
        return _no_token_may(403, said, attempt)
    if _MISSING.search(said):
        return errors.NotFound("What the call names does not exist (HTTP 403)", status=403, tried=str(attempt), said=said)
    found = _CHECK.search(said)
    if not found:
        return errors.PermissionDenied(
            f"Permission denied (HTTP 403) for {attempt.token_id or 'the token'}",
            status=403, tried=str(attempt), said=said, hint="`pve-mcp doctor` lists what the token may do and which privileges are missing",
        )  # fmt: skip
    path, privileges = found[1], found[2].split("|")
    role = f"mcp-{privileges[0]}"
    token, user = shlex.quote(attempt.token_id), attempt.token_id.partition("!")[0]
    # below / an entry replaces what comes from above: taken alone, this line would take the rest away
    rest = "" if path == "/" else f"; on {path} that replaces the roles passed down from above, so name those in it too (--roles A,B)"
    if user != "root@pam":  # who holds everything
        rest += (
            f"; under privilege separation its user needs the same: `pveum acl modify {path} --users {shlex.quote(user)} --roles {role}`"
        )
    return errors.PermissionDenied(
        f"Permission denied (HTTP 403): {attempt.token_id or 'the token'} lacks {' or '.join(privileges)} on {path}",
        status=403, tried=str(attempt), said=said,
        hint=f'someone who may manage permissions can grant it on a node: `pveum role add {role} --privs "{privileges[0]}"`, then '
        f"`pveum acl modify {path} --tokens {token} --roles {role}`{rest}",
    )  # fmt: skip


def _no_token_may(status: int, said: str, attempt: Attempt) -> ProxmoxMcpError:
    return errors.TokenNotAllowed(
        f"Permission denied (HTTP {status}): no API token may do this, whatever its roles; Proxmox wants the user root@pam himself",
        status=status, tried=str(attempt), said=said, hint="do it as root@pam, in the web interface or in a shell of the node",
    )  # fmt: skip


def _wrong_parameters(status: int, fields: dict[str, str], said: str, attempt: Attempt) -> ProxmoxMcpError:
    if _MISSING.search(said) and len(fields) < 2:
        return errors.NotFound(
            f"What the call names does not exist (HTTP {status})", status=status, tried=str(attempt), said=said, fields=fields
        )
    hint = "leave the option out: no API token may set it" if _NO_TOKEN.search(said) else "correct the named parameters" if fields else ""
    return errors.ParameterError(
        f"Proxmox refused the parameters (HTTP {status})", status=status, tried=str(attempt), said=said, hint=hint, fields=fields
    )


_MISSING = re.compile(r"\bno such (?!file or dir)|\bdoes not exist\b", re.IGNORECASE)
# errors that Proxmox answers with 500 and tells apart by text alone; the first that fits names kind, finding and next step
_TEXTS: tuple[tuple[str, type[ApiError], str, str], ...] = (
    (
        r"hostname lookup '.*' failed|no such cluster node",
        errors.NotFound, "There is no node of this name", "proxmox_list_nodes shows the names as Proxmox spells them",
    ),
    (
        r"no quorum",
        errors.Busy, "The cluster has no quorum, so nothing can be changed", "`pvecm status` on a node shows which members are missing",
    ),
    (
        r"is locked\b|can't lock|(?:un)?able to (?:acquire|get) lock|lock request timeout|lock .*got timeout|got timeout.*lock",
        errors.Busy, "A lock or another task stands in the way", "wait for the running task (proxmox_list_tasks), then try again",
    ),
    (
        r"checksum mismatch|detected modified configuration",
        errors.Busy, "The configuration was changed by someone else in between", "read it again, then decide again",
    ),
    (
        r"No QEMU guest agent configured",
        ApiError, "The guest agent is not enabled for this VM", "set the option agent=1 and install qemu-guest-agent in the guest",
    ),
    (r"guest agent is not running", ApiError, "The guest agent does not answer", "start qemu-guest-agent in the guest"),
    (r"protection mode enabled", ApiError, "Protection is on", "the option protection=0 takes it off, if that is wanted"),
    (
        rf"{_MISSING.pattern}|unable to find configuration file|no rule at position|not HA managed",
        errors.NotFound, "What the call names does not exist", "",
    ),
    (r"already exists|already defined|already in use", ApiError, "The name or place is taken", "choose another one"),
    (
        r"is not online|is not available on node|storage '.*' is disabled",
        ApiError, "The storage cannot be used there", "proxmox_list_storage shows its state and nodes",
    ),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), kind, what, hint) for pattern, kind, what, hint in _TEXTS)


def _by_words(status: int, said: str, attempt: Attempt) -> ProxmoxMcpError:
    if _NO_TOKEN.search(said):
        return _no_token_may(status, said, attempt)
    for pattern, kind, what, hint in _COMPILED:
        if pattern.search(said):
            return kind(f"{what} (HTTP {status})", status=status, tried=str(attempt), said=said, hint=hint)
    return ApiError(f"Proxmox refused the call (HTTP {status})", status=status, tried=str(attempt), said=said)


# Texts of the member's proxy for a connection that never came about.
_NOT_DELIVERED = re.compile(
    r"no route to host|connection refused|network is unreachable|host is (?:down|unreachable)|connection timed out"
    r"|name or service not known|name resolution",
    re.IGNORECASE,
)


def _unreachable(status: int, said: str, attempt: Attempt) -> ProxmoxMcpError:
    whom = f"Node {attempt.node}" if attempt.node else "A cluster member"
    if not attempt.changes:
        return errors.NodeUnreachable(
            f"{whom} is not reachable from {attempt.address} (HTTP {status})" if status == 595
            else f"{whom} gave no usable answer to {attempt.address} (HTTP {status})",
            status=status, tried=str(attempt), said=said,
            hint="proxmox_list_nodes shows which nodes are online and how their names are spelled; what other nodes hold can still be read",
        )  # fmt: skip
    if status == 595 and _NOT_DELIVERED.search(said):
        # the words are another daemon's: good for a remark, not for a verdict on a change
        return errors.OutcomeUnknown(
            f"{whom} could not be reached from {attempt.address} (HTTP 595); most likely the change was not delivered, but not surely",
            tried=str(attempt), said=said, hint=LOOK_FIRST,
        )  # fmt: skip
    return errors.OutcomeUnknown(
        f"{whom} gave no answer to {attempt.address} (HTTP {status}); it is not known whether the change was made",
        tried=str(attempt), said=said, hint=LOOK_FIRST,
    )  # fmt: skip
