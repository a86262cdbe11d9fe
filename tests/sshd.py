"""A real OpenSSH server on loopback, with its own keys and configuration, and accounts that exist only during a test.

    with start_sshd(tmp_path) as sshd:
        outcome = await pool.run(sshd.target(), ["id", "-un"])

It runs as the user who runs the tests and lets that user in by key. Accounts with other shells or passwords need root.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from proxmox_mcp.ssh_targets import SshTarget

SSHD = Path("/usr/sbin/sshd")
needs_sshd = pytest.mark.skipif(not SSHD.exists(), reason="OpenSSH's sshd is not installed")
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make accounts")


@dataclass
class Sshd:
    """The running server. `known_hosts` holds its key; `client_key` is a private key it accepts; `home` is where commands begin and
    where the login shell looks for its profile, whatever the account's own is like."""

    port: int
    home: Path
    host_key: Path
    client_key: Path
    authorized_keys: Path
    known_hosts: Path
    config: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def host_key_line(self) -> str:
        """The server's line for a known_hosts file."""
        public = asyncssh.read_private_key(self.host_key).export_public_key().decode().split()
        return f"[127.0.0.1]:{self.port} {public[0]} {public[1]}"

    def target(self, **changes: Any) -> SshTarget:
        """How to get in: key, own known_hosts, no agent."""
        target = SshTarget(
            "127.0.0.1",
            port=self.port,
            user=getpass.getuser(),
            key_file=self.client_key,
            known_hosts=self.known_hosts,
            use_agent=False,
            label="node test",
        )
        return replace(target, **changes)

    def start(self) -> None:
        """Listening when this returns."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        # a file, not a pipe: what is in it when a command has ended is complete
        command = [str(SSHD), "-D", "-E", str(self.log), "-f", str(self.config)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.005)

    def drop_connections(self) -> None:
        """Kill the processes that serve connections, not the commands that run on them."""
        assert self.process
        for pid in descendants(self.process.pid):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().startswith("sshd"):
                    os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Its processes stand still: what a machine does that hangs. The commands go on."""
        assert self.process
        pids = [pid for pid in descendants(self.process.pid) if Path(f"/proc/{pid}/comm").read_text().startswith("sshd")]
        for pid in (self.process.pid, *pids):
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in (self.process.pid, *pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """As when the machine goes down: connections and server end."""
        if self.process:
            self.drop_connections()
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def connections(self) -> int:
        """How many logins there were."""
        return self.log.read_text().count("Accepted publickey ") + self.log.read_text().count("Accepted password ")


@contextlib.contextmanager
def start_sshd(
    tmp_path: Path, *, options: Sequence[str] = (), host_keys: Sequence[str] = ("ssh-ed25519",), name: str = "sshd"
) -> Iterator[Sshd]:
    """A server whose files lie in tmp_path/name. `options` are lines of sshd_config; they win over the defaults here."""
    if not SSHD.exists():
        pytest.skip("OpenSSH's sshd is not installed")
    place = tmp_path / name
    place.mkdir(mode=0o755)
    host_key_files = [private_key(place / f"host_{kind}", kind) for kind in host_keys]
    client_key = private_key(place / "client", "ssh-ed25519")
    authorized = place / "authorized_keys"
    authorized.write_bytes(asyncssh.read_private_key(client_key).export_public_key())
    # sshd reads the file as the user who logs in; only the fixture's own directory is opened for that
    authorized.chmod(0o644)
    port = free_port()
    config = place / "sshd_config"
    home = place / "home"
    home.mkdir()
    lines = [
        *options,
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        *(f"HostKey {key}" for key in host_key_files),
        f"AuthorizedKeysFile {authorized} %h/authorized_keys",
        f"PidFile {place / 'pid'}",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin yes",
        "LogLevel VERBOSE",
        "UseDNS no",
        "MaxStartups 100",
        f"Match User {getpass.getuser()}",
        f"  SetEnv HOME={home}",
    ]
    config.write_text("\n".join(lines) + "\n")
    server = Sshd(port, home, host_key_files[0], client_key, authorized, place / "known_hosts", config, place / "log")
    server.known_hosts.write_text(server.host_key_line + "\n")
    server.start()
    try:
        yield server
    finally:
        server.stop()


@dataclass(frozen=True)
class Account:
    """A user of this machine, made for a test."""

    name: str
    home: Path
    password: str


@contextlib.contextmanager
def account(shell: str | Path, sshd: Sshd | None = None, *, password: str = "", files: dict[str, str] | None = None) -> Iterator[Account]:
    """A new user with this login shell and these files in its home. It accepts the server's client key. Needs root."""
    name = f"t{secrets.token_hex(5)}"
    home = Path(tempfile.mkdtemp(prefix="home-", dir="/tmp"))
    subprocess.run(["useradd", "--no-create-home", "--home-dir", home, "--shell", shell, "--password", "*", name], check=True)
    try:
        if password:
            subprocess.run(["chpasswd", "-c", "SHA512"], input=f"{name}:{password}\n", text=True, check=True)
        for path, text in (files or {}).items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        if sshd:
            (home / "authorized_keys").write_bytes(sshd.authorized_keys.read_bytes())
        subprocess.run(["chown", "-R", f"{name}:", home], check=True)
        home.chmod(0o755)
        yield Account(name, home, password)
    finally:
        subprocess.run(["pkill", "-KILL", "-u", name], check=False)
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)


def private_key(path: Path, kind: str = "ssh-ed25519", passphrase: str | None = None) -> Path:
    """A new private key in a file that only its owner can read."""
    key = asyncssh.generate_private_key(kind)
    path.touch(mode=0o600)
    key.write_private_key(str(path), passphrase=passphrase, rounds=4, ignore_few_rounds=True)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def descendants(pid: int) -> list[int]:
    """Process ids below pid, by /proc."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: list[int] = []
    queue = [pid]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


def processes(mark: str) -> list[int]:
    """Process ids that have the mark in their command line (this process apart)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found
