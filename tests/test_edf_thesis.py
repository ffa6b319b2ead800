"""The worked example of Golab 2006, §8.4.3-8.4.5: MAX over windows of 5 to 30 minutes, re-executed
every 2, 3 or 5."""

from __future__ import annotations

import pytest

from dsms.schedulers.edf import QueryScheduler
from dsms.schedulers.hybrid import CostModel, cheapest, once, rate
from dsms.schedulers.tasks import SubGroup, Task

# name, window, slide: in minutes, one update a minute
QUERIES = (
    ("Q1", 10, 2),
    ("Q2", 5, 2),
    ("Q3", 6, 2),
    ("Q4", 15, 3),
    ("Q5", 12, 3),
    ("Q6", 20, 5),
    ("Q7", 30, 5),
)
G1, G2, G3 = ("Q1", "Q2", "Q3"), ("Q4", "Q5"), ("Q6", "Q7")
ALL = (*G1, *G2, *G3)


def tasks() -> list[Task]:
    return [Task(name, slide, window) for name, window, slide in QUERIES]


def sub_groups() -> list[SubGroup]:
    return CostModel().sub_groups(tasks(), {t.name: t.period for t in tasks()})


def made(technique: str, sharing: str = "") -> QueryScheduler:
    scheduler = QueryScheduler(technique, sharing)
    for task in tasks():
        scheduler.add(task)
    return scheduler


def timeline(scheduler: QueryScheduler, minutes: int) -> dict[int, list[tuple[str, ...]]]:
    """What runs in each minute, if everything that is due runs at once."""
    out: dict[int, list[tuple[str, ...]]] = {}
    for minute in range(1, minutes + 1):
        scheduler.updated()
        while names := scheduler.next():
            scheduler.done(names)
            out.setdefault(minute, []).append(names)
    return out


def test_a_single_execution():
    assert [(g.period, g.access, g.members) for g in sub_groups()] == [
        (2, 9, G1),
        (3, 14, G2),
        (5, 29, G3),
    ]


def test_two_sub_groups_cost_46_in_six_minutes():
    a, b, _ = sub_groups()
    assert rate([[a], [b]]) == pytest.approx(46 / 6)
    assert rate([[a, b]]) == pytest.approx(7)


@pytest.mark.parametrize(
    ("merged", "printed", "exact"),
    [
        # The thesis prints 11.63 = 349 / 30 here, which is one execution of G1,1 (9) short.  In 30
        # minutes there are 6 multiples of 5, 8 of 3 but not of 5, and of 2 but neither 15 - 5 - 3 +
        # 1 = 8 (minute 30 is both of 3 and of 5); the 1 is missing there: 6 * 29 + 8 * 14 + 7 * 9 =
        # 349.  The schedule that is drawn has eight of them.
        ("1 2 3", None, 358 / 30),
        ("12 3", 11.4, 114 / 10),
        ("123", 14.5, 29 / 2),
        ("1 23", 12.67, 76 / 6),
        ("13 2", 16.83, 101 / 6),
    ],
)
def test_five_possibilities(merged: str, printed: float | None, exact: float):
    groups = sub_groups()
    blocks = [[groups[int(i) - 1] for i in block] for block in merged.split()]
    assert rate(blocks) == pytest.approx(exact)
    assert printed is None or round(rate(blocks), 2) == printed
    assert minute_by_minute(blocks, 30) == pytest.approx(exact)


def minute_by_minute(blocks: list[list[SubGroup]], minutes: int) -> float:
    """The same cost from the schedule itself."""
    total = 0.0
    for minute in range(1, minutes + 1):
        due = [g for b in blocks for g in b if minute % min(x.period for x in b) == 0]
        total += once(due) if due else 0.0
    return total / minutes


def test_the_printed_cost_of_conservative_scheduling_lacks_one_execution():
    groups = sub_groups()
    assert round(minute_by_minute([[g] for g in groups], 30) - groups[0].access / 30, 2) == 11.63


def test_hybrid_chooses_to_merge_the_first_two():
    choice = cheapest(sub_groups())
    assert [[g.period for g in block] for block in choice.blocks] == [[2, 3], [5]]
    assert choice.cost == pytest.approx(11.4)
    assert choice.exact
    assert made("hybrid").blocks() == ((2, G1 + G2), (5, G3))
    assert made("hybrid").lateness("Q4").period == 2


def test_fig_8_6_a_aggressive():
    assert timeline(made("aggressive"), 6) == {2: [ALL], 4: [ALL], 6: [ALL]}


def test_fig_8_6_b_conservative():
    expected = {2: [G1], 3: [G2], 4: [G1], 5: [G3], 6: [G1 + G2], 8: [G1], 9: [G2], 10: [G1 + G3]}
    assert timeline(made("conservative"), 10) == expected


def test_fig_8_6_c_hybrid():
    expected = {2: [G1 + G2], 4: [G1 + G2], 5: [G3], 6: [G1 + G2], 8: [G1 + G2], 10: [ALL]}
    assert timeline(made("hybrid"), 10) == expected


def test_no_sharing_runs_sub_groups_one_by_one():
    assert timeline(made("none"), 6) == {2: [G1], 3: [G2], 4: [G1], 5: [G3], 6: [G1, G2]}


@pytest.mark.parametrize(
    ("sharing", "first", "rest"),
    [
        ("", G1, [G2, G3]),  # Algorithm 10: only equal deadlines
        ("late", G1 + G2, [G3]),  # §8.4.5: the late set
        ("late-pending", ALL, []),  # Algorithm 11, Fig 8.6 (d): and the pending set
    ],
)
def test_sharing_in_overload(sharing: str, first: tuple[str, ...], rest: list[tuple[str, ...]]):
    """After five minutes without execution d = -3, -2, 0."""
    scheduler = made("conservative", sharing)
    scheduler.updated(5)
    assert [scheduler.lateness(n).deadline for n in ("Q1", "Q4", "Q6")] == [-3, -2, 0]
    assert scheduler.next() == first
    scheduler.done(first)
    found = []
    while names := scheduler.next():
        scheduler.done(names)
        found.append(names)
    assert found == rest


def test_fig_8_5_the_time_until_the_deadline():
    """A query with SLIDE 2s: d = 2 after execution, 1 and 0 after updates, on time while it is not
    negative."""
    scheduler = QueryScheduler()
    scheduler.add(Task("q", 2, 10))
    seen = []
    for _ in range(3):
        seen.append(scheduler.lateness("q").deadline)
        scheduler.updated()
    assert [*seen, scheduler.lateness("q").deadline] == [2, 1, 0, -1]
    assert scheduler.next() == ("q",)
    scheduler.done(("q",))
    late = scheduler.lateness("q")
    assert (late.deadline, late.last, late.average, late.executions) == (2, 1, 1.0, 1)
    scheduler.updated(2)
    scheduler.done(scheduler.next())
    late = scheduler.lateness("q")
    assert (late.last, late.average, late.executions) == (0, 0.5, 2)
