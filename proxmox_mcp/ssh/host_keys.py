"""known_hosts: which keys are expected of a host, and what to say when it shows another one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
from asyncssh.public_key import get_default_certificate_algs, get_default_public_key_algs

from proxmox_mcp.errors import ConfigError, HostKeyChanged, HostKeyUnknown, SshError
from proxmox_mcp.ssh_targets import SshTarget

_SYSTEM = Path("/etc/ssh/ssh_known_hosts")


@dataclass(frozen=True)
class Expected:
    """What known_hosts says about one host. `recorded` are the keys under exactly this host and port; `path` is where to add one."""

    host: str
    port: int
    path: Path
    trusted: Sequence[asyncssh.SSHKey] = ()
    authorities: Sequence[asyncssh.SSHKey] = ()
    revoked: Sequence[asyncssh.SSHKey] = ()
    recorded: Sequence[asyncssh.SSHKey] = field(default=())

    @property
    def entry(self) -> str:
        """How known_hosts names the host."""
        return self.host if self.port == 22 else f"[{self.host}]:{self.port}"

    @property
    def for_asyncssh(self) -> tuple[Sequence[asyncssh.SSHKey], ...]:
        """Trusted, authorities, revoked; X.509 is not used."""
        return (self.trusted, self.authorities, self.revoked, (), (), (), ())

    @property
    def algorithms(self) -> list[str]:
        """Key types to ask for: those on record first, or a host with several keys would show one that is not."""
        ours = [name for key in self.trusted for name in key.sig_algorithms]
        certificates = get_default_certificate_algs() if self.authorities else []
        return [name.decode() for name in dict.fromkeys([*certificates, *ours, *get_default_public_key_algs()])]


def expected(target: SshTarget, host: str, port: int, files: Sequence[Path] = ()) -> Expected:
    """Look the host up by the name that was configured, never by its address: a name that resolves to another known machine is not it.

    `files`: what an OpenSSH configuration names. A missing file is an empty one, a line that cannot be read is passed over, both as in
    OpenSSH. Raises ConfigError when a file exists and cannot be read.
    """
    if isinstance(target.known_hosts, Path):
        files = [target.known_hosts]
    elif not files:
        files = [Path(os.path.expanduser("~/.ssh/known_hosts")), _SYSTEM]
    known = asyncssh.import_known_hosts("")
    for path in files:
        for line in _lines(path, target):
            try:
                known.load(line)
            except ValueError:
                continue
    host = host.lower()
    entry = host if port == 22 else f"[{host}]:{port}"
    exact = known.match(entry, "", None)
    # a key under the plain name serves other ports too, but another key there is no alarm: it is another server
    plain = known.match(host, "", None)
    return Expected(
        host,
        port,
        files[0],
        trusted=exact[0] or ([] if exact[1] else plain[0]),
        authorities=exact[1] or ([] if exact[0] else plain[1]),
        revoked=[*exact[2], *plain[2]],
        recorded=exact[0],
    )


def refusal(target: SshTarget, known: Expected, shown: asyncssh.SSHKey | None, said: str) -> SshError:
    """The error for a host whose key was not accepted; `shown` is the key it presented (None: revoked, or a bad certificate)."""
    place = f"{target.name} ({known.host} port {known.port})"
    forget = f"ssh-keygen -R {shlex.quote(known.entry)} -f {shlex.quote(str(known.path))}"
    if shown is None:
        return HostKeyChanged(
            f"THE HOST KEY OF {place} IS NOT ACCEPTED: {said}. Nothing was run.",
            hint=f"It is revoked in {known.path}, or its certificate is wrong: find out why before anything else.",
        )
    kind, fingerprint = shown.get_algorithm(), shown.get_fingerprint()
    line = " ".join([known.entry, *shown.export_public_key("openssh").decode().split()[:2]])
    if known.recorded:
        before = ", ".join(f"{key.get_algorithm()} {key.get_fingerprint()}" for key in known.recorded)
        return HostKeyChanged(
            f"THE HOST KEY OF {place} HAS CHANGED. Someone may be answering in its place; nothing was run and no password was sent.",
            said=f"it shows {kind} {fingerprint}; {known.path} has {before}",
            hint=(
                "Do not go on unless the machine was reinstalled or its keys were renewed. Compare on its own console: "
                f"{_on_console(kind)}. Only if it is the same: {forget}, then add this line to {known.path}: {line}"
            ),
        )
    scan = f"ssh-keyscan -p {known.port} -t {_short(kind)} {shlex.quote(known.host)} >> {shlex.quote(str(known.path))}"
    return HostKeyUnknown(
        f"The host key of {place} is not in {known.path}; nothing was run and no password was sent.",
        said=f"it shows {kind} {fingerprint}",
        hint=f"Compare the fingerprint on the machine's own console ({_on_console(kind)}). "
        f"If it is the same, add this line to {known.path}: {line} (or: {scan})",
    )


def _lines(path: Path, target: SshTarget) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as wrong:
        raise ConfigError(
            f"known_hosts of {target.name} cannot be read: {path}: {os.strerror(wrong.errno) if wrong.errno else wrong}.",
            hint="Name a file that the server's user can read (PROXMOX_SSH_KNOWN_HOSTS, or known_hosts of the entry).",
        ) from wrong


def _short(kind: str) -> str:
    return "ecdsa" if kind.startswith("ecdsa") else kind.removeprefix("ssh-")


def _on_console(kind: str) -> str:
    return f"ssh-keygen -lf /etc/ssh/ssh_host_{_short(kind)}_key.pub"
