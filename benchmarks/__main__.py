"""`python -m benchmarks` prints the whole table; `--write` puts it into README, with the commit it was measured at."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from benchmarks import audit_bench, guest_lists, http_bench, ssh_bench, tool_list
from benchmarks.rows import Row

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- begin figures -->\n", "<!-- end figures -->"


def table(rows: list[Row]) -> str:
    """The rows as Markdown, and where and when they were measured."""
    lines = ["| figure | measured | beside it, in the same run | ratio | bar | held |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [f"| {r.figure} | {r.ours} | {r.reference} | {r.ratio} | {r.bar} | {'yes' if r.holds else 'NO'} |" for r in rows]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=README.parent, check=True
    ).stdout.strip()
    where = f"Python {platform.python_version()}, {platform.system()}, {platform.machine()}"
    return "\n".join([*lines, "", f"Measured at commit {commit} with `python -m benchmarks` ({where}); medians of interleaved runs.", ""])


def main() -> int:
    """Measures everything; exit status 1 when a bar is missed."""
    rows: list[Row] = []
    for part in (tool_list, guest_lists, http_bench, ssh_bench, audit_bench):
        found = part.measure()
        rows += found
        for row in found:
            print(row, file=sys.stderr)
    made = table(rows)
    print(made)
    if "--write" in sys.argv[1:]:
        text = README.read_text()
        head, _, rest = text.partition(BEGIN)
        README.write_text(head + BEGIN + made + END + rest.partition(END)[2])
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
