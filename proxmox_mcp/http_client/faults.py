"""What became of a request that got no whole answer: nothing was sent, or it is lost."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxmox_mcp import errors, secrets, text
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.http_client.answers import LOOK_FIRST, Attempt


@dataclass(slots=True)
class Trace:
    """How far a request came, told by httpcore (a transport of a test tells nothing: `seen` stays false)."""

    when_sent: Callable[[], None] | None
    seen: bool = False
    fresh: bool = False  # a new connection was opened for it
    sent: bool = False
    answered: bool = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        self.seen = True
        if event == "connection.connect_tcp.started":
            self.fresh = True
        elif event == "http11.send_request_headers.started" and info["request"].method != b"CONNECT":
            self.sent = True
            if self.when_sent:
                self.when_sent()
        elif event == "http11.receive_response_headers.complete":
            self.answered = self.sent


@dataclass(frozen=True, slots=True)
class NoConnection:
    """No connection to a member; nothing was sent. `certificate` is set when its certificate was refused."""

    why: str
    certificate: ssl.SSLCertVerificationError | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """Sent, and no whole answer came."""

    why: str
    timed_out: bool = False
    answered: bool = False
    fresh: bool = False


def what_happened(failure: Exception, trace: Trace) -> NoConnection | Lost:
    import httpx

    if isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.PoolTimeout)) or (
        trace.seen and not trace.sent
    ):
        causes = list(_causes(failure))
        certificate = next((c for c in causes if isinstance(c, ssl.SSLCertVerificationError)), None)
        return NoConnection("certificate refused" if certificate else _connect_reason(failure, causes), certificate)
    timed_out = isinstance(failure, (TimeoutError, httpx.TimeoutException))
    return Lost(
        "no answer came in time" if timed_out else "the connection was closed before an answer came", timed_out, trace.answered, trace.fresh
    )


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    while failure is not None:
        yield failure
        if isinstance(failure, BaseExceptionGroup):
            yield from failure.exceptions
        failure = failure.__cause__ or failure.__context__


def _connect_reason(failure: Exception, causes: list[BaseException]) -> str:
    import httpx

    if isinstance(failure, httpx.ProxyError):
        return f"the proxy refused ({secrets.mask_text(text.clean(str(failure), 100))})"
    if isinstance(failure, (TimeoutError, httpx.TimeoutException)):
        return "no connection in time"
    for cause in causes:
        if isinstance(cause, (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError)):
            break
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, (ssl.SSLWantReadError, ssl.SSLWantWriteError)):
            return f"no TLS there ({text.clean(cause.reason or 'handshake failed', 100)})"
        if isinstance(cause, socket.gaierror):
            return f"name not found ({cause.strerror})"
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno in errno.errorcode:
            return os.strerror(cause.errno)
    return "it closed the connection before TLS began (pveproxy does that outside of ALLOW_FROM in /etc/default/pveproxy)"


def lost(outcome: Lost, attempt: Attempt, timeout: float) -> ProxmoxMcpError:
    tried = str(attempt)
    if attempt.changes:
        what = f"Request timed out after {timeout:g} s" if outcome.timed_out else f"The connection to {attempt.address} was lost"
        return errors.OutcomeUnknown(f"{what}; the change was sent, and it is not known whether it was made", tried=tried, hint=LOOK_FIRST)
    if outcome.timed_out:
        return errors.RequestTimeout(
            f"Request timed out after {timeout:g} s at {attempt.address}",
            tried=tried,
            hint="the node or one of its storages may hang; PROXMOX_TIMEOUT sets the limit",
        )
    return errors.ConnectionFailed(
        f"Cannot connect to {attempt.address}: {outcome.why}", tried=tried, hint="try again; see pveproxy's log on the node"
    )
