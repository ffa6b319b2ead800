"""The query scheduler beyond the thesis's example: the choice against brute force, overload,
changes while running."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import gcd, lcm

import pytest

from dsms.errors import InternalError, UsageError
from dsms.schedulers.backlog import Backlog
from dsms.schedulers.edf import QueryScheduler
from dsms.schedulers.groups import Groups
from dsms.schedulers.hybrid import CostModel, cheapest, once, rate
from dsms.schedulers.multiples import Multiples
from dsms.schedulers.tasks import SHARINGS, TECHNIQUES, SubGroup, Task
from tests.effort import sampled

SCHEDULERS = [
    (t, s) for t in TECHNIQUES for s in (SHARINGS if t in ("conservative", "hybrid") else ("",))
]
LP = ("hybrid", "late-pending")


class Machine:
    """Executes tasks in simulated time: an update each `step`, a joint execution costs what `cost`
    says.

    trace: (update count, names) of each execution;  gaps: updates between executions of each
    task."""

    def __init__(
        self, scheduler: QueryScheduler, cost, step: float = 1.0, only_due: bool = True
    ) -> None:
        self.scheduler, self.cost, self.step, self.only_due = scheduler, cost, step, only_due
        self.now, self.count = 0.0, 0
        self.trace: list[tuple[int, tuple[str, ...]]] = []
        self.ran: dict[str, list[int]] = {}

    def run(self, updates: int) -> Machine:
        until = self.count + updates
        while self.count < until:
            names = self.scheduler.next(self.only_due)
            if names:
                self.now += self.cost(names)
                self._updates()
                self.scheduler.done(names)
                self.trace.append((self.count, names))
                for name in names:
                    self.ran.setdefault(name, []).append(self.count)
            else:
                self.now = max(self.now, (self.count + 1) * self.step)
                self._updates()
        return self

    def _updates(self) -> None:
        fresh = int(self.now / self.step) - self.count
        if fresh > 0:
            self.scheduler.updated(fresh)
            self.count += fresh

    def gaps(self, name: str, since: int = 0) -> list[int]:
        times = [t for t in self.ran.get(name, []) if t >= since]
        return [b - a for a, b in pairwise(times)]


def random_tasks(seed: int, count: int) -> list[Task]:
    rng = random.Random(seed)
    found = []
    for i in range(count):
        length = rng.randint(20, 100)
        found.append(
            Task(
                f"q{i}",
                rng.randint(1, length // 2),
                length,
                rng.choice((0, 0, 1)),
                post=rng.choice((0, 5)),
            )
        )
    return found


def made(
    tasks: list[Task], technique: str = "hybrid", sharing: str = "late-pending"
) -> QueryScheduler:
    scheduler = QueryScheduler(technique, sharing)
    for task in tasks:
        scheduler.add(task)
    return scheduler


def scan(tasks: list[Task], unit: float):
    """Cost of a joint execution: the longest window, and each task's post-processing."""
    by_name = {t.name: t for t in tasks}
    return lambda names: (
        unit
        * (
            max(by_name[n].length - 1 for n in names)
            + sum(1 + by_name[n].post for n in names) * 0.2
        )
    )


# ------------------------------------------------------------------ the choice of hybrid scheduling


def partitions(items: list) -> Iterator[list[list]]:
    if not items:
        yield []
        return
    first, *rest = items
    for parts in partitions(rest):
        yield [[first], *parts]
        for i in range(len(parts)):
            yield [*parts[:i], [first, *parts[i]], *parts[i + 1 :]]


def update_by_update(blocks: list[list[SubGroup]]) -> float:
    """What a schedule costs, counted over a least common multiple of its periods."""
    periods = [min(g.period for g in b) for b in blocks]
    horizon, total = lcm(*periods), 0.0
    for t in range(1, horizon + 1):
        due = [g for b, p in zip(blocks, periods, strict=True) if t % p == 0 for g in b]
        total += once(due) if due else 0.0
    return total / horizon


def random_groups(rng: random.Random, count: int, longest: int = 12) -> list[SubGroup]:
    periods = rng.sample(range(1, longest + 1), count)
    post = rng.choice((0, 1, 10))
    return [SubGroup(p, rng.choice((rng.randint(1, 60), 30)), post * rng.random()) for p in periods]


@pytest.mark.parametrize("seed", range(40))
def test_the_choice_equals_brute_force_over_all_mergings(seed: int):
    rng = random.Random(seed)
    groups = random_groups(rng, rng.randint(1, 5))
    choice = cheapest(groups)
    costs = [update_by_update(parts) for parts in partitions(groups)]
    assert choice.cost == pytest.approx(min(costs), rel=1e-12)
    assert update_by_update([list(b) for b in choice.blocks]) == pytest.approx(
        choice.cost, rel=1e-12
    )
    assert choice.exact
    assert sorted(g.period for b in choice.blocks for g in b) == sorted(g.period for g in groups)


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_equals_brute_force_for_seven_sub_groups(seed: int):
    groups = random_groups(random.Random(seed), 7, 24)
    best = min(rate(parts, Multiples(range(1, 25))) for parts in partitions(groups))
    assert cheapest(groups).cost == pytest.approx(best, rel=1e-4)


def test_sub_groups_need_not_be_neighbours_to_merge():
    """13 runs with 3; 5 stays alone, its post-processing is too expensive."""
    blocks = cheapest([SubGroup(3, 40), SubGroup(5, 2, post=100), SubGroup(13, 41)]).blocks
    assert [[g.period for g in b] for b in blocks] == [[3, 13], [5]]


@pytest.mark.parametrize("count", [60, 200])
def test_many_sub_groups_are_chosen_fast_and_no_worse_than_the_simple_ways(count: int):
    rng = random.Random(count)
    groups = [
        SubGroup(p, rng.randint(p, p + 300), rng.random())
        for p in rng.sample(range(1, 4 * count), count)
    ]
    began = time.thread_time()
    choice = cheapest(groups)
    # of this thread: a tenth of a second where the processor is not shared
    assert time.thread_time() - began < 3
    assert choice.cost <= min(rate([[g] for g in groups]), rate([groups])) * (1 + 1e-9)
    assert len(choice.blocks) < count / 2  # §8.5.2: often half as many tasks
    assert not choice.exact
    assert choice == cheapest(list(reversed(groups)))


@pytest.mark.parametrize("seed", sampled(range(20), 2))
def test_unions_of_multiples_by_inclusion_and_exclusion(seed: int):
    rng = random.Random(seed)
    periods = rng.sample(range(1, 40), rng.randint(1, 6))
    exact = 0.0
    for n in range(1, len(periods) + 1):
        exact += (-1) ** (n + 1) * sum(1 / lcm(*some) for some in combinations(periods, n))
    multiples = Multiples(periods)
    assert multiples.union(periods) == pytest.approx(exact, rel=1e-12 if multiples.exact else 1e-3)


def test_long_periods_have_a_common_measure():
    day = Multiples([86_400, 3_600, 10])
    assert day.exact
    assert day.union([86_400, 3_600]) == pytest.approx(1 / 3_600)
    odd = Multiples([86_399, 3_607, 11])
    assert not odd.exact
    assert odd.union([86_399, 3_607]) == pytest.approx(1 / 86_399 + 1 / 3_607, rel=0.02)
    assert gcd(86_399, 3_607) == 1


def test_what_a_scan_costs():
    task = Task("q", 1, 33, weight=2.0)
    assert [CostModel(s).access(task) for s in ("basic", "interval", "running")] == [64, 20, 2]


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


# ------------------------------------------------------------------ load


@pytest.mark.parametrize(("technique", "sharing"), SCHEDULERS)
@pytest.mark.parametrize("only_due", [True, False])
def test_with_time_to_spare_nothing_is_ever_late(technique: str, sharing: str, only_due: bool):
    for seed in range(5):
        tasks = random_tasks(seed, 20)
        machine = Machine(
            made(tasks, technique, sharing), lambda names: 1e-4, only_due=only_due
        ).run(200)
        for task in tasks:
            assert max(machine.gaps(task.name), default=0) <= task.period
            assert machine.scheduler.lateness(task.name).average == 0
            assert machine.scheduler.lateness(task.name).executions >= 200 // task.period - 1


@pytest.mark.parametrize("seed", sampled(range(12), 3))
def test_overload_lengthens_all_periods_by_about_the_same(seed: int):
    """Algorithm 9 clears the most negative d(T) first, so all are late by nearly as much.  And none
    ever waits longer than a round: once its deadline has passed, each other runs at most once
    before it."""
    rng = random.Random(seed)
    periods = rng.sample(range(1, 30), 12)
    tasks = [Task(f"q{p}", p, 30) for p in periods]
    mean = rng.uniform(1.3, 4.0) / sum(1 / p for p in periods)  # load 1.3 to 4
    machine = Machine(made(tasks, "none", ""), lambda names: mean * rng.uniform(0.1, 1.9)).run(3000)
    late = {t.name: [g - t.period for g in machine.gaps(t.name, since=500)] for t in tasks}
    means = [sum(x) / len(x) for x in late.values()]
    assert min(means) > 0
    assert max(means) - min(means) <= 2 + mean  # an update, an execution
    assert max(max(x) for x in late.values()) <= len(tasks) * 1.9 * mean + 1
    assert min(min(x) for x in late.values()) >= 0


@pytest.mark.parametrize(("technique", "sharing"), SCHEDULERS)
@pytest.mark.parametrize("seed", sampled(range(6), 3))
def test_nobody_starves_in_overload(technique: str, sharing: str, seed: int):
    tasks = random_tasks(seed, 25)
    machine = Machine(made(tasks, technique, sharing), scan(tasks, 0.06)).run(1500)
    late = [machine.scheduler.lateness(t.name) for t in tasks]
    assert max(x.average for x in late) > 0
    gaps = {t.name: machine.gaps(t.name, since=300) for t in tasks}
    worst = max(max(g) - t.period for t in tasks for g in [gaps[t.name]])
    for task in tasks:
        assert len(gaps[task.name]) >= 1100 // (task.period + worst) - 1


def test_more_sharing_is_less_lateness_in_overload():
    def average(technique: str, sharing: str) -> float:
        found = []
        for seed in range(5):
            tasks = random_tasks(seed, 30)
            machine = Machine(made(tasks, technique, sharing), scan(tasks, 0.03)).run(1500)
            found += [machine.scheduler.lateness(t.name).average for t in tasks]
        return sum(found) / len(found)

    none, conservative, hybrid, late, pending = (
        average(*x)
        for x in (("none", ""), ("conservative", ""), ("hybrid", ""), ("hybrid", "late"), LP)
    )
    assert none > conservative > hybrid > late >= pending


@pytest.mark.parametrize(("technique", "sharing"), SCHEDULERS)
def test_overload_for_a_minute_then_calm(technique: str, sharing: str):
    tasks = random_tasks(3, 25)
    machine = Machine(made(tasks, technique, sharing), scan(tasks, 0.1)).run(60)
    assert any(machine.scheduler.lateness(t.name).last > 0 for t in tasks)
    machine.cost = lambda names: 1e-4
    machine.run(200)
    for task in tasks:
        fared = machine.scheduler.lateness(task.name)
        assert fared.last == 0
        assert fared.deadline >= 0
        assert max(machine.gaps(task.name, since=120)) <= task.period


def test_late_executions_are_not_made_up_for():
    scheduler = made([Task("q", 3, 9)])
    scheduler.updated(10)
    scheduler.done(scheduler.next())
    assert scheduler.lateness("q").last == 7
    assert scheduler.lateness("q").deadline == 3
    assert scheduler.next() == ()


def test_an_update_while_a_task_runs_counts():
    scheduler = made([Task("q", 2, 9)])
    scheduler.updated(2)
    names = scheduler.next()
    scheduler.updated()
    assert scheduler.next() == ()  # it runs
    assert scheduler.lateness("q").deadline == -1
    scheduler.done(names)
    assert (scheduler.lateness("q").last, scheduler.lateness("q").deadline) == (1, 2)


@pytest.mark.parametrize(("technique", "sharing"), SCHEDULERS)
def test_same_seed_same_trace(technique: str, sharing: str):
    def trace(seed: int) -> list:
        tasks = random_tasks(seed, 20)
        return (
            Machine(made(tasks, technique, sharing), scan(tasks, 0.03), only_due=False)
            .run(150)
            .trace
        )

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)


def test_hybrid_merges_more_in_overload_and_goes_back_when_it_is_calm():
    tasks = [Task(f"q{p}", p, 20 + p, post=30) for p in (3, 4, 5, 7, 9, 11, 13)]
    scheduler = made(tasks, "hybrid", "")
    at_first = scheduler.blocks()
    machine = Machine(scheduler, scan(tasks, 0.15)).run(400)
    assert len(scheduler.blocks()) < len(at_first)
    as_printed = QueryScheduler("hybrid", "", CostModel(adaptive=False))
    for task in tasks:
        as_printed.add(task)
    Machine(as_printed, scan(tasks, 0.15)).run(400)
    assert as_printed.blocks() == at_first
    average = [sum(s.lateness(t.name).average for t in tasks) for s in (scheduler, as_printed)]
    assert average[0] < average[1]
    machine.cost = lambda names: 1e-4
    machine.run(400)
    assert scheduler.blocks() == at_first


def test_the_backlog_changes_in_steps():
    backlog = Backlog()
    levels = []
    for late in [0] * 20 + [9] * 60 + [7, 9] * 40 + [0] * 80:
        if backlog.ran(late):
            levels.append(backlog.level)
    assert levels == [1, 2, 4, 8, 2, 0]


@pytest.mark.parametrize(("adaptive", "expected"), [(True, ("a", "b")), (False, ("a",))])
def test_in_overload_what_would_be_late_at_the_next_turn_runs_too(
    adaptive: bool, expected: tuple[str, ...]
):
    scheduler = QueryScheduler(*LP, CostModel(adaptive=adaptive))
    for task in (Task("a", 1, 40, post=1000), Task("b", 20, 80, post=1000)):
        scheduler.add(task)
    # a turn comes each five updates; a is late by four, on average over both by more than two
    for _ in range(20):
        scheduler.updated(5)
        while names := scheduler.next():
            scheduler.done(names)
    scheduler.updated(18)
    assert scheduler.lateness("b").deadline == 2
    assert scheduler.next() == expected


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
