"""How the end of a command is told: never as done when that is not known, and with everything that is missing from its output."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxmox_mcp.ssh import Outcome
from proxmox_mcp.terminal import ending, shown

DONE = Outcome(0, None, False, False, False, "out\n", "", 0, 0, False, 1.25, 4, "")
NO_END = replace(DONE, exit_status=None)
STAYS = "what it had done until then stays done"


@pytest.mark.parametrize(
    ("outcome", "words", "remarks"),
    [
        (DONE, "exit status 0", ()),
        (replace(DONE, exit_status=3), "exit status 3", ()),
        (replace(DONE, exit_status=127), "exit status 127", ("127: the program is not installed or not on the fixed PATH",)),
        (replace(NO_END, signal="KILL"), "ended by signal KILL", ()),
        (replace(NO_END, timed_out=True, signal="TERM"), "ended: its time was up", (STAYS,)),
        (
            replace(NO_END, capped=True, omitted_bytes=5, omitted_stderr=2),
            "ended: it printed too much",
            ("7 bytes of output were left out; head and tail are shown", STAYS),
        ),
        (
            replace(NO_END, timed_out=True, may_run_on=True),
            "ended: its time was up",
            (STAYS, "the far side did not confirm that it ended: it may still run"),
        ),
        (
            replace(NO_END, lost=True, timed_out=True),
            "outcome unknown: the connection was lost",
            (STAYS, "it may have run to its end or not at all; look before you repeat it"),
        ),
        (NO_END, "outcome unknown", ()),
        (replace(DONE, replaced=True), "exit status 0", ("bytes that are not UTF-8 were replaced by U+FFFD",)),
    ],
)
def test_how_it_ended(outcome: Outcome, words: str, remarks: tuple[str, ...]) -> None:
    assert ending(outcome) == words
    answer = shown(outcome, "node pve1")
    assert (answer.title, answer.notes) == (f"{words} on node pve1 after 1.2 s", remarks)
    assert answer.failed is (words != "exit status 0")


@pytest.mark.parametrize(
    ("stdout", "stderr", "text"),
    [("a\nb\n", "", "a\nb\n"), ("a\n\n", "\nbad\n", "a\n--- stderr\nbad"), ("", "bad\n", "--- stderr\nbad"), ("", "", "")],
)
def test_both_streams_are_shown(stdout: str, stderr: str, text: str) -> None:
    assert shown(replace(DONE, stdout=stdout, stderr=stderr), "node pve1").text == text
