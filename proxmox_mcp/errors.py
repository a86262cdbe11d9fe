"""Everything that can go wrong, as one tree; each error says what was tried, what the other side said and what to do next.

ProxmoxMcpError
├── ConfigError                 a setting is missing or wrong; nothing was sent
├── InvalidArgument             an argument broke a rule; nothing was sent
├── Refused                     a gate, a person or the state of the world said no; nothing was changed
├── AuditError                  the record could not be written; nothing was sent
├── ConnectionFailed            no connection; nothing was sent
│   └── TlsError                the certificate is not the expected one
├── RequestTimeout              a read got no answer in time
├── OutcomeUnknown              a change was sent and its answer never came (timeout, cut, 595/596); never repeat it blindly
├── ApiError                    Proxmox answered with an error
│   ├── AuthenticationError     401
│   ├── PermissionDenied        403, a privilege is missing
│   │   └── TokenNotAllowed     403, no API token may do this
│   ├── ParameterError          400, with the fields
│   ├── NotFound                the guest, storage, node, task ... does not exist
│   ├── Busy                    a lock or another task stands in the way
│   ├── Unsupported             501, this version has no such call
│   ├── NodeUnreachable         595-599 on a read: the member behind the API does not answer
│   └── NotTheApi               an answer that no Proxmox API gives (HTML, redirect, broken or oversized body)
├── TaskFailed                  a task ended with an error
└── SshError                    something about a command on a node, guest or container
    ├── SshUnreachable          no TCP connection or no SSH server; nothing was run
    ├── SshAuthFailed           user, key or password refused; nothing was run
    ├── HostKeyUnknown          first contact; nothing was run
    ├── HostKeyChanged          the key is not the recorded one; nothing was run
    └── CommandLost             the connection died while the command ran; outcome unknown
"""

from __future__ import annotations

from collections.abc import Mapping


class ProxmoxMcpError(Exception):
    """Base of all anticipated failures.

    `what` is the finding in one sentence, `tried` the action (method and path, or command; no secrets), `said` the other
    side's own words, `hint` one next step. `str()` joins them; it is what a model reads.
    """

    def __init__(self, what: str, *, tried: str = "", said: str = "", hint: str = "") -> None:
        self.what, self.tried, self.said, self.hint = what, tried, said, hint
        super().__init__(what)

    def __str__(self) -> str:
        parts = [self.what]
        if self.tried:
            parts.append(f"Tried: {self.tried}.")
        if self.said:
            parts.append(f"Proxmox said: {self.said}" if isinstance(self, (ApiError, TaskFailed)) else f"Answer: {self.said}")
        if self.hint:
            parts.append(f"Next: {self.hint}")
        return "\n".join(parts)


class ConfigError(ProxmoxMcpError):
    """A setting is missing or wrong."""


class InvalidArgument(ProxmoxMcpError):
    """An argument broke a rule; `argument` names it, several with commas, or "arguments" where they do not fit together."""

    def __init__(self, argument: str, what: str, *, hint: str = "") -> None:
        self.argument = argument
        one = argument not in ("", "arguments") and "," not in argument
        super().__init__(f"Invalid argument {argument}: {what}" if one else f"Invalid arguments: {what}", hint=hint)


class Refused(ProxmoxMcpError):
    """A gate, a person or the state of the world said no. The text begins "Nothing was changed"."""

    def __init__(self, why: str, *, tried: str = "", said: str = "", hint: str = "") -> None:
        super().__init__(f"Nothing was changed: {why}", tried=tried, said=said, hint=hint)


class AuditError(ProxmoxMcpError):
    """The audit record could not be written, so nothing was sent."""


class ConnectionFailed(ProxmoxMcpError):
    """No connection could be made; nothing was sent."""


class TlsError(ConnectionFailed):
    """The server's certificate is not the expected one; `fingerprint` is its SHA-256 as colon hex, when known."""

    def __init__(self, what: str, *, fingerprint: str = "", tried: str = "", said: str = "", hint: str = "") -> None:
        self.fingerprint = fingerprint
        super().__init__(what, tried=tried, said=said, hint=hint)


class RequestTimeout(ProxmoxMcpError):
    """A read got no answer in time."""


class OutcomeUnknown(ProxmoxMcpError):
    """A change was sent and no answer came: it may or may not have happened."""


class ApiError(ProxmoxMcpError):
    """Proxmox answered with an error; `status` is the HTTP status, `fields` the per-parameter texts of a 400."""

    def __init__(
        self, what: str, *, status: int, tried: str = "", said: str = "", hint: str = "", fields: Mapping[str, str] | None = None
    ) -> None:
        self.status, self.fields = status, dict(fields or {})
        super().__init__(what, tried=tried, said=said, hint=hint)


class AuthenticationError(ApiError):
    """401."""


class PermissionDenied(ApiError):
    """403: `fields` is empty; `said` names path and privilege where Proxmox does."""


class TokenNotAllowed(PermissionDenied):
    """403 that no role can mend: the call is for the user root@pam or a ticket."""


class ParameterError(ApiError):
    """400: see `fields`."""


class NotFound(ApiError):
    """The object does not exist (Proxmox answers 500 or 400 for this)."""


class Busy(ApiError):
    """A lock or a running task stands in the way."""


class Unsupported(ApiError):
    """501: unknown path or method on this version, or content where none is allowed."""


class NodeUnreachable(ApiError):
    """595 to 599 on a read."""


class NotTheApi(ApiError):
    """An answer that the Proxmox API does not give."""


class TaskFailed(ProxmoxMcpError):
    """A task ended with an error; `said` holds the exit status and the last log lines."""


class SshError(ProxmoxMcpError):
    """Something about a command on a node, guest or container."""


class SshUnreachable(SshError):
    """No TCP connection or no SSH server; nothing was run."""


class SshAuthFailed(SshError):
    """User, key or password was refused; nothing was run."""


class HostKeyUnknown(SshError):
    """The host key is not in known_hosts; nothing was run."""


class HostKeyChanged(SshError):
    """The host key is not the recorded one; nothing was run."""


class CommandLost(SshError):
    """The connection died while the command ran: outcome unknown."""
