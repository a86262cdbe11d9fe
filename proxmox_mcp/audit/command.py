"""`pve-mcp audit verify|tail|export|verify-legacy`: the log from a shell."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from proxmox_mcp.audit.files import STEMS, Which
from proxmox_mcp.audit.keys import Keys
from proxmox_mcp.audit.legacy import verify_legacy
from proxmox_mcp.audit.read import export, tail
from proxmox_mcp.audit.record import encode
from proxmox_mcp.audit.verify import verify
from proxmox_mcp.errors import ProxmoxMcpError


def main(argv: Sequence[str], directory: Path, keys: Keys) -> int:
    """Run one of the commands and return its exit status.

    verify and verify-legacy: 0 when something is recorded and nothing is BROKEN, else 1. tail and export: 0, or 1 when the files cannot be
    read.
    """
    options = _parser().parse_args(argv)
    which: Which | Literal["all"] = getattr(options, "which", "all")
    logs: list[Which] = list(STEMS) if which == "all" else [which]
    try:
        status = _COMMANDS[options.command](options, directory, keys, logs)
        sys.stdout.flush()
    except ProxmoxMcpError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pve-mcp audit", description="Verify, show or export the audit log.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("verify", "check the whole chain; exit status 0 only when something is recorded and nothing is broken"),
        ("tail", "show the newest records as JSON lines"),
        ("export", "print all records as JSON lines"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("which", nargs="?", choices=(*STEMS, "all"), default="all", help="which log (default: all)")
        if name == "tail":
            command.add_argument("-n", type=int, default=20, help="how many records of each log (default: 20)")
        if name == "verify":
            command.add_argument("--json", action="store_true", help="print each report as a JSON line")
            command.add_argument(
                "--expect", type=_noted, metavar="NUMBER:HASH", help="a record noted elsewhere that the log must still hold (needs one log)"
            )
    legacy = commands.add_parser("verify-legacy", help="check a log of version 1.x, as far as its format allows")
    legacy.add_argument("file", type=Path, help="such as _host_ssh_audit.log, beside the old installation's package")
    legacy.add_argument("--json", action="store_true", help="print the report as a JSON line")
    return parser


def _noted(text: str) -> tuple[int, str]:
    seq, _, noted = text.partition(":")
    if not seq.isdecimal() or len(noted) != 64:
        raise argparse.ArgumentTypeError("write it as verify prints it: number, colon, 64 hexadecimal digits")
    return int(seq), noted


def _verify(options: argparse.Namespace, directory: Path, keys: Keys, logs: list[Which]) -> int:
    if options.expect and len(logs) > 1:
        sys.stderr.write("--expect speaks of one log: name it.\n")
        return 1
    reports = [verify(directory, which, keys, expect=options.expect) for which in logs]
    for report in reports:
        sys.stdout.write((encode(report.as_dict()) if options.json else report.text()) + "\n")
    verdicts = {report.verdict for report in reports}
    return 1 if "BROKEN" in verdicts or verdicts == {"NOTHING RECORDED"} else 0


def _verify_legacy(options: argparse.Namespace, directory: Path, keys: Keys, logs: list[Which]) -> int:
    report = verify_legacy(options.file, keys)
    sys.stdout.write((encode(report.as_dict()) if options.json else report.text()) + "\n")
    return 1 if report.verdict in ("BROKEN", "NOTHING RECORDED") else 0


def _tail(options: argparse.Namespace, directory: Path, keys: Keys, logs: list[Which]) -> int:
    for which in logs:
        for record in tail(directory, which, options.n):
            sys.stdout.write(encode(record) + "\n")
    return 0


def _export(options: argparse.Namespace, directory: Path, keys: Keys, logs: list[Which]) -> int:
    for which in logs:
        for line in export(directory, which):
            sys.stdout.write(line + "\n")
    return 0


_COMMANDS = {"verify": _verify, "verify-legacy": _verify_legacy, "tail": _tail, "export": _export}
