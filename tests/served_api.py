"""A served API on loopback over real TLS that answers like Proxmox from a table of handlers and records every request.

    with ServedApi() as api:
        api.on("GET", "/nodes", [{"node": "pve1", "status": "online"}])
        api.on("GET", "/nodes/{node}/status", lambda request: {"node": request.vars["node"]})
        api.on("GET", "/nodes/pve2/status", Reply(595, "No route to host"))
        http = HttpClient(settings(api))

The handler registered last wins. What nobody registered is answered as Proxmox does: 501. So are a missing token (401), a body on GET or
DELETE (501) and a wrong content type (506); the connection is closed after every status from 400 on.
"""

from __future__ import annotations

import asyncio
import atexit
import datetime
import inspect
import ipaddress
import json
import re
import shutil
import ssl
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from proxmox_mcp.config import Member, Settings
from proxmox_mcp.http_client import HttpClient

TOKEN_ID = "root@pam!mcp"
SECRET = "5eed5eed-0000-4000-8000-0123456789ab"


@dataclass(frozen=True, slots=True)
class Request:
    """One recorded request. `path` is decoded and starts below /api2/json; `params` holds query and form (or JSON) together."""

    method: str
    path: str
    target: str  # as it stood on the wire, with the query
    query: Mapping[str, Any]
    form: Mapping[str, Any]
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    connection: int  # number of the TCP connection it came on
    vars: Mapping[str, str] = field(default_factory=dict)  # what the handler's {names} matched

    @property
    def params(self) -> dict[str, Any]:
        return {**self.form, **self.query}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is more than data with 200.

    `body` replaces the JSON envelope (text or bytes as they are); `delay` seconds pass first; `hang` never answers;
    `drop` closes the connection without an answer; `cut` closes it after that many bytes of the body.
    """

    status: int = 200
    reason: str = ""
    data: Any = None
    body: str | bytes | None = None
    message: str | None = None
    errors: Mapping[str, str] | None = None
    total: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json;charset=UTF-8"
    delay: float = 0.0
    hang: bool = False
    drop: bool = False
    cut: int | None = None


Handler = Callable[[Request], Any | Awaitable[Any]]

_REASONS = {200: "OK", 400: "Parameter verification failed.", 401: "Authentication failed!", 403: "Permission check failed"}
_REASONS |= {500: "Internal Server Error", 595: "No route to host", 596: "Connection timed out"}


class ServedApi:
    """Context manager: serves on 127.0.0.1 from a thread of its own."""

    def __init__(self, *, certificate: Certificate | None = None, tokens: Mapping[str, str] | None = None) -> None:
        self.certificate = certificate or shared_certificate()
        self.tokens = dict({TOKEN_ID: SECRET} if tokens is None else tokens)
        self.requests: list[Request] = []
        self.connections = 0
        self.max_concurrent = 0
        self.port = 0
        self._running = 0
        self._handlers: list[tuple[str, re.Pattern[str], Any]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    # what a test says

    def on(self, method: str, path: str, answer: Any) -> None:
        """Answer `method path` with data, a Reply, or a callable (plain or async) of the Request that gives either.

        `{name}` stands for one part of the path; in the last place `{volume}` and `{cidr}` take slashes too, as in the real API.
        """
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", re.sub(r"\{(volume|cidr)\}$", r"(?P<\1>.+)", path))
        self._handlers.append((method, re.compile(pattern), answer))

    @property
    def writes(self) -> list[Request]:
        """The recorded requests that could have changed something."""
        return [r for r in self.requests if r.method != "GET"]

    @property
    def paths(self) -> list[str]:
        """Method and path of each recorded request, "GET /nodes"."""
        return [f"{r.method} {r.path}" for r in self.requests]

    def count(self, method: str, path: str) -> int:
        return Counter(self.paths)[f"{method} {path}"]

    @property
    def fingerprint(self) -> str:
        return self.certificate.fingerprint

    @property
    def ca_file(self) -> Path:
        return self.certificate.ca_file

    # serving

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="served-api", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self.certificate.server_context())
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.sleep(0)  # a connection that was just accepted has to begin before it can close its transport
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        connection = self.connections
        try:
            while await self._exchange(reader, writer, connection):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> bool:
        """One request and its answer; false when the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request_line, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = request_line.split(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        url = urlsplit(target)
        request = Request(
            method=method,
            path=re.sub(r"^/api2/json", "", unquote(url.path)),
            target=target,
            query=_pairs(url.query),
            form=_form(headers, body),
            headers=headers,
            body=body,
            connection=connection,
        )
        self._running += 1
        self.max_concurrent = max(self.max_concurrent, self._running)
        try:
            reply = await self._answer(request)
            if reply.delay:
                await asyncio.sleep(reply.delay)
            if reply.hang:
                await reader.read()  # until the other side gives up
                return False
        finally:
            self._running -= 1
        if reply.drop:
            return False
        payload = _payload(reply)
        close = reply.status >= 400 or reply.cut is not None
        reason = reply.reason or _REASONS.get(reply.status, "")
        fields = {
            "Cache-Control": "max-age=0",
            "Connection": "close" if close else "Keep-Alive",
            "Server": "pve-api-daemon/3.0",
            "Content-Length": str(len(payload)),
            **({"Content-Type": reply.content_type} if payload else {}),
            **reply.headers,
        }
        answer_head = f"HTTP/1.1 {reply.status} {reason}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
        writer.write(answer_head.encode() + (payload if reply.cut is None else payload[: reply.cut]))
        await writer.drain()
        if close:
            writer.close()
            await writer.wait_closed()
        return not close

    async def _answer(self, request: Request) -> Reply:
        refusal = self._refuse(request)
        for method, pattern, answer in reversed(self._handlers):
            match = pattern.fullmatch(request.path)
            if match is None or method != request.method:
                continue
            request = replace(request, vars=match.groupdict())
            self.requests.append(request)
            if refusal is not None:
                return refusal
            found = answer(request) if callable(answer) else answer
            if inspect.isawaitable(found):
                found = await found
            return found if isinstance(found, Reply) else Reply(data=found)
        self.requests.append(request)
        text = f"Method '{request.method} {request.path}' not implemented"
        return refusal or Reply(501, text, message=text)

    def _refuse(self, request: Request) -> Reply | None:
        """What the HTTP layer of Proxmox refuses before any method is called; the list of realms is open to all."""
        if (request.method, request.path) == ("GET", "/access/domains"):
            return None
        scheme, _, credentials = unquote(request.headers.get("authorization", "")).partition("=")
        token_id, _, secret = credentials.partition("=")
        if scheme != "PVEAPIToken":
            return Reply(401, "No ticket", body="")
        if self.tokens.get(token_id) != secret:
            return Reply(401, "Authentication failed!", body="")
        if request.body and request.method in ("GET", "DELETE"):
            text = f"Unexpected content for method '{request.method}'"
            return Reply(501, text, message=text)
        kind = request.headers.get("content-type", "").partition(";")[0]
        if request.body and kind not in ("application/x-www-form-urlencoded", "application/json"):
            return Reply(506, f"unsupported content type '{kind}'", body="")
        return None


def _pairs(text: str) -> dict[str, Any]:
    """Query or form text as Proxmox reads it; a repeated key becomes a list."""
    found: dict[str, Any] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        if key in found:
            found[key] = [*(found[key] if isinstance(found[key], list) else [found[key]]), value]
        else:
            found[key] = value
    return found


def _form(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    if headers.get("content-type", "").startswith("application/json"):
        parsed = json.loads(body or b"{}")
        return parsed if isinstance(parsed, dict) else {}
    return _pairs(body.decode("utf-8", "replace"))


def _payload(reply: Reply) -> bytes:
    if reply.body is not None:
        return reply.body.encode() if isinstance(reply.body, str) else reply.body
    if reply.status >= 595:
        return b""
    envelope: dict[str, Any] = {"data": reply.data}
    if reply.total is not None:
        envelope["total"] = reply.total
    if reply.status >= 400:
        envelope["message"] = f"{reply.message or reply.reason or _REASONS.get(reply.status, '')}\n"
    if reply.errors is not None:
        envelope["errors"] = dict(reply.errors)
    return json.dumps(envelope, separators=(",", ":")).encode()


# certificates


@dataclass(frozen=True, slots=True)
class Certificate:
    """A node's certificate, signed by an authority of its own as in a Proxmox cluster; files live as long as the process."""

    ca_file: Path
    cert_file: Path
    key_file: Path
    fingerprint: str  # SHA-256, upper-case hex pairs with colons

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert_file, self.key_file)
        return context


_FILES = Path(tempfile.mkdtemp(prefix="served-api-"))
atexit.register(shutil.rmtree, _FILES, ignore_errors=True)


@cache
def shared_certificate() -> Certificate:
    """The certificate that every ServedApi presents unless a test brings another."""
    return new_certificate()


def new_certificate(*hosts: str, days: int = 2) -> Certificate:
    """A fresh authority and a certificate for `hosts` (default: loopback); negative `days`: expired."""
    now = datetime.datetime.now(datetime.UTC)
    until = now + datetime.timedelta(days=days)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Proxmox Virtual Environment (test)")])
    names: list[x509.GeneralName] = []
    for host in hosts or ("127.0.0.1", "::1", "localhost"):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))

    def base(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=10))
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )

    def usage(*, ca: bool) -> x509.KeyUsage:
        return x509.KeyUsage(not ca, False, False, False, False, ca, ca, False, False)

    ca = (
        base(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(ca=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    leaf = (
        base(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pve1.lab.test")]), key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    folder = Path(tempfile.mkdtemp(dir=_FILES))
    pem = serialization.Encoding.PEM
    made = Certificate(folder / "ca.pem", folder / "node.pem", folder / "node.key", leaf.fingerprint(hashes.SHA256()).hex(":").upper())
    made.ca_file.write_bytes(ca.public_bytes(pem))
    made.cert_file.write_bytes(leaf.public_bytes(pem))
    made.key_file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    return made


# how a client finds it


def settings(*apis: ServedApi, **changes: Any) -> Settings:
    """Settings that reach these served APIs (members of one cluster, in this order) with the fingerprint pinned."""
    values: dict[str, Any] = {
        "members": tuple(Member("127.0.0.1", api.port) for api in apis),
        "user": TOKEN_ID.partition("!")[0],
        "token_name": TOKEN_ID.partition("!")[2],
        "token_value": SECRET,
        "tls_fingerprint": apis[0].fingerprint if apis else "",
        "timeout": 5.0,
        **changes,
    }
    return Settings(**values)


@asynccontextmanager
async def client(*apis: ServedApi, **changes: Any) -> AsyncIterator[HttpClient]:
    """The REST client on these served APIs, closed at the end."""
    http = HttpClient(settings(*apis, **changes))
    try:
        yield http
    finally:
        await http.close()


def environment(*apis: ServedApi, **changes: str) -> dict[str, str]:
    """The same as environment variables, for a server that runs as a process."""
    values = {
        "PROXMOX_HOST": ",".join(f"127.0.0.1:{api.port}" for api in apis),
        "PROXMOX_USER": TOKEN_ID.partition("!")[0],
        "PROXMOX_TOKEN_NAME": TOKEN_ID.partition("!")[2],
        "PROXMOX_TOKEN_VALUE": SECRET,
        "PROXMOX_TLS_FINGERPRINT": apis[0].fingerprint,
        "PROXMOX_TIMEOUT": "5",
    }
    return {**values, **changes}
