"""A connection to a real sshd that is cut at every stage: handshake, login, naming, command, output. Told honestly, run once at most."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from proxmox_mcp import audit, pipeline
from proxmox_mcp.app import App
from proxmox_mcp.errors import ProxmoxMcpError
from proxmox_mcp.registry import all_tools
from tests.piped import FakePerson
from tests.served_api import settings
from tests.sshd import Sshd, needs_sshd, start_sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
EXEC = next(tool for tool in all_tools() if tool.name == "proxmox_host_exec")
FLAGS = {"confirm": True, "i_understand_data_loss": True}


class Limited:
    """A relay that resets both ends once the server has sent `most` bytes, over all connections together; None: never."""

    def __init__(self, port: int, most: int | None) -> None:
        self._to, self._most, self.passed = port, most, 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Limited:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        there_and_back = ((reader, back, False), (there, writer, True))
        tasks = [asyncio.create_task(self._relay(source, sink, counted)) for source, sink, counted in there_and_back]
        self._tasks.update(tasks)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for sink in (writer, back):
            sink.transport.abort()

    async def _relay(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                if counted and self._most is not None:
                    data = data[: max(0, self._most - self.passed)]
                    self.passed += len(data)
                elif counted:
                    self.passed += len(data)
                sink.write(data)
                await sink.drain()
                if counted and self._most is not None and self.passed >= self._most:
                    return


@asynccontextmanager
async def reaching(sshd: Sshd, tmp_path: Path, most: int | None) -> AsyncIterator[tuple[App, Limited]]:
    async with Limited(sshd.port, most) as relay:
        known = tmp_path / "known_hosts"
        known.write_text(sshd.host_key_line.replace(f":{sshd.port} ", f":{relay.port} ") + "\n")
        target = sshd.target()
        app = App(
            settings(
                audit_dir=tmp_path / "audit",
                ssh_host="127.0.0.1",
                ssh_port=relay.port,
                ssh_user=target.user,
                ssh_key_path=target.key_file,
                ssh_known_hosts=str(known),
                ssh_timeout=2.0,
                approval="off",
            )
        )
        try:
            yield app, relay
        finally:
            await app.close()


async def append(app: App, file: Path) -> str:
    """Appends a line to a file over there; the text of the answer or of the error."""
    command = f"echo did >> {file}; head -c 20000 /dev/zero | tr '\\0' x"
    try:
        found = await pipeline.run(EXEC, {"command": command, "timeout": 20, **FLAGS}, app, FakePerson())
    except ProxmoxMcpError as error:
        return str(error)
    assert isinstance(found, pipeline.Result)
    return found.text


async def test_a_cut_at_every_stage_is_told_as_what_it_is(tmp_path: Path) -> None:
    with start_sshd(tmp_path) as sshd:
        async with reaching(sshd, tmp_path, None) as (app, relay):
            assert "exit status 0" in await append(app, tmp_path / "whole")
            whole = relay.passed
        assert whole > 20_000
        # dense where the handshake, the login and the requests are, sparse in the output
        stages = [*range(0, whole - 20_000, 120), *range(whole - 20_000, whole, 2_500), whole - 40, whole + 10_000]
        seen = set()
        for number, most in enumerate(stages):
            here = tmp_path / f"cut{number}"
            here.mkdir()
            file = here / "effect"
            async with reaching(sshd, here, most) as (app, _):
                text = await append(app, file)
            ran = file.read_text().count("did") if file.exists() else 0
            certain = text.startswith("exit status 0")
            unknown = "the connection was lost" in text or "outcome unknown" in text.lower()
            seen.add("done" if certain else "unknown" if unknown else "not run")
            assert ran <= 1, (most, text)
            if certain:
                assert ran == 1, (most, text)
                assert "x" * 1000 in text
            elif not unknown:
                assert ran == 0, (most, text)
            _check_record(here, ran=ran, certain=certain)
        assert seen == {"done", "unknown", "not run"}


def _check_record(here: Path, *, ran: int, certain: bool) -> None:
    """Each intent has its outcome, and the outcome of the command says no more than is known."""
    report = audit.verify(here / "audit", "host", audit.Keys.none())
    assert report.verdict == "INTACT", report.text()
    log = [json.loads(line) for line in audit.export(here / "audit", "host")]
    commands = {entry["seq"]: entry for entry in log if entry["kind"] == "intent" and entry["record"]["argv"][:1] != ["uname"]}
    ends = [entry["record"] for entry in log if entry["kind"] == "outcome" and entry["of"] in commands]
    assert len(ends) == len(commands) <= 1
    if ran:
        assert ends[0]["state"] in ("ended", "unknown")
    if certain:
        assert ends[0]["exit"] == 0
