"""The door to every shell: which machine is meant, whether it really is that one, the record before and after, one command.

No log, no command. A node's command runs on the node that was named or not at all; a container's runs through `pct exec` on the node that
holds it; a guest's on its entry of vm_ssh_hosts.json.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from proxmox_mcp import preview, text
from proxmox_mcp.config import Settings, require_ssh
from proxmox_mcp.errors import AuditError, ConfigError, InvalidArgument, ProxmoxMcpError, Refused
from proxmox_mcp.plan import HostCommand, HostTarget
from proxmox_mcp.ssh_targets import SshTarget, parse_endpoint, parse_known_hosts, parse_nodes, read_vm_hosts

if TYPE_CHECKING:
    from proxmox_mcp.audit import AuditLog, Which
    from proxmox_mcp.ssh import OnCancelled, Outcome, SshPool

PCT = "/usr/sbin/pct"
OnOutput = Callable[[str], Awaitable[None]]
# what detached itself is no part of a command: the unit of a long `zfs send`, a daemon
_ENDED = "it was ended on the far side, a unit or daemon that it had started was not"
_NOT_RUN = {"state": "not run", "text": "cancelled before it ran"}


@dataclass(frozen=True, slots=True)
class Place:
    """A machine that was reached and said its name."""

    name: str  # what `uname -n` says, its first label; the alias of a guest
    target: SshTarget


class Door:
    """The commands of one tool call."""

    def __init__(
        self,
        settings: Settings,
        pool: Callable[[], SshPool],
        log: Callable[[Which], AuditLog],
        stamp: Mapping[str, Any],
        remark: Callable[[str], None],
    ) -> None:
        """`stamp` goes into every record; `remark` takes what the answer must mention. Nothing is opened before the first command."""
        self._settings, self._pool, self._log, self._stamp, self._remark = settings, pool, log, stamp, remark

    async def node(self, name: str | None) -> Place:
        """The node of this name, or the configured SSH host when None.

        Raises Refused when no SSH target is configured for it or the machine at that address calls itself otherwise, ConfigError when
        SSH is not configured at all, or wrongly.
        """
        require_ssh(self._settings, guests=False)
        mapped = parse_nodes(self._settings.ssh_nodes)
        if name is not None and name in mapped:
            target = mapped[name].on(default_target(self._settings), label=f"node {name}")
            said = await self._hostname(target)
            if said != name:
                raise Refused(
                    f"PROXMOX_SSH_NODES sends {name} to {target.address}, and that machine calls itself {said}",
                    hint="correct PROXMOX_SSH_NODES",
                )
            return Place(said, target)
        target = default_target(self._settings)
        said = await self._hostname(target)
        if name is not None and said != name:
            raise Refused(
                f"no SSH target is configured for node {name}; PROXMOX_SSH_HOST ({target.address}) is {said} and serves only that node",
                hint=f"set PROXMOX_SSH_NODES={name}=<address of {name}>",
            )
        return Place(said, target)

    async def run(self, command: HostCommand, *, on_output: OnOutput | None = None) -> Outcome:
        """Runs one command. Raises SshError or Refused when nothing was run, AuditError when it could not be recorded beforehand."""
        where = command.target
        if where.alias is not None:
            place = Place(where.alias, self.guest(where.alias))
        else:
            place = await self.node(where.node)
        argv = command.argv if where.vmid is None else (PCT, "exec", str(where.vmid), "--", *command.argv)
        shown = preview.where(where if where.alias is not None else HostTarget(node=place.name, vmid=where.vmid))
        entry = {
            "target": shown,
            "address": place.target.address,
            "argv": preview.words(argv),
            **(_of_input(command.stdin) if command.stdin else {}),
            "timeout": command.timeout,
        }
        outcome: Outcome = await self._recorded(
            "vm" if where.alias is not None else "host",
            entry,
            lambda on_cancelled: self._pool().run(
                place.target,
                argv,
                stdin=command.stdin,
                timeout=command.timeout,
                max_bytes=command.max_bytes,
                on_output=on_output,
                host=None if where.alias is not None else place.name,
                on_cancelled=on_cancelled,
            ),
        )
        return outcome

    def guest(self, alias: str) -> SshTarget:
        """A registered guest. Raises InvalidArgument with the known aliases or what is wrong with this entry, ConfigError as `node`."""
        require_ssh(self._settings, guests=True)
        targets, problems = registered_guests(self._settings)
        if alias in targets:
            if targets[alias].known_hosts == "ignore":
                self._remark(f"the host key of {alias} is not verified (known_hosts: ignore)")
            return targets[alias]
        if alias in problems:
            raise InvalidArgument("alias", f"its entry in vm_ssh_hosts.json is wrong: {problems[alias]}")
        known = ", ".join(sorted(targets)) or "none"
        raise InvalidArgument("alias", f"not in vm_ssh_hosts.json; known: {known}", hint=f"add it to {guests_file(self._settings)}")

    async def _hostname(self, target: SshTarget) -> str:
        if target.known_hosts == "ignore":
            self._remark("SSH host keys are not verified (PROXMOX_SSH_KNOWN_HOSTS=ignore)")
        pool = self._pool()
        known: str | None = pool.known_hostname(target)
        if known is not None:
            return known
        entry = {"target": target.name, "address": target.address, "argv": ["uname", "-n"]}
        said: str = await self._recorded("host", entry, lambda on_cancelled: pool.hostname(target, on_cancelled=on_cancelled))
        return said

    async def _recorded(self, which: Which, entry: Mapping[str, Any], act: Callable[[OnCancelled], Awaitable[Any]]) -> Any:
        from proxmox_mcp.audit import aside

        log = self._log(which)
        intent = await aside(lambda: log.intent({**self._stamp, **entry}))
        found: Mapping[str, Any] = _NOT_RUN

        def on_cancelled(outcome: Outcome | None) -> None:
            nonlocal found
            found = _NOT_RUN if outcome is None else {**_facts(outcome), "text": f"cancelled while it ran; {_end_of(outcome)}"}

        try:
            await anyio.lowlevel.checkpoint()
            found = {"state": "unknown", "text": "cancelled while it ran"}
            result = await act(on_cancelled)
            found = _facts(result)
            return result
        except Exception as exc:
            # only our own errors say that nothing was run
            found = {"state": "not run" if isinstance(exc, ProxmoxMcpError) else "unknown", "text": text.clean(str(exc), 500)}
            raise
        finally:
            # a cancelled call gets no answer: the record is where the truth goes
            try:
                await aside(lambda: log.outcome(intent, found))
            except AuditError as exc:
                # a cancelled call mentions nothing to anybody: the log of the server does
                logging.getLogger(__name__).error("%s (%s)", exc.what, exc.said)
                self._remark(f"the outcome could not be recorded in the audit log: {exc.what}")


def _of_input(data: bytes) -> Mapping[str, Any]:
    return {"stdin_bytes": len(data), "stdin_sha256": hashlib.sha256(data).hexdigest()}


def _end_of(outcome: Outcome) -> str:
    if outcome.may_run_on:
        return "the far side did not confirm that it ended: it may still run"
    return "the connection was lost: it may have run to its end" if outcome.lost else _ENDED


def _facts(result: Any) -> Mapping[str, Any]:
    """What the record keeps of a command's end: sizes and a hash, never the output."""
    if isinstance(result, str):
        return {"state": "ok", "exit": 0, "hostname": result}
    known = result.exit_status is not None
    return {
        "state": "ended" if known else "unknown",
        "exit": result.exit_status if known else "unknown",
        "signal": result.signal,
        "lost": result.lost,
        "timed_out": result.timed_out,
        "capped": result.capped,
        "may_run_on": result.may_run_on,
        "seconds": round(result.duration, 3),
        "stdout_bytes": result.stdout_bytes,
        "stdout_sha256": result.stdout_sha256,
    }


def default_target(settings: Settings) -> SshTarget:
    """PROXMOX_SSH_HOST (default: the first member of PROXMOX_HOST) with the configured credentials. Raises ConfigError without either."""
    host = settings.ssh_host or (settings.members[0].host if settings.members else "")
    if not host:
        raise ConfigError("SSH is not configured.", hint="set PROXMOX_SSH_HOST and PROXMOX_SSH_KEY_PATH (or PROXMOX_SSH_PASSWORD)")
    target = SshTarget(
        host=host,
        port=settings.ssh_port,
        user=settings.ssh_user,
        key_file=settings.ssh_key_path,
        key_passphrase=settings.ssh_key_passphrase or None,
        password=settings.ssh_password or None,
        known_hosts=parse_known_hosts(settings.ssh_known_hosts),
        sudo=settings.ssh_sudo,
        config_file=settings.ssh_config,
        connect_timeout=settings.ssh_timeout,
        label=f"the SSH host {host}",
    )
    if not settings.ssh_jump:
        return target
    jump = parse_endpoint(settings.ssh_jump, "PROXMOX_SSH_JUMP").on(target, label=f"jump host {settings.ssh_jump}")
    return replace(target, jump=replace(jump, sudo=False))


def registered_guests(settings: Settings) -> tuple[dict[str, SshTarget], dict[str, str]]:
    """vm_ssh_hosts.json: alias -> target, alias -> what is wrong with its entry. Read anew each time, so that edits count at once."""
    if settings.vm_ssh_hosts is None:
        return {}, {}
    try:
        defaults = default_target(settings)
    except ConfigError:
        defaults = None
    return read_vm_hosts(settings.vm_ssh_hosts, defaults)


def guests_file(settings: Settings) -> Path | str:
    """Where guests are registered, for messages."""
    return settings.vm_ssh_hosts or "vm_ssh_hosts.json beside .env (or the file that PROXMOX_VM_SSH_HOSTS names)"
