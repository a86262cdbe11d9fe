"""What was configured: one frozen Settings, and the one error for a configuration that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from proxmox_mcp.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Member:
    """One address of the cluster's API: host without scheme and brackets, port. `str()` is host:port, [::1]:8006 for IPv6."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked. Secrets stay out of repr.

    `problems` lists what is missing or wrong (one sentence with the mending step each): the server starts all the same, and the first call
    that needs the API raises ConfigError with them. `ssh_problems` are the same for what only SSH needs. A gate that is set wrong is
    closed. `searched` are the places where a .env file was looked for.
    """

    members: tuple[Member, ...] = ()
    user: str = ""  # user@realm
    token_name: str = ""
    token_value: str = field(default="", repr=False)
    verify_tls: bool = True
    ca_file: Path | None = None
    tls_fingerprint: str = ""  # SHA-256, upper-case hex pairs with colons; several (one a member) are separated by commas
    timeout: float = 30.0  # seconds for one request
    max_concurrency: int = 8
    proxy: str = field(default="", repr=False)
    # gates
    read_only: bool = False
    approval: Literal["off", "data_loss", "all"] = "data_loss"
    approval_fallback: Literal["allow", "deny"] = "allow"
    max_wait: float = 50.0  # seconds
    # choice of tools
    toolsets: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    allow_vmids: tuple[tuple[int, int], ...] = ()  # inclusive ranges; empty: no limit
    allow_nodes: tuple[str, ...] = ()
    limit_reads: bool = False  # reads too show only what the two name
    # audit
    audit_dir: Path | None = None  # None: the user's state directory
    audit_hmac_key: str = field(default="", repr=False)
    audit_hmac_key_file: Path | None = None
    # SSH to nodes
    ssh_host: str = ""  # default: the first member's host
    ssh_port: int = 22
    ssh_user: str = "root"
    ssh_key_path: Path | None = None
    ssh_key_passphrase: str = field(default="", repr=False)
    ssh_password: str = field(default="", repr=False)
    ssh_known_hosts: str = ""  # a path, "ignore", or "" for the user's own
    ssh_nodes: str = ""  # pve2=10.0.0.2,pve3=pve3.lan:2222
    ssh_jump: str = ""
    ssh_sudo: bool = False
    ssh_timeout: float = 30.0  # seconds for a connection
    ssh_config: Path | None = None
    vm_ssh_hosts: Path | None = None  # where vm_ssh_hosts.json is, found or named
    zfs_send_dirs: tuple[str, ...] = ()
    allow_secret_reads: bool = False
    # where it came from
    problems: tuple[str, ...] = ()
    ssh_problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # said once on stderr: TLS verification off, host keys ignored ...
    searched: tuple[Path, ...] = ()
    env_file: Path | None = None


def require_api(settings: Settings) -> None:
    """Raises ConfigError naming every problem and the places searched when the API cannot be used with these settings."""
    if settings.problems:
        # a misspelt name, or a file that was passed over, is often what became of what is missing
        raise _error("The server is not configured", settings.problems + settings.warnings, settings)
    if not settings.members:
        raise _error("The server is not configured", ("PROXMOX_HOST is not set.",), settings)


def require_ssh(settings: Settings, *, guests: bool) -> None:
    """The same for what only SSH needs: to registered guests, or to nodes, which a missing register of guests does not touch."""
    problems = tuple(problem for problem in settings.ssh_problems if guests or not problem.startswith("PROXMOX_VM_SSH_HOSTS"))
    if problems:
        raise _error("SSH is not configured", problems, settings)


def _error(what: str, problems: tuple[str, ...], settings: Settings) -> ConfigError:
    if not settings.searched and not any("PROXMOX_" in problem for problem in problems):
        return ConfigError(f"{what}: {' '.join(problems)}")  # the demo: no variable would mend it
    searched = ", ".join(str(path) for path in settings.searched)
    return ConfigError(
        f"{what}: {' '.join(problems)}",
        tried=f"the environment and {searched}" if searched else "the environment",
        hint="set the variables in the client's configuration block"
        + (" or in one of these files" if searched else "")
        + "; `pve-mcp doctor` checks them",
    )
