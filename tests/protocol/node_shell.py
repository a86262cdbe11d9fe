"""An SSH server that carries commands out as a node would: the line it gets runs in a real shell, with stand-ins for a node's programs.

    with node_shell(tmp_path, programs={"journalctl": "echo hello"}) as shell:
        environment = shell.environment   # what the server needs to log in

`zfs` and `zpool` are the model of tests/zfs; a stand-in is taken for every spelling of its program: by name and by absolute path.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from proxmox_mcp.ssh.command import PATH
from tests.sshd import private_key
from tests.zfs.machine import Machine
from tests.zfs.node import Node

PASSWORD = "correct-horse-battery"
# `pct exec VMID -- program ...` is the program itself here
PCT = '[ "$1" = exec ] && [ "$3" = -- ] || { echo usage >&2; exit 255; }; shift 3; exec "$@"'


@dataclass
class NodeShell:
    """Where it listens and whom it lets in; `lines` are the scripts it ran."""

    port: int
    known_hosts: Path
    machine: Machine
    lines: list[str]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PROXMOX_SSH_HOST": "127.0.0.1",
            "PROXMOX_SSH_PORT": str(self.port),
            "PROXMOX_SSH_USER": "root",
            "PROXMOX_SSH_PASSWORD": PASSWORD,
            "PROXMOX_SSH_KNOWN_HOSTS": str(self.known_hosts),
        }


class _Door(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return password == PASSWORD


@contextmanager
def node_shell(tmp_path: Path, *, node: Node | None = None, programs: Mapping[str, str] | None = None) -> Iterator[NodeShell]:
    machine = Machine.make(tmp_path, node or Node.sample())
    for name, script in {"pct": PCT, **(programs or {})}.items():
        machine.program(name, script)
    host_key = private_key(tmp_path / "host_key")
    shell = NodeShell(0, tmp_path / "known_hosts", machine, [])
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="node shell", daemon=True)
    thread.start()

    async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
        script, token = _script(process.command or "")
        script = _with_stand_ins(script, machine)
        shell.lines.append(script)
        child = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", script, token),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(tmp_path), "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh", "PATH": machine.path},
            start_new_session=True,
        )
        assert child.stdin
        assert child.stdout
        assert child.stderr
        given = asyncio.create_task(_carry(process.stdin, child.stdin))
        try:
            await asyncio.gather(_carry(child.stdout, process.stdout), _carry(child.stderr, process.stderr))
            process.exit(await child.wait())
        finally:
            given.cancel()
            child._transport.close()  # type: ignore[attr-defined]  # what it left in the background may hold its pipes

    async def start() -> Any:
        return await asyncssh.listen(
            "127.0.0.1", 0, server_factory=_Door, server_host_keys=[str(host_key)], process_factory=serve, encoding=None
        )

    async def stop(server: Any) -> None:
        server.close()  # not waited for: from Python 3.12 on that would wait for the clients, which are closed later
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    shell.port = server.get_port()
    public = asyncssh.read_private_key(host_key).export_public_key().decode().split()
    shell.known_hosts.write_text(f"[127.0.0.1]:{shell.port} {public[0]} {public[1]}\n")
    try:
        yield shell
    finally:
        asyncio.run_coroutine_threadsafe(stop(server), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


async def _carry(source: Any, sink: Any) -> None:
    with contextlib.suppress(ConnectionError, asyncssh.Error):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
        if isinstance(sink, asyncio.StreamWriter):
            sink.close()


def _script(line: str) -> tuple[str, str]:
    """What the login line hands to /bin/sh, and its token: see ssh/command.py."""
    words = shlex.split(line)
    token, pieces = words[words.index("-c") + 2], words[words.index("-c") + 3 :]
    return re.sub(rb"\\0([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), "".join(pieces).encode()).decode(), token


def _with_stand_ins(script: str, machine: Machine) -> str:
    names = "|".join(sorted(path.name for path in machine.programs.iterdir()))
    absolute = re.sub(rf"(?<![\w./-])/(?:usr/)?(?:local/)?s?bin/({names})(?![\w./-])", rf"{machine.programs}/\1", script)
    return absolute.replace(PATH, machine.path)
