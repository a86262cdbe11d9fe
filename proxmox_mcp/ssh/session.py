"""One channel: what the far side sends for one command, as it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncssh

from proxmox_mcp.ssh.command import Command
from proxmox_mcp.ssh.outcome import Capture, Decoder

# text that waits for a listener before reading pauses, characters
_PENDING = 262_144


class Session(asyncssh.SSHClientSession[bytes]):
    """The state of one command. `wake` is set whenever there is something to look at."""

    def __init__(self, command: Command, *, max_bytes: int, read_limit: int, listening: bool = False) -> None:
        self.command = command
        self.out = Capture(command.marker, max_bytes)
        self.err = Capture(command.marker, max_bytes)
        self.wake = asyncio.Event()
        self.heard = asyncio.Event()  # for the listener
        self.channel: asyncssh.SSHClientChannel[bytes] | None = None  # set once the far side has opened it
        self.exit_status: int | None = None
        self.signal: str | None = None
        self.eof = False
        self.closed = False
        self.error: Exception | None = None
        self.stopping = False
        self.paused = False
        self.last_data = 0.0
        self._read_limit = read_limit
        self._decoders = (Decoder(), Decoder()) if listening else None
        self._pending: list[str] = []
        self._pending_size = 0

    @property
    def over_limit(self) -> bool:
        """More was printed than is read of one command."""
        return self.out.total + self.err.total > self._read_limit

    @property
    def unheard(self) -> bool:
        """Text waits for the listener."""
        return bool(self._pending)

    @property
    def end_known(self) -> bool:
        return self.exit_status is not None or self.signal is not None

    @property
    def process(self) -> tuple[int, str] | None:
        """(pid, start time) of the command's first process, once it has reported them."""
        match self.out.started:
            case (pid, *start) if pid.isascii() and pid.isdigit() and int(pid) > 1:
                return int(pid), start[0] if start and start[0].isascii() and start[0].isdigit() else ""
        return None

    def stop(self) -> None:
        """Ask whoever watches this session to end the command."""
        self.stopping = True
        self.wake.set()

    def take(self) -> str:
        """The text that came since the last call."""
        text = "".join(self._pending)
        self._pending.clear()
        self._pending_size = 0
        if self.paused and self.channel and not self.over_limit:
            self.paused = False
            self.last_data = asyncio.get_running_loop().time()
            self.channel.resume_reading()
        return text

    def pause(self) -> None:
        """Read no more for now; the far side stalls when its window is full."""
        if self.channel and not self.closed:
            self.paused = True
            self.channel.pause_reading()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self.channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        stderr = datatype == asyncssh.EXTENDED_DATA_STDERR
        self.last_data = asyncio.get_running_loop().time()
        data = (self.err if stderr else self.out).feed(data)
        if self._decoders and data:
            text = self._decoders[stderr].feed(data)
            self._pending.append(text)
            self._pending_size += len(text)
            self.heard.set()
            if self._pending_size > _PENDING:
                self.pause()
        if self.over_limit:
            self.pause()
            self.wake.set()

    def eof_received(self) -> bool:
        self.eof = True
        return True  # keep our side open: the exit status is still to come

    def exit_status_received(self, status: int) -> None:
        self.exit_status = status
        self._ended()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.signal = signal
        self._ended()

    def _ended(self) -> None:
        # output may still be on its way: the time without any counts from here
        self.last_data = asyncio.get_running_loop().time()
        self.wake.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.error = exc
        self.wake.set()
        self.heard.set()


def open_session(connection: asyncssh.SSHClientConnection, session: Session) -> Any:
    """The request for a channel that runs the session's command (awaitable)."""
    return connection.create_session(lambda: session, session.command.line, encoding=None, request_pty=False)
