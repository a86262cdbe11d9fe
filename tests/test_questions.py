"""Questions that wait for a person: each good once, few, and not for long."""

from __future__ import annotations

from proxmox_mcp.plan import Plan, Risk
from proxmox_mcp.questions import Questions


def plan(number: int) -> Plan:
    return Plan(f"plan {number}", (), Risk.CHANGE, ())


def test_a_question_is_good_once_and_under_its_own_name_alone() -> None:
    questions = Questions()
    first, second = questions.add(plan(1)), questions.add(plan(2))
    assert first != second
    assert len(first) == 32
    assert questions.take("0" * 32) is None
    assert questions.take(second) == plan(2)
    assert questions.take(second) is None
    assert questions.take(first) == plan(1)


def test_it_expires() -> None:
    now = 100.0
    questions = Questions(seconds=900, clock=lambda: now)
    names = [questions.add(plan(n)) for n in range(2)]
    now += 900
    assert questions.take(names[0]) == plan(0)
    now += 0.1
    assert questions.take(names[1]) is None


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    questions = Questions(most=3)
    names = [questions.add(plan(n)) for n in range(5)]
    assert [questions.take(name) for name in names] == [None, None, plan(2), plan(3), plan(4)]
