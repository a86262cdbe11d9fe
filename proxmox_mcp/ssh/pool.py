"""SshPool: one kept connection a target, replaced when it dies; commands side by side; nothing is ever run twice."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from proxmox_mcp.errors import SshAuthFailed, SshError, SshUnreachable
from proxmox_mcp.ssh.command import prepare
from proxmox_mcp.ssh.outcome import Outcome
from proxmox_mcp.ssh_targets import SshTarget

if TYPE_CHECKING:
    from proxmox_mcp.ssh.link import Link
    from proxmox_mcp.ssh.session import Session

# What is read of one command, bytes of stdout and stderr together, before it is ended: enough for everything that ends by itself.
READ_LIMIT = 64 * 1024 * 1024
# What may still take time once the end of the server is near: it has two seconds in all, and the record comes behind.
_CLOSING = 1.4
_TRIES = 8
_SHUTTING_DOWN = "The server is shutting down; nothing was run."
_SUDO_ASKS = re.compile(
    r"^sudo(?:-rs)?: (?:a password is required|a terminal is required.*|interactive authentication is required)$", re.MULTILINE
)
_HOST_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")

# Told when a call is cancelled: what is known of its command then, None when certainly nothing was run.
OnCancelled = Callable[[Outcome | None], None]


class SshPool:
    """Runs commands on targets. Every connection lives until `close`, or until it dies: then the next command gets a new one."""

    def __init__(self, *, read_limit: int = READ_LIMIT) -> None:
        self._read_limit = read_limit
        self._links: dict[SshTarget, Link] = {}
        self._opening: dict[SshTarget, asyncio.Task[Link]] = {}
        self._running: dict[asyncio.Task[Outcome], Session] = {}
        self._closed = False
        self._hurried = asyncio.Event()
        self._until = 0.0  # loop time; counts once it is hurried

    async def run(
        self,
        target: SshTarget,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout: float = 60,
        max_bytes: int = 200_000,
        on_output: Callable[[str], Awaitable[None]] | None = None,
        extra_env: Mapping[str, str] | None = None,
        host: str | None = None,
        on_cancelled: OnCancelled | None = None,
    ) -> Outcome:
        """Run one command to its end and say how it ended.

        Words of argv reach the program exactly; a word with line breaks must be a ShellText. stdin: bytes, then end of file (without:
        /dev/null). timeout: seconds from its start; the time for the connection is the target's. max_bytes: kept of stdout and of stderr
        each, half of it from the end. on_output gets stdout and stderr as text while they come. The environment is fixed (PATH with
        sbin, LC_ALL=C.UTF-8, no pager) plus extra_env. host: what `hostname` said; where the machine is called otherwise (a connection was
        replaced, and the address leads to another machine now), nothing is run.

        When the time is up, when it prints more than the pool reads, and when this call is cancelled, the command is ended on the far
        side. What it leaves in the background lives on, and does not hold the answer back. A connection that dies in between gives
        Outcome(lost=True): what the command did is not known, and it is not run again. on_cancelled hears what a cancelled call is not
        answered.

        Raises InvalidArgument, ConfigError, SshUnreachable, SshAuthFailed, HostKeyUnknown, HostKeyChanged, SshError; nothing was run then.
        """
        outcome, _ = await self._run(target, argv, stdin, timeout, max_bytes, on_output, extra_env, host, on_cancelled)
        return outcome

    async def hostname(self, target: SshTarget, *, on_cancelled: OnCancelled | None = None) -> str:
        """The first label of the machine's own name (`uname -n`), asked once a connection. Raises as `run`, SshError for no name."""
        try:
            link = await self._link(target)
        except asyncio.CancelledError:
            if on_cancelled:
                on_cancelled(None)
            raise
        async with link.naming:
            if not link.hostname:
                plain = replace(target, sudo=False)
                outcome, asked = await self._run(plain, ["uname", "-n"], None, 20, 1000, None, None, None, on_cancelled)
                label = outcome.stdout.strip().partition(".")[0]
                if not outcome.ok or not _HOST_LABEL.fullmatch(label):
                    raise SshError(
                        f"{target.name} did not tell its name.", tried="uname -n", said=outcome.stdout[:200] or outcome.stderr[:200]
                    )
                link.hostname = asked.hostname = label
            return link.hostname

    def known_hostname(self, target: SshTarget) -> str | None:
        """The name, when the connection that stands has told it already; None when `hostname` would have to ask."""
        link = self._links.get(_key(target))
        return link.hostname or None if link is not None and link.usable else None

    def hurry(self) -> None:
        """The server is about to end: from now on nobody waits long for a command to be ended. Safe to call again."""
        if not self._hurried.is_set():
            self._until = asyncio.get_running_loop().time() + _CLOSING
            self._hurried.set()

    async def close(self) -> None:
        """End what runs (within the time that `hurry` leaves, else it is left to its own limit), then close every connection."""
        self._closed = True
        self.hurry()
        for opening in self._opening.values():
            opening.cancel()
        for session in self._running.values():
            session.stop()
        if self._running:
            await asyncio.wait(list(self._running), timeout=self._left)
        links, self._links = list(self._links.values()), {}
        # a connection through a jump host is closed before the jump host's own
        for link in reversed(links):
            await link.close()
        for job in list(self._running):
            job.cancel()

    async def _run(
        self,
        target: SshTarget,
        argv: Sequence[str],
        stdin: bytes | None,
        timeout: float,
        max_bytes: int,
        on_output: Callable[[str], Awaitable[None]] | None,
        extra_env: Mapping[str, str] | None,
        host: str | None,
        on_cancelled: OnCancelled | None,
    ) -> tuple[Outcome, Link]:
        command = prepare(argv, timeout=timeout, sudo=target.sudo, stdin=stdin, extra_env=extra_env, host=host)
        from proxmox_mcp.ssh.link import NotRun
        from proxmox_mcp.ssh.session import Session

        said, failures = "", 0
        session: Session | None = None
        try:
            while failures < _TRIES:
                link = await self._link(target)
                async with link.room():
                    session = Session(command, max_bytes=max_bytes, read_limit=self._read_limit, listening=on_output is not None)
                    job = asyncio.create_task(link.execute(session, timeout=timeout, sudo=target.sudo, on_output=on_output))
                    try:
                        return _not_asked_by_sudo(target, await self._see_through(link, job, session, on_cancelled)), link
                    except NotRun as failure:
                        session, said = None, failure.said
                        if failure.refused:
                            if not link.shrink():
                                # a server clears a session away a moment after its end; keep our turn meanwhile
                                failures += 1
                                await asyncio.sleep(0.05 * failures)
                            continue
                link.retire()
                failures += 1
        except asyncio.CancelledError:
            if session is None and on_cancelled:
                on_cancelled(None)
            raise
        raise SshUnreachable(
            f"{target.name} accepts the connection but opens no session for a command; nothing was run.",
            said=said,
            hint="Check MaxSessions in its sshd_config.",
        )

    async def _see_through(self, link: Link, job: asyncio.Task[Outcome], session: Session, on_cancelled: OnCancelled | None) -> Outcome:
        """Wait for the job. Cancelled meanwhile: the command is ended first, then the cancellation goes on."""
        self._running[job] = session
        job.add_done_callback(self._forget)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            if job.cancelled():  # by close, which waited long enough
                return link.outcome(session, "stopped", 0.0, may_run_on=True)
            session.stop()
            with anyio.CancelScope(shield=True):
                await self._ended(job)
            if on_cancelled:
                on_cancelled(_at_the_end(link, job, session))
            raise

    async def _ended(self, job: asyncio.Task[Outcome]) -> None:
        """Returns when the job is over, or the server's own end leaves no more time."""
        hurried = asyncio.create_task(self._hurried.wait())
        try:
            await asyncio.wait({job, hurried}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurried.cancel()
        if not job.done():
            await asyncio.wait({job}, timeout=self._left)

    @property
    def _left(self) -> float:
        return max(0.0, self._until - asyncio.get_running_loop().time())

    def _forget(self, job: asyncio.Task[Outcome]) -> None:
        self._running.pop(job, None)
        if not job.cancelled():
            job.exception()  # the one who waited for it may be gone

    async def _link(self, target: SshTarget) -> Link:
        """The connection of the target; one handshake, however many ask for it at once."""
        if self._closed:
            raise SshError(_SHUTTING_DOWN)
        key = _key(target)
        link = self._links.get(key)
        if link and link.usable:
            return link
        opening = self._opening.get(key)
        if not opening:
            opening = asyncio.create_task(self._open(target, key))
            self._opening[key] = opening
            opening.add_done_callback(lambda done: self._opened(key, done))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled():
                raise SshError(_SHUTTING_DOWN) from None
            raise

    def _opened(self, key: SshTarget, opening: asyncio.Task[Link]) -> None:
        self._opening.pop(key, None)
        if not opening.cancelled():
            opening.exception()

    async def _open(self, target: SshTarget, key: SshTarget) -> Link:
        link = await self._connect(target)
        self._links.pop(key, None)
        self._links[key] = link
        return link

    async def _connect(self, target: SshTarget) -> Link:
        if self._closed:
            raise SshError(_SHUTTING_DOWN)
        from proxmox_mcp.ssh.connect import connect
        from proxmox_mcp.ssh.link import Link

        tunnel = (await self._link(target.jump)).connection if target.jump else None
        return Link(await connect(target, tunnel), target, lambda: self._connect(target))


def _key(target: SshTarget) -> SshTarget:
    """Two targets that differ only in what a command is run with share a connection."""
    return replace(target, sudo=False, label="", connect_timeout=0.0, jump=_key(target.jump) if target.jump else None)


def _at_the_end(link: Link, job: asyncio.Task[Outcome], session: Session) -> Outcome | None:
    """What is known of a command whose call was cancelled; None when certainly nothing was run."""
    from proxmox_mcp.ssh.link import NotRun

    try:
        if job.done() and not job.cancelled():
            return job.result()
        return link.outcome(session, "stopped", 0.0, may_run_on=True)
    except (NotRun, SshError):
        return None


def _not_asked_by_sudo(target: SshTarget, outcome: Outcome) -> Outcome:
    if target.sudo and outcome.exit_status not in (0, None) and not outcome.stdout and _SUDO_ASKS.search(outcome.stderr):
        raise SshAuthFailed(
            f"sudo on {target.name} asks {target.user} for a password, and there is nobody to type it; the command was not run.",
            said=outcome.stderr.strip()[-300:],
            hint=f"Allow it without one ({target.user} ALL=(root) NOPASSWD: ALL in a file in /etc/sudoers.d), or log in as root.",
        )
    return outcome
