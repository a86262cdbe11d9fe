"""One pooled connection to the cluster: reads that may be repeated, changes that never are.

Members of a cluster are tried in turn, and only while no connection stands: refused, unreachable, no TLS within the time. What was sent
once is not sent to another member. A certificate that is not trusted ends the call, for going on to the next member would hide it. The
member that worked stays the first choice, so a dead one costs its connect timeout once, not in each call.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from proxmox_mcp import __version__, errors, secrets, text
from proxmox_mcp.config import Member, Settings, require_api
from proxmox_mcp.errors import InvalidArgument, ProxmoxMcpError
from proxmox_mcp.http_client import answers, tls
from proxmox_mcp.http_client.answers import Attempt, Reply
from proxmox_mcp.http_client.paths import encode, path_of

if TYPE_CHECKING:
    import httpx

MAX_BODY = 64 * 2**20  # bytes of an answer
_MAX_FORM = 512 * 2**10  # Proxmox answers 501 above
_MAX_TARGET = 7000  # characters of path and query; a request head has to fit into 8 KiB
_CONNECT = 10.0  # seconds for a connection to one member
_IDLE = 4.0  # seconds that an unused connection is kept: the server gives up earlier connections after 5


@dataclass(slots=True)
class _Trace:
    """How far a request came, told by httpcore (a transport of a test tells nothing: `seen` stays false)."""

    when_sent: Callable[[], None]
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
            self.when_sent()
        elif event == "http11.receive_response_headers.complete":
            self.answered = self.sent


@dataclass(frozen=True, slots=True)
class _NoConnection:
    """No connection to a member; nothing was sent. `certificate` is set when its certificate was refused."""

    why: str
    certificate: ssl.SSLCertVerificationError | None = None


@dataclass(frozen=True, slots=True)
class _Lost:
    """Sent, and no whole answer came."""

    why: str
    timed_out: bool = False
    answered: bool = False
    fresh: bool = False


class HttpClient:
    """The REST API of one cluster. Cheap to make, never raises when made: the first request opens connections.

    Raises ConfigError (settings), InvalidArgument (a part or parameter that must not be sent), ConnectionFailed and TlsError (nothing was
    sent), RequestTimeout (reads), OutcomeUnknown (changes), and ApiError by what Proxmox answered.
    """

    def __init__(self, settings: Settings, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.settings = settings
        self.sent = 0  # requests handed to a connection
        self._transport = transport
        self._http: httpx.AsyncClient | None = None
        self._preferred = 0
        secrets.register(settings.token_value)
        self._slots = asyncio.Semaphore(max(1, settings.max_concurrency))

    async def get(self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None) -> Any:
        """GET: the answer's `data`. `timeout` in seconds for the whole request (default: the setting)."""
        return (await self._call("GET", path, params or {}, timeout))["data"]

    async def get_with_total(
        self, *path: str | int, params: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> tuple[Any, int | None]:
        """GET of a list that is longer than what is answered (task lists, logs): `data` and `total`, None where Proxmox gives none."""
        envelope = await self._call("GET", path, params or {}, timeout)
        total = envelope.get("total")
        return envelope["data"], total if isinstance(total, int) else None

    async def send(self, method: Literal["POST", "PUT", "DELETE"], path: tuple[str | int, ...], params: Mapping[str, Any]) -> Any:
        """A change: the answer's `data`. Never repeated; OutcomeUnknown when it was sent and no certain answer came."""
        return (await self._call(method, path, params, None))["data"]

    async def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    # one call

    async def _call(self, method: str, parts: tuple[str | int, ...], params: Mapping[str, Any], timeout: float | None) -> dict[str, Any]:
        require_api(self.settings)
        path, encoded = path_of(parts), encode(params)
        in_body = method in ("POST", "PUT")
        if in_body and len(encoded) > _MAX_FORM:
            raise InvalidArgument("", f"the parameters take {len(encoded):,} bytes, Proxmox accepts {_MAX_FORM:,}")
        target = f"/api2/json{path}" if in_body or not encoded else f"/api2/json{path}?{encoded}"
        if len(target) > _MAX_TARGET:
            raise InvalidArgument("", f"path and query take {len(target):,} characters, {_MAX_TARGET:,} are accepted")
        attempt = Attempt(method, path, token_id=f"{self.settings.user}!{self.settings.token_name}")
        async with self._slots:
            reply, attempt = await self._reply(attempt, target, encoded.encode() if in_body else None, timeout or self.settings.timeout)
        return answers.read(reply, attempt)

    async def _reply(self, attempt: Attempt, target: str, body: bytes | None, timeout: float) -> tuple[Reply, Attempt]:
        """The answer of the first member to which a connection stands."""
        http = self._client()
        deadline = asyncio.get_running_loop().time() + timeout
        refusals = []
        for index, member, others in self._in_order():
            attempt = replace(attempt, address=str(member))
            # the time for connecting is shared with the members that are still to be tried
            share = max(0.0, deadline - asyncio.get_running_loop().time()) / (1 + others)
            outcome = await self._exchange(http, member, attempt, target, body, deadline, share)
            if isinstance(outcome, _Lost) and not attempt.changes and not (outcome.timed_out or outcome.answered or outcome.fresh):
                # the server closed an idle connection while the request was on its way: a read may ask again
                outcome = await self._exchange(http, member, attempt, target, body, deadline, share)
            if isinstance(outcome, _NoConnection):
                if outcome.certificate is not None:
                    raise await self._untrusted(outcome.certificate, member, attempt)
                refusals.append(f"{member}: {outcome.why}")
                continue
            self._preferred = index
            if isinstance(outcome, _Lost):
                raise _lost(outcome, attempt, timeout)
            return outcome, attempt
        raise errors.ConnectionFailed(
            f"Cannot connect to {'; '.join(refusals)}{' (through PROXMOX_PROXY)' if self.settings.proxy else ''}. Nothing was sent",
            tried=str(attempt),
            hint="check PROXMOX_HOST and PROXMOX_PORT, that pveproxy runs on the node and that no firewall stands in between",
        )

    def _in_order(self) -> Iterator[tuple[int, Member, int]]:
        """Each member once, the one that worked last first: its index, itself and how many come after it."""
        members, first = self.settings.members, self._preferred
        for step in range(len(members)):
            index = (first + step) % len(members)
            yield index, members[index], len(members) - 1 - step

    async def _exchange(
        self, http: httpx.AsyncClient, member: Member, attempt: Attempt, target: str, body: bytes | None, deadline: float, share: float
    ) -> Reply | _NoConnection | _Lost:
        """One request to one member. Failures are returned, not raised: httpx's exceptions hold the request and with it the token."""
        # Until the request is sent, httpx's own connect timeouts count (one for TCP, one for TLS): cancelled from outside in the middle of
        # a handshake, httpcore would not close the socket. Through a proxy or a test's transport there is more to wait for than those.
        limit = asyncio.timeout_at(deadline if self.settings.proxy or self._transport else None)
        trace = _Trace(lambda: limit.reschedule(deadline))
        request = http.build_request(
            attempt.method,
            f"https://{_in_url(member)}{target}",
            content=body,
            headers=None if body is None else {"Content-Type": "application/x-www-form-urlencoded"},
            timeout=(min(_CONNECT, share / 2), None, None, None),
            extensions={"trace": trace},
        )
        self.sent += 1
        try:
            async with limit:
                response = await http.send(request, stream=True)
                trace.answered = True
                try:
                    return await _read_body(response)
                finally:
                    await response.aclose()
        except Exception as e:  # whatever it was, what counts is how far the request had come
            return _what_happened(e, trace)

    async def _untrusted(self, failure: ssl.SSLCertVerificationError, member: Member, attempt: Attempt) -> ProxmoxMcpError:
        presented = failure.presented if isinstance(failure, tls.PinMismatch) else ""
        if not presented and not self.settings.proxy:
            presented = await tls.fetch_fingerprint(member)
        return tls.certificate_error(failure, member, presented, str(attempt))

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            import httpx

            settings = self.settings
            slots = max(1, settings.max_concurrency)
            # percent-decoded by the server and cut at the first ";", so whatever a user name may hold is encoded
            token_id = quote(f"{settings.user}!{settings.token_name}", safe="@!")
            try:
                transport = self._transport or httpx.AsyncHTTPTransport(
                    verify=tls.client_context(settings),
                    trust_env=False,
                    proxy=settings.proxy or None,
                    limits=httpx.Limits(max_connections=slots, max_keepalive_connections=slots, keepalive_expiry=_IDLE),
                )
            except (ImportError, ValueError) as e:
                problem = secrets.mask_text(text.clean(str(e), 200))
                raise errors.ConfigError(f"PROXMOX_PROXY cannot be used: {problem}", hint="http://host:port is the usual form") from None
            self._http = httpx.AsyncClient(
                transport=transport,
                trust_env=False,
                follow_redirects=False,
                headers={
                    "Authorization": f"PVEAPIToken={token_id}={quote(settings.token_value, safe='')}",
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "User-Agent": f"pve-mcp/{__version__}",
                },
            )
        return self._http


def _in_url(member: Member) -> str:
    return str(member).replace("%", "%25")


async def _read_body(response: httpx.Response) -> Reply:
    """The whole answer, or as much of it as counts; raises what httpx raises when it breaks off."""
    headers = response.headers
    reply = Reply(
        response.status_code,
        response.reason_phrase,
        headers.get("content-type", "").strip().lower(),
        location=headers.get("location", ""),
    )
    chunks, size = [], 0
    try:
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > MAX_BODY:
                return replace(reply, broken=f"it is larger than {text.size(MAX_BODY)}")
            chunks.append(chunk)
    except Exception:  # whatever httpx says: it did not come whole
        return replace(reply, broken=f"it broke off after {size:,} bytes")
    return replace(reply, body=b"".join(chunks))


def _what_happened(failure: Exception, trace: _Trace) -> _NoConnection | _Lost:
    import httpx

    if isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.PoolTimeout)) or (
        trace.seen and not trace.sent
    ):
        causes = list(_causes(failure))
        certificate = next((c for c in causes if isinstance(c, ssl.SSLCertVerificationError)), None)
        return _NoConnection("certificate refused" if certificate else _connect_reason(failure, causes), certificate)
    timed_out = isinstance(failure, (TimeoutError, httpx.TimeoutException))
    return _Lost(
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
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, (ssl.SSLWantReadError, ssl.SSLWantWriteError)):
            return f"no TLS there ({text.clean(cause.reason or 'handshake failed', 100)})"
        if isinstance(cause, socket.gaierror):
            return f"name not found ({cause.strerror})"
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno in errno.errorcode:
            return os.strerror(cause.errno)
    return "the connection was closed while it was being made"


def _lost(outcome: _Lost, attempt: Attempt, timeout: float) -> ProxmoxMcpError:
    tried = str(attempt)
    if attempt.changes:
        what = f"Request timed out after {timeout:g} s" if outcome.timed_out else f"The connection to {attempt.address} was lost"
        return errors.OutcomeUnknown(
            f"{what}; the change was sent, and it is not known whether it was made", tried=tried, hint=answers.LOOK_FIRST
        )
    if outcome.timed_out:
        return errors.RequestTimeout(
            f"Request timed out after {timeout:g} s at {attempt.address}",
            tried=tried,
            hint="the node or one of its storages may hang; PROXMOX_TIMEOUT sets the limit",
        )
    return errors.ConnectionFailed(
        f"Cannot connect to {attempt.address}: {outcome.why}", tried=tried, hint="try again; see pveproxy's log on the node"
    )
