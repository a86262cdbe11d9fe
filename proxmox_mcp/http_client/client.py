"""One pooled connection to the cluster: reads that may be repeated, changes that never are.

Members of a cluster are tried in turn, and only while no connection stands: refused, unreachable, no TLS within the time. What was sent
once is not sent to another member. A certificate that is not trusted ends the call, for going on to the next member would hide it. The
member that worked stays the first choice, so a dead one costs its connect timeout once, not in each call.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from proxmox_mcp import __version__, errors, secrets, text
from proxmox_mcp.config import Member, Settings, require_api
from proxmox_mcp.errors import InvalidArgument, ProxmoxMcpError
from proxmox_mcp.http_client import answers, faults, tls
from proxmox_mcp.http_client.answers import Attempt, Reply
from proxmox_mcp.http_client.faults import Lost, NoConnection
from proxmox_mcp.http_client.paths import encode, path_of

if TYPE_CHECKING:
    import httpx

MAX_BODY = 64 * 2**20  # bytes of an answer
_MAX_FORM = 512 * 2**10  # Proxmox answers 501 above, older versions earlier
_MAX_TARGET = 7000  # characters of path and query; a request head has to fit into 8 KiB
_CONNECT = 10.0  # seconds for a connection to one member
_IDLE = 4.0  # seconds that an unused connection is kept: pveproxy closes its side after 5


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

    @property
    def limited_to(self) -> str:
        """Which guests and nodes alone it shows: it shows all that the token sees."""
        return ""

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
            if isinstance(outcome, Lost) and not attempt.changes and not (outcome.timed_out or outcome.answered or outcome.fresh):
                # the server closed an idle connection while the request was on its way: a read may ask again
                outcome = await self._exchange(http, member, attempt, target, body, deadline, share)
            if isinstance(outcome, NoConnection):
                if outcome.certificate is not None:
                    raise await self._untrusted(outcome.certificate, member, attempt)
                refusals.append(f"{member}: {outcome.why}")
                continue
            self._preferred = index
            if isinstance(outcome, Lost):
                raise faults.lost(outcome, attempt, timeout)
            return outcome, attempt
        raise errors.ConnectionFailed(
            f"Cannot connect to {'; '.join(refusals)}{' (through PROXMOX_PROXY)' if self.settings.proxy else ''}. Nothing was sent",
            tried=str(attempt),
            hint=f"check {'PROXMOX_PROXY first, then ' if self.settings.proxy else ''}PROXMOX_HOST and PROXMOX_PORT, "
            "that pveproxy runs on the node and that no firewall stands in between",
        )

    def _in_order(self) -> Iterator[tuple[int, Member, int]]:
        """Each member once, the one that worked last first: its index, itself and how many come after it."""
        members, first = self.settings.members, self._preferred
        for step in range(len(members)):
            index = (first + step) % len(members)
            yield index, members[index], len(members) - 1 - step

    async def _exchange(
        self, http: httpx.AsyncClient, member: Member, attempt: Attempt, target: str, body: bytes | None, deadline: float, share: float
    ) -> Reply | NoConnection | Lost:
        """One request to one member. Failures are returned, not raised: httpx's exceptions hold the request and with it the token."""
        # Until the request is sent, httpx's own connect timeouts count (one for TCP, one for TLS): cancelled from outside in the middle of
        # a handshake, httpcore would not close the socket. Through a proxy or a test's transport there is more to wait for than those.
        at_once = bool(self.settings.proxy or self._transport)
        limit = asyncio.timeout_at(deadline if at_once else None)
        trace = faults.Trace(None if at_once else lambda: limit.reschedule(deadline))
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
            return faults.what_happened(e, trace)

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
