"""The query scheduler beyond the thesis's example: order, tasks that come and go, shared output,
several groups."""

from __future__ import annotations

import random

import pytest

from dsms.errors import InternalError, UsageError
from dsms.schedulers.edf import QueryScheduler
from dsms.schedulers.groups import Groups
from dsms.schedulers.hybrid import CostModel
from dsms.schedulers.tasks import Task
from tests.edf_machine import LP, SCHEDULERS, made
from tests.effort import sampled, thinned

# ------------------------------------------------------------------ order


def order_of(scheduler: QueryScheduler, only_due: bool = True) -> list[str]:
    found: list[str] = []
    while names := scheduler.next(only_due):
        assert len(names) == 1
        found += names
    return found


def test_the_lowest_deadline_first():
    scheduler = QueryScheduler("none", "")
    for name, period, priority in (("a", 5, 0), ("b", 3, 0), ("c", 4, 7), ("d", 2, 1)):
        scheduler.add(Task(name, period, 10, priority))
    scheduler.updated(3)
    assert order_of(scheduler) == ["d", "b"]
    assert order_of(scheduler, only_due=False) == ["c", "a"]


def test_equal_deadlines_go_by_priority_then_period():
    """All due at update 6: registered at 0, 3 and 4, with what is left until then as their
    period."""
    scheduler = QueryScheduler("none", "")
    scheduler.add(Task("first", 6, 10))
    scheduler.updated(3)
    scheduler.add(Task("urgent", 3, 10, priority=5))
    scheduler.updated(1)
    scheduler.add(Task("short", 2, 10))
    scheduler.updated(2)
    assert order_of(scheduler) == ["urgent", "short", "first"]


def test_names_run_together_come_by_priority_then_registration():
    tasks = [Task("a", 2, 9), Task("b", 2, 5, priority=3), Task("c", 2, 7)]
    scheduler = made(tasks)
    scheduler.updated(2)
    assert scheduler.next() == ("b", "a", "c")


def test_early_execution_repeats_no_answer():
    scheduler = made([Task("a", 5, 9), Task("b", 7, 3)], "conservative", "")
    assert scheduler.next(only_due=False) == ("a",)  # never run: it has something to tell
    scheduler.done(("a",))
    assert scheduler.next(only_due=False) == ("b",)
    scheduler.done(("b",))
    assert scheduler.next(only_due=False) == ()
    scheduler.updated()
    assert scheduler.next() == ()
    assert scheduler.peek() is None
    assert scheduler.peek(only_due=False) == (4, 0)
    assert scheduler.next(only_due=False) == ("a",)
    scheduler.done(("a",))
    assert (scheduler.lateness("a").last, scheduler.lateness("a").deadline) == (0, 5)


# ------------------------------------------------------------------ changes while running


def test_drop_while_late_and_while_running():
    scheduler = made([Task("a", 2, 9), Task("b", 3, 5), Task("c", 9, 7)], "conservative", "")
    scheduler.updated(4)
    scheduler.remove("a")
    assert scheduler.next() == ("b",)
    scheduler.remove("b")
    assert scheduler.next() == ()
    scheduler.done(("b",))
    with pytest.raises(InternalError, match="b is not scheduled"):
        scheduler.done(("b",))
    scheduler.updated(5)
    assert scheduler.next() == ("c",)
    assert len(scheduler) == 1


def test_a_name_may_come_again_while_its_predecessor_runs():
    scheduler = made([Task("a", 1, 9), Task("b", 1, 9)])
    scheduler.updated()
    names = scheduler.next()
    scheduler.remove("a")
    scheduler.add(Task("a", 4, 9))
    scheduler.done(names)
    assert scheduler.lateness("a").executions == 0
    assert scheduler.lateness("b").executions == 1


@pytest.mark.parametrize(("technique", "sharing"), SCHEDULERS)
def test_a_task_that_comes_while_others_run_leaves_them_done(technique: str, sharing: str):
    scheduler = made([Task("a", 3, 9)], technique, sharing)
    scheduler.updated(5)
    names = scheduler.next()
    scheduler.add(Task("b", 7, 5))
    assert scheduler.next() == ()
    scheduler.done(names)
    assert scheduler.next() == ()
    fared = scheduler.lateness("a")
    assert (fared.last, fared.deadline) == (2, 3)


def test_a_part_of_a_block_may_be_done_first():
    scheduler = made([Task("a", 2, 9), Task("b", 2, 5)])
    scheduler.updated(2)
    assert scheduler.next() == ("a", "b")
    scheduler.done(("a",))
    assert scheduler.next() == ()
    scheduler.updated()
    scheduler.done(("b",))
    scheduler.updated()
    assert scheduler.next() == ("a", "b")  # two updates after a
    assert scheduler.lateness("b").executions == 1


def test_periods_of_merged_sub_groups_follow_the_workload():
    long, short = Task("long", 5, 10), Task("short", 4, 10)
    scheduler = made([long], "hybrid", "")
    assert scheduler.lateness("long").period == 5
    scheduler.add(short)
    assert scheduler.lateness("long").period == 4
    scheduler.remove("short")
    assert scheduler.lateness("long").period == 5


def test_merging_makes_nothing_late():
    scheduler = made([Task("slow", 20, 10)], *LP)
    scheduler.updated(15)
    scheduler.add(Task("fast", 3, 10))
    fared = scheduler.lateness("slow")
    # due now: fifteen updates have passed, but it asked for 20
    assert (fared.period, fared.deadline) == (3, 0)
    scheduler.done(scheduler.next())
    assert scheduler.lateness("slow").last == 0


@thinned()
@pytest.mark.parametrize(("technique", "sharing"), SCHEDULERS)
@pytest.mark.parametrize("seed", sampled(range(5), 2))
def test_tasks_that_come_and_go_keep_their_periods(technique: str, sharing: str, seed: int):
    """With time to spare, whatever is registered or dropped when: no gap is longer than its
    period."""
    rng = random.Random(seed)
    scheduler = QueryScheduler(technique, sharing)
    alive: dict[str, tuple[Task, int]] = {}
    running: tuple[str, ...] = ()
    for count in range(1, 400):
        if rng.random() < 0.3:
            length = rng.randint(2, 60)
            same = rng.choice((None, "x", "y"))
            task = Task(f"q{count}", rng.randint(1, 20), length, same=same)
            scheduler.add(task)
            alive[task.name] = task, count - 1
        if alive and rng.random() < 0.2:
            name = rng.choice(sorted(alive))
            scheduler.remove(name)
            del alive[name]
        for name in running:
            if name in alive:
                alive[name] = alive[name][0], count - 1
        scheduler.done(running)
        running = ()
        scheduler.updated()
        while names := scheduler.next(rng.random() < 0.8):
            for name in names:
                alive[name] = alive[name][0], count
            scheduler.done(names)
        for task, since in alive.values():
            assert count - since <= task.period
            assert scheduler.lateness(task.name).period <= task.period
    assert set(alive) == {name for _, names in scheduler.blocks() for name in names}


@pytest.mark.parametrize("technique", ["conservative", "hybrid"])
def test_cs8_an_identical_query_with_a_longer_period_shares_the_output(technique: str):
    short, long = Task("short", 2, 10, same="max"), Task("long", 5, 10, same="max")
    other = Task("other", 5, 12)
    scheduler = made([long, short], technique, "")
    assert scheduler.lateness("long").period == 2
    assert scheduler.blocks() == ((2, ("long", "short")),)
    scheduler.updated(2)
    assert scheduler.next() == ("long", "short")
    scheduler.done(("long", "short"))
    scheduler.remove("short")
    assert scheduler.lateness("long").period == 5
    assert scheduler.lateness("long").deadline == 5
    if technique == "conservative":
        scheduler.add(other)
        assert scheduler.blocks() == ((5, ("long", "other")),)  # it has moved to another sub-group


def test_cs8_counts_post_processing_once():
    tasks = [
        Task("a", 2, 10, post=7, same="x"),
        Task("b", 5, 10, post=7, same="x"),
        Task("c", 2, 10, post=1),
    ]
    (group,) = CostModel().sub_groups(tasks, {"a": 2, "b": 2, "c": 2})
    assert (group.access, group.post) == (9, 8)


def test_queries_per_execution():
    scheduler = made([Task("a", 2, 10), Task("b", 3, 10), Task("c", 3, 5)], "conservative", "")
    assert scheduler.together() == pytest.approx((3 + 2 + 2) / 4)  # in six updates 2, 3, 4, 6
    assert QueryScheduler().together() == 0


# ------------------------------------------------------------------ several groups


def served(groups: Groups, costs: dict[str, float], turns: int) -> dict[str, float]:
    had = dict.fromkeys(costs, 0.0)
    for _ in range(turns):
        name = groups.next_group()
        assert name is not None
        groups[name].done(groups[name].next())
        groups[name].updated()
        groups.charge(name, costs[name])
        had[name] += costs[name]
    return had


def busy(priority: int = 0) -> QueryScheduler:
    scheduler = made([Task("q", 1, 10, priority)])
    scheduler.updated()
    return scheduler


def test_groups_share_time_by_weight():
    groups = Groups()
    for name, weight in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        groups.add(name, busy(), weight)
    had = served(groups, {"a": 1.0, "b": 0.5, "c": 2.0}, 600)
    total = sum(had.values())
    assert [had[n] / total for n in "abc"] == pytest.approx([1 / 6, 2 / 6, 3 / 6], abs=0.02)


def test_groups_of_equal_claim_go_by_priority_and_an_idle_one_saves_up_nothing():
    groups = Groups()
    idle = made([Task("q", 1, 10)])
    for name, scheduler in (("a", busy()), ("b", busy(3)), ("idle", idle)):
        groups.add(name, scheduler)
    assert groups.next_group() == "b"
    served(groups, {"a": 1.0, "b": 1.0}, 100)
    idle.updated()
    had = served(groups, {"a": 1.0, "b": 1.0, "idle": 1.0}, 30)
    assert all(8 <= h <= 12 for h in had.values())
    for name in ("a", "b"):
        groups.remove(name)
    assert len(groups) == 1


def test_one_queue_for_all_groups_takes_the_lowest_deadline():
    groups = Groups("deadlines")
    for name, period in (("a", 4), ("b", 2), ("c", 3)):
        groups.add(name, made([Task("q", period, 10)]))
        groups[name].updated(4)
    order = []
    while (first := groups.next_group()) is not None:
        groups[first].done(groups[first].next())
        groups.charge(first)
        order.append(first)
    assert order == ["b", "c", "a"]


# ------------------------------------------------------------------ wrong use


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="unknown technique `hybird`") as found:
        QueryScheduler("hybird")
    assert found.value.code == "DS420"
    assert "hybrid" in (found.value.hint or "")
    with pytest.raises(UsageError, match="unknown sharing `pending`"):
        QueryScheduler("hybrid", "pending")
    scheduler = made([Task("a", 1, 1)])
    with pytest.raises(InternalError, match="scheduled already"):
        scheduler.add(Task("a", 1, 1))
    with pytest.raises(InternalError, match="not running"):
        scheduler.done(("a",))
    with pytest.raises(InternalError, match="not scheduled"):
        scheduler.remove("b")
    with pytest.raises(InternalError, match="no task"):
        Task("a", 0, 1)
    with pytest.raises(InternalError, match="can't be scheduled"):
        Groups().add("a", scheduler, 0.0)
