"""A TLS server on loopback that says exactly the bytes a test wants, or nothing at all."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from proxmox_mcp.config import Settings
from tests import served_api

Behaviour = Callable[["Connection"], None]


class Connection:
    """One accepted connection after its TLS handshake; `number` counts from 1."""

    def __init__(self, number: int, sock: ssl.SSLSocket, server: RawServer) -> None:
        self.number, self._sock, self._server = number, sock, server

    def request(self) -> bytes:
        """The next request, head and body; b"" when the client has closed."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self._sock.recv(65536)
            if not more:
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        while len(body) < length:
            body += self._sock.recv(65536)
        self._server.requests.append(head + b"\r\n\r\n" + body)
        return self._server.requests[-1]

    def say(self, data: bytes) -> None:
        self._sock.sendall(data)

    def wait(self) -> None:
        """Until the client goes away."""
        with suppress(OSError):
            while self._sock.recv(65536):
                pass


def json_reply(body: bytes, *, status: bytes = b"200 OK", extra: bytes = b"", length: int | None = None) -> bytes:
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json;charset=UTF-8\r\n" + extra
    return head + b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


class RawServer:
    """Context manager. `behave` runs once a connection, in a thread; the connection is closed when it returns."""

    def __init__(self, behave: Behaviour, *, tls: bool = True, certificate: served_api.Certificate | None = None) -> None:
        self.certificate = certificate or served_api.shared_certificate()
        self.requests: list[bytes] = []
        self.connections = 0  # accepted, whatever became of their handshake
        self._behave, self._tls = behave, tls
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._workers: list[threading.Thread] = []

    def settings(self, **changes: Any) -> Settings:
        from proxmox_mcp.config import Member

        values = {"members": (Member("127.0.0.1", self.port),), "tls_fingerprint": self.certificate.fingerprint}
        return served_api.settings(**(values | changes))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in (self._thread, *self._workers):
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            worker = threading.Thread(target=self._serve, args=(sock, self.connections), daemon=True)
            self._workers.append(worker)
            worker.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        self._open.add(sock)
        served: socket.socket = sock
        try:
            if self._tls:
                served = self.certificate.server_context().wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                self._open.add(served)
                self._open.discard(sock)
                served.do_handshake()
            self._behave(Connection(number, served, self))  # type: ignore[arg-type]
        except OSError:
            pass
        finally:
            self._open.discard(served)
            served.close()
