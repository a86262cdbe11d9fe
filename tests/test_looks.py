"""What was shown is remembered: the last list of each question, a bounded number of them, for a while."""

from __future__ import annotations

from proxmox_mcp.looks import Looks


def test_the_last_list_of_a_question_counts() -> None:
    looks = Looks()
    assert looks.last("a") is None
    looks.remember("a", ["x", "y"])
    looks.remember("a", ["y"])
    looks.remember("b", [])
    assert looks.last("a") == {"y"}
    assert looks.last("b") == frozenset()


def test_lists_are_few_and_not_for_ever() -> None:
    now = [0.0]
    looks = Looks(most=2, seconds=10, clock=lambda: now[0])
    for name in "abc":
        looks.remember(name, [name])
    assert looks.last("a") is None
    assert looks.last("c") == {"c"}
    now[0] = 10.5
    assert looks.last("c") is None
