"""The server with one tool, one resource and one prompt more, each of which meets an error that nobody foresaw."""

from __future__ import annotations

import os

from proxmox_mcp import config, mcp_instance, registry, server
from proxmox_mcp.app import Call
from proxmox_mcp.arguments import Reading
from proxmox_mcp.plan import Answer
from tests.served_api import SECRET

WORDS = f"nobody foresaw PVEAPIToken=root@pam!mcp={SECRET} \x1b[2J\u202e password=hunter2hunter2"


@registry.tool("proxmox_crash", "Ends in an error that nobody foresaw.", title="Crash", group="audit", model=Reading)
async def crash(args: Reading, call: Call) -> Answer:
    raise RuntimeError(WORDS)


def main() -> None:
    build = mcp_instance.build

    def with_more(app, tools):  # type: ignore[no-untyped-def]
        made = build(app, tools)

        @made.resource("proxmox://crash")
        async def resource() -> str:
            raise RuntimeError(WORDS)

        @made.prompt()
        def prompt() -> str:
            raise RuntimeError(WORDS)

        return made

    mcp_instance.build = with_more
    server.serve(config.load(dict(os.environ)))


if __name__ == "__main__":
    main()
