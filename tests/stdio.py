"""The server as a process, spoken to in raw lines of JSON-RPC: for what no client library lets one say."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class Server:
    """`python -m proxmox_mcp` (or another module) with these variables; `stderr` and `junk` (stdout lines that are no JSON) are kept."""

    def __init__(
        self, home: Path, env: Mapping[str, str], *args: str, capabilities: Mapping[str, Any] | None = None, module: str = "proxmox_mcp"
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env={"PATH": os.defpath, "HOME": str(home), "XDG_STATE_HOME": str(home), "PYTHONPATH": str(ROOT), **measuring(), **env},
        )
        self.stderr: list[str] = []
        self.junk: list[bytes] = []
        self.notes: list[dict[str, Any]] = []
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._kept: dict[Any, dict[str, Any]] = {}
        self._id = 0
        self._threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self._threads:
            thread.start()
        client = {"name": "test", "version": "1"}
        self.hello = self.request("initialize", protocolVersion="2025-11-25", capabilities=dict(capabilities or {}), clientInfo=client)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: Any) -> None:
        self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def start(self, method: str, **params: Any) -> int:
        """Send a request; its number."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    def start_call(self, tool: str, progress: str | None = None, **arguments: Any) -> int:
        meta = {"_meta": {"progressToken": progress}} if progress else {}
        return self.start("tools/call", name=tool, arguments=arguments, **meta)

    def answer(self, number: int, timeout: float = 30) -> dict[str, Any]:
        """The answer to a request, whatever order answers come in."""
        while number not in self._kept:
            found = self._answers.get(timeout=timeout)
            assert found is not None, "the server ended: " + "".join(self.stderr)[-2000:]
            self._kept[found.get("id")] = found
        return self._kept.pop(number)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        return self.answer(self.start(method, **params))

    def call(self, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Whether it failed, and its text."""
        return told(self.answer(self.start_call(tool, **arguments)))

    def end(self, timeout: float = 10) -> int:
        """Close its input and wait for its end; the exit status."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(timeout)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                self.junk.append(line)
                continue
            if "method" in message:
                self.notes.append(message)
            else:
                self._answers.put(message)
        self._answers.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.stderr.append(line.decode(errors="replace"))


def measuring() -> dict[str, str]:
    """What coverage hands down to processes, where it measures."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def told(answer: Mapping[str, Any]) -> tuple[bool, str]:
    assert "result" in answer, answer
    result = answer["result"]
    return bool(result.get("isError")), "\n".join(part["text"] for part in result["content"])


@contextmanager
def serving(
    home: Path, env: Mapping[str, str], *args: str, capabilities: Mapping[str, Any] | None = None, module: str = "proxmox_mcp"
) -> Iterator[Server]:
    server = Server(home, env, *args, capabilities=capabilities, module=module)
    try:
        yield server
    finally:
        server.close()
