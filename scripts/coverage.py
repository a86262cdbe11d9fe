"""Line and branch coverage of the ordinary tests, held to its bars: `python -m scripts.coverage [PYTEST ARGUMENTS]`.

Whole, line by line and branch by branch: the gates, approval, the audit log, the grammar of read-only commands and the building of paths.
No other module below 90 %. Exit status 1 when a bar is missed or a test fails. Needs the extra `quality`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WHOLE = ("gates.py", "approval.py", "audit/*", "read_commands/*", "http_client/paths.py")
LEAST = 90.0  # percent of lines and branches together


def measured(arguments: list[str]) -> tuple[int, dict[str, Any]]:
    """pytest's exit status and coverage's report."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "coverage.json"
        command = [sys.executable, "-m", "pytest", "--cov", "--cov-report", f"json:{report}", "-p", "no:cacheprovider", *arguments]
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        return status, json.loads(report.read_text()) if report.exists() else {"files": {}}


def missed(report: dict[str, Any]) -> Iterator[str]:
    """A line for each module below its bar, with what was never run."""
    for name, found in sorted(report["files"].items()):
        module, share = name.removeprefix("proxmox_mcp/"), found["summary"]["percent_covered"]
        whole = any(fnmatch(module, pattern) for pattern in WHOLE)
        if share < (100.0 if whole else LEAST):
            lines = ",".join(map(str, found["missing_lines"]))
            branches = ",".join(f"{start}->{end}" for start, end in found["missing_branches"])
            yield f"{module}: {share:.1f} % of {'100' if whole else f'{LEAST:g}'} %; lines {lines or '-'}; branches {branches or '-'}"


def main() -> int:
    """Runs the tests and prints what is missed."""
    status, report = measured(sys.argv[1:])
    found = list(missed(report))
    totals = report.get("totals", {})
    print(*found, sep="\n")
    print(
        f"{totals.get('percent_covered', 0):.1f} % of lines and branches; {len(found)} modules below their bar; pytest ended with {status}"
    )
    return int(bool(status or found or not report["files"]))


if __name__ == "__main__":
    sys.exit(main())
