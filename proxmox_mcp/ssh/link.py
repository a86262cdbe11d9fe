"""One connection: sessions side by side, and one command from its start to its end, on the far side too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import asyncssh

from proxmox_mcp.errors import ProxmoxMcpError, SshError
from proxmox_mcp.ssh.command import ELSEWHERE, ending, prepare
from proxmox_mcp.ssh.outcome import Outcome, without_locale_noise
from proxmox_mcp.ssh.session import Session, open_session
from proxmox_mcp.ssh_targets import SshTarget

OnOutput = Callable[[str], Awaitable[None]]

# OpenSSH's server gives a connection ten sessions (MaxSessions): eight for commands, two for ending commands.
SESSIONS = 8
ENDERS = 2
# A process that was left in the background keeps the channel open; so long it may be silent after the command's own end.
LINGER = 1.5
# How long a listener may take over what came last.
LISTENER_TIME = 5.0
# How long ending a command may take in all, and over a connection that may be dead.
_END_TIME = 12.0
_ANSWER_TIME = 3.0


class NotRun(Exception):
    """The command was not started, certainly: the connection was dead, or no session could be opened."""

    def __init__(self, said: str, *, refused: bool) -> None:
        self.said, self.refused = said, refused
        super().__init__(said)


class Link:
    """An authenticated connection with room for SESSIONS commands at a time (fewer where the server says so)."""

    def __init__(self, connection: asyncssh.SSHClientConnection, target: SshTarget, reconnect: Callable[[], Awaitable[Link]]) -> None:
        """`reconnect` opens another connection to the same target, for ending what can no longer be ended over this one."""
        self.connection = connection
        self.target = target
        self._sessions = anyio.CapacityLimiter(SESSIONS)
        self.hostname = ""
        self.naming = asyncio.Lock()
        self._enders = anyio.CapacityLimiter(ENDERS)
        self._reconnect = reconnect
        self._retired = False

    @property
    def usable(self) -> bool:
        return not self._retired and not self.connection.is_closed()

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Room for one command, waited for when as many run as the server allows."""
        try:
            async with self._sessions:
                yield
        finally:
            self._close_when_done()

    def shrink(self) -> bool:
        """The server refused one more session: never ask for so many again. False when no other command runs that could make room."""
        others = int(self._sessions.borrowed_tokens) - 1
        if others:
            self._sessions.total_tokens = min(self._sessions.total_tokens, others)
        return others > 0

    def retire(self) -> None:
        """Give no more commands to it; those that run on it are left alone, with the last of them it is closed."""
        self._retired = True
        self._close_when_done()

    def _close_when_done(self) -> None:
        if self._retired and not self._sessions.borrowed_tokens:
            self.connection.close()

    async def close(self) -> None:
        self.connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self.connection.wait_closed()
        self.connection.abort()

    async def execute(
        self, session: Session, *, timeout: float, sudo: bool = False, on_output: OnOutput | None = None, by_force: bool = True
    ) -> Outcome:
        """Run the session's command to its end. It is ended on the far side on `session.stop()`, after `timeout` seconds, when it prints
        more than the session reads, and when on_output raises (the exception goes on).

        Raises NotRun, or SshError when the account's login shell did not start it.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._open(session)
        listener = asyncio.create_task(_listen(session, on_output)) if on_output else None
        try:
            why = await _watch(session, began + timeout)
            ended = True
            if why in ("stopped", "timed out", "capped"):
                ended = by_force and await self._end(session, sudo)
                await _settle(session, 1)
            if session.channel and not session.closed:
                session.channel.abort()
            duration = loop.time() - began
        finally:
            if listener:
                await _finish(listener, session)
        if listener and not listener.cancelled() and (failure := listener.exception()):
            raise failure
        return self.outcome(session, why, duration, may_run_on=not ended)

    def outcome(self, session: Session, why: str, duration: float, *, may_run_on: bool) -> Outcome:
        """What is known of a command that is not watched any more; `why` as from _watch. SshError when it was never started."""
        if session.out.started is not None and session.out.started[:1] == (ELSEWHERE,):
            raise SshError(
                f"{self.target.name} is another machine meanwhile: it calls itself {' '.join(session.out.started[1:])} now. "
                "The command was not run.",
                hint="An address that moves between machines (a virtual one) is no way to one of them.",
            )
        stdout, omitted, broken_out = session.out.text()
        stderr, omitted_stderr, broken_err = session.err.text()
        if session.out.started is None and session.err.started is None:
            noise = (bytes(session.out.noise) + bytes(session.err.noise)).decode(errors="replace").strip()
            if why in ("closed", "lingering") and session.end_known:
                raise SshError(
                    f"The login shell of {self.target.user} on {self.target.name} did not start the command "
                    f"({f'signal {session.signal}' if session.signal else f'exit status {session.exit_status}'}). The command was not run.",
                    said=noise[-500:],
                    hint="The account needs a shell (not nologin), and no forced command or profile that ends the session.",
                )
            stderr = f"[printed before the command started]\n{noise[-2000:]}" if noise else ""
        # output is complete once its end has come, however the connection went afterwards
        cut = session.error is not None and not session.eof
        lost = (why == "closed" and cut) or (why in ("closed", "stopped") and not session.end_known)
        # what a program says on being ended (some answer SIGTERM with exit 0) is not the status of its work
        ended_here = why in ("stopped", "timed out", "capped")
        return Outcome(
            exit_status=None if lost or ended_here else session.exit_status,
            signal=session.signal,
            lost=lost,
            timed_out=why == "timed out",
            capped=why == "capped",
            stdout=stdout,
            stderr=without_locale_noise(stderr),
            omitted_bytes=omitted,
            omitted_stderr=omitted_stderr,
            replaced=broken_out or broken_err,
            duration=duration,
            stdout_bytes=session.out.total,
            stdout_sha256=session.out.sha256,
            may_run_on=may_run_on,
            open_end=why == "lingering" and not session.eof,
        )

    async def _open(self, session: Session) -> None:
        try:
            async with asyncio.timeout(self.target.connect_timeout):
                await open_session(self.connection, session)
        except (asyncssh.Error, OSError) as wrong:
            gone = self.connection.is_closed() or isinstance(wrong, TimeoutError)
            if gone:
                self.retire()
            if session.channel is None or (isinstance(wrong, asyncssh.ChannelOpenError) and not gone):
                raise NotRun(str(wrong) or "no answer", refused=not gone) from wrong
            # the request to run it may have arrived, its answer did not
            session.connection_lost(wrong)
            return
        assert session.channel is not None
        # the far side may have ended already and take no more input
        with suppress(OSError):
            if session.command.stdin:
                session.channel.write(session.command.stdin)
            session.channel.write_eof()

    async def _end(self, session: Session, sudo: bool) -> bool:
        """End the command on the far side; False when it could not be confirmed."""
        if session.out.started is None and await self._kill(session):
            # a login shell that hangs in its profile would hang with the script too
            return True
        script = ending(session.command.token, session.process)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_TIME), self._enders:
                for privileged in (True, False) if sudo else (False,):
                    if await self._answer(script, privileged) == "left":
                        return True
        return False

    async def _kill(self, session: Session) -> bool:
        """SIGKILL by the server's own hand. OpenSSH's does that for the process group, but not for root and not for what sudo runs."""
        if session.channel and not session.closed:
            with suppress(OSError):
                session.channel.kill()
        await _settle(session, 0.4)
        return session.end_known

    async def _answer(self, script: str, sudo: bool) -> str:
        """The script's last line; over a connection of its own where this one has no room or is dead."""
        with suppress(NotRun, ProxmoxMcpError, TimeoutError):
            if not self.connection.is_closed():
                async with asyncio.timeout(_ANSWER_TIME if self._retired else _END_TIME - 2 * _ANSWER_TIME):
                    return await self._ask(script, sudo)
        with suppress(NotRun, ProxmoxMcpError):
            other = await self._reconnect()
            try:
                return await other._ask(script, sudo)
            finally:
                await other.close()
        return ""

    async def _ask(self, script: str, sudo: bool) -> str:
        command = prepare(["sh", "-c", script], timeout=_END_TIME, sudo=sudo)
        session = Session(command, max_bytes=10_000, read_limit=1_000_000)
        outcome = await self.execute(session, timeout=_END_TIME, by_force=False)
        return outcome.stdout.strip().rpartition("\n")[2]


async def _watch(session: Session, deadline: float) -> str:
    """Wait for the end of the command or for a reason to end it: "closed", "lingering", "stopped", "timed out", "capped"."""
    loop = asyncio.get_running_loop()
    while True:
        session.wake.clear()
        if session.closed:
            return "closed"
        if session.stopping:
            return "stopped"
        if session.over_limit:
            return "capped"
        until = deadline
        if session.end_known and not session.paused:
            until = min(deadline, session.last_data + LINGER)
        left = until - loop.time()
        if left <= 0:
            return "lingering" if session.end_known and until < deadline else "timed out"
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await session.wake.wait()


async def _settle(session: Session, seconds: float) -> None:
    """Give the far side a moment to say how the command ended."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not (session.end_known or session.closed):
                session.wake.clear()
                await session.wake.wait()


async def _listen(session: Session, on_output: OnOutput) -> None:
    try:
        while True:
            await session.heard.wait()
            session.heard.clear()
            if text := session.take():
                await on_output(text)
            if session.closed and not session.unheard:
                return
    except Exception:
        session.stop()
        raise


async def _finish(listener: asyncio.Task[None], session: Session) -> None:
    """Let the listener take what is left, but do not wait for ever."""
    session.closed = True
    session.heard.set()
    done, _ = await asyncio.wait({listener}, timeout=LISTENER_TIME)
    if not done:
        listener.cancel()
        await asyncio.wait({listener})
