"""The embedded demo cluster (extra `demo`): `--demo` serves it to any client, `pve-mcp try` shows a client at work on it."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proxmox_mcp import clients
from proxmox_mcp.errors import ConfigError

if TYPE_CHECKING:
    from proxmox_mcp.config import Settings
    from proxmox_mcp.demo.api import DemoCluster

USER, TOKEN = "root@pam", "demo"
CALLS = ("proxmox_health_overview", "proxmox_list_vms")
_START_TIMEOUT = 30  # seconds


class Demo:
    """A demo cluster that runs in a thread of its own; `cluster` is its state, `port` and `fingerprint` where and how to reach it."""

    def __init__(self, cluster: DemoCluster, fingerprint: str, secret: str) -> None:
        self.cluster, self.fingerprint, self.secret = cluster, fingerprint, secret
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo cluster", daemon=True)

    @property
    def port(self) -> int:
        return int(self.cluster.port)

    def start(self, certificate: str, key: str) -> None:
        self._thread.start()
        self._run(self.cluster.start(certificate, key))

    def stop(self) -> None:
        self._run(self.cluster.stop())
        self._run(_cancel_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_TIMEOUT)
        self._loop.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_TIMEOUT)


async def _cancel_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


@contextmanager
def started() -> Iterator[Demo]:
    """A demo cluster on a free loopback port, over TLS. ConfigError when the extra is not installed."""
    require()
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from fakepve.certs import make_cert

    from proxmox_mcp.demo.api import DemoCluster

    secret = secrets.token_hex(16)
    cluster = DemoCluster()
    cluster.password = secrets.token_hex(16)
    cluster.apitokens[f"{USER}!{TOKEN}"] = secret
    directory = tempfile.mkdtemp(prefix="pve-mcp-demo-")
    try:
        certificate, key, der = make_cert(directory)
        digest = x509.load_der_x509_certificate(der).fingerprint(hashes.SHA256()).hex(":").upper()
        demo = Demo(cluster, digest, secret)
        demo.start(certificate, key)
    finally:
        shutil.rmtree(directory, ignore_errors=True)  # both files are loaded by now
    try:
        yield demo
    finally:
        demo.stop()


@contextmanager
def running(settings: Settings) -> Iterator[Settings]:
    """The settings for a demo cluster that runs meanwhile.

    Of the given settings only the gates, the choice of tools and the place of the audit record stay: nothing of a real cluster, of its
    nodes' SSH or of registered guests can be reached. The record goes to a directory `demo` beside the real one.
    """
    with started() as demo:
        yield settings_for(demo, settings)


def settings_for(demo: Demo, given: Settings) -> Settings:
    """See `running`."""
    from proxmox_mcp.app import App
    from proxmox_mcp.config import Member, Settings

    kept: tuple[str, ...] = ("read_only", "approval", "approval_fallback", "max_wait", "toolsets", "tools", "exclude_tools")
    kept += ("allow_vmids", "allow_nodes", "limit_reads")
    return replace(
        Settings(),
        members=(Member("127.0.0.1", demo.port),),
        user=USER,
        token_name=TOKEN,
        token_value=demo.secret,
        tls_fingerprint=demo.fingerprint,
        audit_dir=App(given).audit_dir / "demo",
        # without this its API's address, this machine, would be taken for the node to log in to
        ssh_problems=("The machines of the demo cluster are made up: none of them has a shell.",),
        **{name: getattr(given, name) for name in kept},
    )


def require() -> None:
    """ConfigError when the extra `demo` is not installed."""
    try:
        import cryptography
        import fakepve
    except ModuleNotFoundError as exc:
        raise ConfigError(
            f"The demo cluster needs the extra `demo` (no module {exc.name}).",
            hint=f'install it: "{sys.executable}" -m pip install "pve-mcp[demo]"  (from a checkout: pip install ".[demo]"; with uv: '
            'uvx --from "pve-mcp[demo]>=2" pve-mcp try)',
        ) from None
    del cryptography, fakepve


def show() -> int:
    """`pve-mcp try`: starts the server as a client would, asks it two questions, prints the answers and how to go on."""
    require()
    import anyio

    return anyio.run(_show)


async def _show() -> int:
    from mcp import Client, StdioServerParameters

    command = [*clients.starting(), "--demo"]
    print(f"Starting the server on a demo cluster, as a client would:\n  {' '.join(command)}", flush=True)
    failed = False
    try:
        async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
            tools = (await client.list_tools()).tools
            print(f"It offers {len(tools)} tools. Two of them, called:", flush=True)
            for name in CALLS:
                result = await client.call_tool(name, {})
                failed = failed or bool(result.is_error)
                answer = "\n".join(part.text for part in result.content if part.type == "text")
                print(f"\n> {name}\n{textwrap.indent(answer, '  ')}", flush=True)
    except* Exception as broken:
        # what the server itself had to say stands on standard error already
        raise ConfigError(f"The server ended before it had answered: {_innermost(broken)}") from None
    block = clients.block("claude-desktop", clients.environment(None))
    print("\nNone of these machines exist. To use your own cluster with Claude Desktop:", *block.where, "", block.text, sep="\n")
    print("\nOther clients: pve-mcp config claude-code | cursor | vscode. To check your settings: pve-mcp doctor")
    return int(failed)


def _innermost(broken: BaseException) -> BaseException:
    while isinstance(broken, BaseExceptionGroup):
        broken = broken.exceptions[0]
    return broken
