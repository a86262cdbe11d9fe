"""What cannot be forced on sshd: servers that misbehave at a chosen moment, and a wire that goes dead."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncssh

from proxmox_mcp.ssh_targets import SshTarget
from tests.sshd import private_key

Process = asyncssh.SSHServerProcess[bytes]


class _Server(asyncssh.SSHServer):
    def __init__(self, password: str, interactive: bool) -> None:
        self._password, self._interactive = password, interactive

    def begin_auth(self, username: str) -> bool:
        return bool(self._password)

    def password_auth_supported(self) -> bool:
        return not self._interactive

    def validate_password(self, username: str, password: str) -> bool:
        return password == self._password

    def kbdint_auth_supported(self) -> bool:
        return self._interactive

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
        return ("", "Anmeldung", "", [("Kennwort: ", False)])

    def validate_kbdint_response(self, username: str, responses: Any) -> bool:
        return list(responses) == [self._password]


class _HangsUp(asyncssh.SSHServer):
    """Ends the connection when it is asked to run something, without an answer."""

    requests = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        return False

    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        server = self

        class Session(asyncssh.SSHServerSession[bytes]):
            def exec_requested(self, command: str) -> bool:
                _HangsUp.requests += 1
                server._connection.abort()
                return True

        return Session()


@contextlib.asynccontextmanager
async def hangs_up(tmp_path: Path) -> AsyncIterator[tuple[SshTarget, type[_HangsUp]]]:
    """A server that dies with the request to run a command; the class counts the requests."""
    _HangsUp.requests = 0
    host_key = private_key(tmp_path / "hangs_up")
    server = await asyncssh.listen("127.0.0.1", 0, server_factory=_HangsUp, server_host_keys=[str(host_key)], encoding=None)
    try:
        yield SshTarget("127.0.0.1", port=server.get_port(), use_agent=False, known_hosts="ignore", connect_timeout=5), _HangsUp
    finally:
        server.close()  # not waited for: from Python 3.12 on that would wait for the clients, which are closed later


@contextlib.asynccontextmanager
async def scripted(
    tmp_path: Path, handler: Callable[[Process], Awaitable[None]], *, password: str = "", interactive: bool = False
) -> AsyncIterator[SshTarget]:
    """A server that answers every command with `handler`; the target reaches it."""
    host_key = private_key(tmp_path / "scripted_host")
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=lambda: _Server(password, interactive),
        server_host_keys=[str(host_key)],
        process_factory=handler,
        encoding=None,
    )
    try:
        yield SshTarget(
            "127.0.0.1",
            port=server.get_port(),
            user="root",
            use_agent=False,
            known_hosts="ignore",
            connect_timeout=5,
            label="node scripted",
        )
    finally:
        server.close()  # not waited for: from Python 3.12 on that would wait for the clients, which are closed later


def marker(process: Process) -> bytes:
    """What the line that a server got would print first."""
    assert process.command
    token, proof = re.findall(r"\b[0-9a-f]{16}\b", process.command)[:2]
    return f"{token}{proof} 4999999 1\n".encode()


class Wire:
    """A relay to a port that can be cut (the other end sees a reset) or frozen (nothing passes any more, nothing is closed)."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.connections = 0
        self.port = 0

    async def __aenter__(self) -> Wire:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def freeze(self) -> None:
        """Connections made until now are dead for good; new ones work."""
        self._thawed = asyncio.Event()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, back]
        live = self._thawed = asyncio.Event()
        live.set()
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._relay(source, sink, live))
            self._tasks.add(task)

    async def _relay(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, live: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                if self._thawed is not live:
                    await asyncio.Event().wait()
                sink.write(data)
                await sink.drain()
            sink.close()
