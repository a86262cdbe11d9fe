"""App, the long-lived parts of one server, and Call, what one tool call may use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from proxmox_mcp import limits, secrets
from proxmox_mcp.config import Settings, require_api
from proxmox_mcp.errors import AuditError
from proxmox_mcp.looks import Looks
from proxmox_mcp.questions import Questions

if TYPE_CHECKING:
    from proxmox_mcp.audit import AuditLog, Keys, Which
    from proxmox_mcp.host_ssh import Door
    from proxmox_mcp.http_client import HttpClient
    from proxmox_mcp.inventory import Inventory
    from proxmox_mcp.ssh import SshPool


class App:
    """Settings, the API client, the SSH pool, the audit logs, the questions that wait for a person. Nothing is opened before it is used."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.clock = clock
        self.questions = Questions()
        self.looks = Looks()
        self._logs: dict[Which, AuditLog] = {}
        self._calls: dict[anyio.CancelScope, anyio.Event] = {}

    @cached_property
    def api(self) -> HttpClient:
        if limits.limits_reads(self.settings):
            from proxmox_mcp.limited_reads import LimitedClient

            return LimitedClient(self.settings)
        from proxmox_mcp.http_client import HttpClient

        return HttpClient(self.settings)

    @cached_property
    def ssh(self) -> SshPool:
        from proxmox_mcp.ssh import SshPool

        return SshPool()

    @cached_property
    def audit_dir(self) -> Path:
        if self.settings.audit_dir is not None:
            return self.settings.audit_dir
        from platformdirs import user_state_path

        try:
            return user_state_path("pve-mcp", appauthor=False)
        except RuntimeError:
            raise AuditError(
                "There is no home directory to keep the audit log in, so nothing was sent.", hint="set PROXMOX_AUDIT_DIR (or HOME)"
            ) from None

    @cached_property
    def audit_keys(self) -> Keys:
        from proxmox_mcp.audit import Keys

        return Keys.load(self.settings.audit_hmac_key or None, self.settings.audit_hmac_key_file)

    def log(self, which: Which) -> AuditLog:
        """The audit log of API changes, node commands or guest commands."""
        if which not in self._logs:
            from proxmox_mcp.audit import AuditLog

            self._logs[which] = AuditLog(self.audit_dir, which, keys=self.audit_keys, mask=secrets.mask_text)
        return self._logs[which]

    @contextmanager
    def tracked(self) -> Iterator[anyio.CancelScope]:
        """A call under way, so that the end of the server can cancel it and wait for its outcome to be written."""
        done = anyio.Event()
        with anyio.CancelScope() as scope:
            self._calls[scope] = done
            try:
                yield scope
            finally:
                del self._calls[scope]
                done.set()

    def hurry(self) -> None:
        """The end of the server is near: what is being ended elsewhere gets a moment more, not all the time that it may need."""
        if "ssh" in self.__dict__:
            self.ssh.hurry()

    async def cancel_calls(self) -> None:
        """Cancels the calls under way and waits until each has written its outcome."""
        self.hurry()
        calls = list(self._calls.items())
        for scope, _ in calls:
            scope.cancel()
        for _, done in calls:
            await done.wait()

    async def close(self) -> None:
        """Ends connections and files; safe to call when nothing was opened."""
        if "ssh" in self.__dict__:
            await self.ssh.close()
        if "api" in self.__dict__:
            await self.api.close()
        for log in self._logs.values():
            log.close()


@dataclass(frozen=True)
class Stamp:
    """Who asked for what, for every audit record of a call."""

    tool: str
    risk: str = "read"
    reason: str = ""
    flags: tuple[str, ...] = ()  # the gates that were given
    approved: str = ""  # "person", "flags" or why nobody was asked

    def entry(self) -> Mapping[str, Any]:
        return {"tool": self.tool, "risk": self.risk, "reason": self.reason, "flags": list(self.flags), "approved": self.approved}


@dataclass
class Call:
    """One tool call, or one building of its plan: the cache of the inventory lives as long as this."""

    app: App
    stamp: Stamp
    cursor: str | None = None
    remarks: list[str] = field(default_factory=list)  # what the answer must mention besides: an unverified host key, an unwritten outcome

    def remark(self, words: str) -> None:
        """Something that the answer mentions, once."""
        if words not in self.remarks:
            self.remarks.append(words)

    @property
    def settings(self) -> Settings:
        return self.app.settings

    @property
    def api(self) -> HttpClient:
        """The REST client; ConfigError with every missing variable when it cannot be used."""
        require_api(self.settings)
        return self.app.api

    @cached_property
    def inventory(self) -> Inventory:
        from proxmox_mcp.inventory import Inventory

        return Inventory(self.api)

    @cached_property
    def door(self) -> Door:
        """The one audited way to run a command on a node, in a container or on a registered guest."""
        from proxmox_mcp.host_ssh import Door

        return Door(self.settings, lambda: self.app.ssh, self.app.log, self.stamp.entry(), self.remark)

    def now(self) -> float:
        """Unix seconds."""
        return self.app.clock()
