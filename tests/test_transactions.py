"""The transaction scheduler at work: random interleavings, each commit of its isolation level, each
value right."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.schedulers.transactions import KINDS, TransactionScheduler
from tests.effort import examples
from tests.histories import (
    latest_window_serializable,
    reads_are,
    reads_latest_states,
    reads_true_states,
    window_serializable,
)
from tests.transaction_world import World

EXAMPLES = examples(150)
SIZES = {"a": 5, "b": 3, "c": 1}
BEGIN, WRITE, STEP, HAND, CONFIRM, GIVE_UP, LATE = range(7)
LENGTHS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 5), min_size=1)
ACTIONS = st.one_of(
    st.tuples(st.just(BEGIN), LENGTHS, st.integers(0, 2)),
    st.tuples(st.just(WRITE), st.sampled_from("aab"), st.sampled_from((1, 1, 1, 1, 0, 2, 7))),
    st.tuples(st.sampled_from((STEP, STEP, STEP, STEP, HAND, CONFIRM, LATE)), st.none(), st.none()),
    st.tuples(st.just(GIVE_UP), st.integers(1, 9), st.none()),
)
SCRIPTS = st.lists(st.tuples(ACTIONS, st.lists(st.integers(0, 4), max_size=3)), max_size=80)


def play(world: World, script: list) -> None:
    """What hypothesis made up; then all transactions may finish."""
    for (action, x, y), rows in script:
        if action == BEGIN:
            world.begin({ring: min(n, SIZES[ring]) for ring, n in x.items()}, y)
        elif action == WRITE:
            world.write(x, y, rows)
        elif action == GIVE_UP:
            world.give_up(x)
        elif action == LATE:
            for id in list(world.got):
                world._take_late(id)
        elif action == CONFIRM:
            world.confirm()
        elif action == HAND:
            world.hand()
        else:
            world.hand()
            world.confirm()
    world.drain()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(script=SCRIPTS)
def test_every_commit_is_of_its_isolation_level(kind: str, script: list) -> None:
    world = World(kind, SIZES, patience=3)
    play(world, script)
    history, counters = world.history, world.scheduler.counters
    assert window_serializable(history) and reads_true_states(history), str(history)
    if kind != "ws":
        assert latest_window_serializable(history) and reads_latest_states(history), str(history)
    assert reads_are(history, world.wanted), str(history)
    assert counters.begun == counters.committed + counters.cancelled == len(world.wanted)
    assert counters.committed == len(world.answers) == len(history.queries())
    assert counters.aborted == len(history.ends("a"))
    assert counters.writes == sum(world.version.values())
    assert kind in ("lws", "ttu") or counters.aborted == 0
    assert all(world.scheduler.pinned(r) == () and world.scheduler.waiting(r) == 0 for r in SIZES)


@given(script=SCRIPTS)
def test_the_checker_sees_that_snapshots_are_not_the_latest(script: list) -> None:
    """A judge that lets everything pass would be no proof: where a write lies between a snapshot
    and its commit, and concerns the query, the history is not of the higher level."""
    world = World("ws", SIZES)
    play(world, script)
    stale = [q for q in world.history.queries() if _stale(world, q)]
    assert (
        latest_window_serializable(world.history)
        == reads_latest_states(world.history)
        == (not stale)
    )


def _stale(world: World, query: str) -> bool:
    ops, end = world.history.ops, world.history.ends()[query]
    start = next(at for at, op in enumerate(ops) if op.transaction == query)
    rings = world.history.reads_of(query)
    return any(op.kind == "w" and op.ring in rings for op in ops[start:end])


@given(
    st.integers(1, 6),
    st.integers(0, 5),
    st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6),
)
def test_weak_patterns_every_insertion_is_seen_once(
    size: int, first: int, updates: list[list[int]]
) -> None:
    """§7.4.3: an update after each read, with rows for any sub-window.  The reader sees exactly the
    latest state."""
    for kind in KINDS:
        world = World(kind, {"joined": size})
        world.begin({"joined": max(1, size - first)})
        for rows in updates:
            world.hand()
            world.write("joined", 1 if kind == "ttu" else 0, rows)
            world.confirm()
        world.drain()
        assert len(world.answers) == 1


def test_late_rows_are_those_behind_the_reader() -> None:
    scheduler = TransactionScheduler("ttu")
    scheduler.ring("joined", 5, newest=4)
    query = scheduler.begin({"joined": 5})
    for number in (4, 3):
        read = scheduler.next()
        assert read is not None and read.number == number
        scheduler.read(read)
    scheduler.write("joined", [(1, "unread"), (3, "read"), (4, "read, too"), (5, "new")])
    late = scheduler.late(query)
    assert [(x.slot, x.number, x.payload) for x in late] == [(3, 3, "read"), (4, 4, "read, too")]
    assert scheduler.late(query) == []
    with pytest.raises(ValueError, match="sub-window 0 of ring joined, which ends at 6"):
        scheduler.write("joined", [(0, "dead")])


def test_serial_updates_wait_for_the_reader() -> None:
    world = World("serial", {"s": 3})
    first, second = world.begin({"s": 3}), world.begin({"s": 3}, priority=9)
    world.write("s")
    assert world.scheduler.newest("s") == 3  # nobody has begun to read
    world.step()
    world.write("s")
    world.write("s")
    third = world.begin({"s": 1}, priority=99)
    assert (world.scheduler.newest("s"), world.scheduler.waiting("s")) == (3, 2)
    assert not world.step() and world.step()
    assert (world.scheduler.newest("s"), world.scheduler.waiting("s")) == (5, 0)
    world.drain()
    assert list(world.answers) == [second, third, first]
    assert world.scheduler.counters.suspended == 0
    updates_and_commits = " ".join(w for w in str(world.history).split() if w[0] != "r")
    assert updates_and_commits == "ws:3[s:0] cs:3 cQ2.0 ws:4[s:1] cs:4 ws:5[s:2] cs:5 cQ3.0 cQ1.0"


def test_a_cancelled_reader_lets_serial_updates_in() -> None:
    world = World("serial", {"s": 3})
    query = world.begin({"s": 3})
    world.step()
    world.write("s")
    world.give_up(query)
    assert world.scheduler.newest("s") == 3
    assert world.scheduler.next() is None
    assert world.scheduler.counters.cancelled == 1


def test_snapshots_pin_what_they_have_not_read() -> None:
    scheduler = TransactionScheduler("ws")
    scheduler.ring("s", 4, newest=3)
    query = scheduler.begin({"s": 4})
    scheduler.write("s")  # before the first read: part of the snapshot
    read = scheduler.next()
    assert read is not None and read.number == 1
    scheduler.write("s")
    assert scheduler.pinned("s") == (1,)  # being read
    scheduler.read(read)
    scheduler.write("s", by=2)
    assert scheduler.pinned("s") == (2, 3)
    assert scheduler.state(query) == {"s": 4}
    scheduler.give_up(query)
    assert scheduler.pinned("s") == ()


@pytest.mark.parametrize("kind", ["ws", "lws", "ttu"])
def test_a_one_time_query_suspends_periodic_ones(kind: str) -> None:
    world = World(kind, {"s": 4})
    periodic, other = world.begin({"s": 4}), world.begin({"s": 4})
    world.step()
    one_time = world.begin({"s": 2}, priority=1)
    world.drain()
    assert list(world.answers) == [one_time, periodic, other]
    assert world.scheduler.counters.suspended == 1


def test_all_rings_of_a_join_are_finished_together() -> None:
    """A ring that has been read to its end can bear no update; so the last reads are one in
    each."""
    world = World("ttu", {"a": 5, "b": 5})
    query = world.begin({"a": 5, "b": 5})
    for _ in range(8):
        world.step()
    world.write("a")
    world.write("b")
    while not world.answers:
        world.step()
    assert world.scheduler.counters.aborted == 0
    assert list(world.answers) == [query]


def test_new_sub_windows_go_before_older_ones_of_other_rings() -> None:
    """Reading them uses up no slack: two updates of b are borne that would otherwise abort."""
    scheduler = TransactionScheduler()
    scheduler.ring("a", 3, newest=2)
    scheduler.ring("b", 3, newest=2)
    scheduler.begin({"b": 3, "a": 3})
    reads = []
    for updates in ("", "", "aa", "", "bb", ""):
        assert all(scheduler.write(ring) == () for ring in updates)
        read = scheduler.next()
        assert read is not None
        reads.append((read.ring, read.number))
        done = scheduler.read(read)
    assert reads == [("b", 2), ("a", 2), ("a", 4), ("a", 3), ("b", 4), ("b", 3)]
    assert done


@pytest.mark.parametrize("kind", ["lws", "ttu"])
@pytest.mark.parametrize("rings", [1, 2])
def test_nobody_starves(kind: str, rings: int) -> None:
    """Updates as fast as the bound allows and a crowd of higher priority: the unlucky one commits
    in the end."""
    world = World(kind, {"a": 6, "b": 4}, patience=3)
    reads = dict(list({"a": 6, "b": 4}.items())[:rings])
    unlucky = world.begin(reads)
    for _ in range(3):  # someone gets in between, and the windows move on
        world.hand()
        world.confirm()
        world.begin({"a": 1}, priority=7)
        world.write("a", 6)
        world.step()
    assert world.scheduler.aborts(unlucky) == 3
    crowd = [world.begin({"a": 6}, priority=7) for _ in range(3)]
    for _ in range(20):
        for _ in range(rings):
            world.step()
        world.write("a")
    assert next(iter(id for id in world.answers if id in (unlucky, *crowd))) == unlucky


def test_storage_order_alone_would_starve() -> None:
    """What the bound is for: two reads between updates, and the updates catch up every time."""
    for patience, committed in ((1 << 30, 0), (8, 1)):
        scheduler = TransactionScheduler("lws", patience)
        scheduler.ring("s", 12, newest=12)
        scheduler.begin({"s": 12})
        for step in range(1000):
            read = scheduler.next()
            if read is not None:
                scheduler.read(read)
            if step % 2:
                scheduler.write("s")
        assert scheduler.counters.committed == committed
        assert scheduler.counters.aborted > 100 or committed


def test_misuse_is_named() -> None:
    scheduler = TransactionScheduler()
    scheduler.ring("s", 4)
    for call, message in (
        (
            lambda: TransactionScheduler("mvcc"),
            "no transaction scheduler 'mvcc'; there are serial, ws, lws, ttu",
        ),
        (lambda: scheduler.write("t"), "no ring 't'; there are s"),
        (lambda: scheduler.begin({"s": 5}), "5 sub-windows of ring s, which has 4"),
        (lambda: scheduler.begin({"s": 0}), "0 sub-windows"),
        (lambda: scheduler.begin({}), "at least one ring"),
        (lambda: scheduler.ring("t", 0), "of 0 sub-windows"),
        (lambda: scheduler.write("s", by=-1), "moved by -1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert scheduler.next() is None and scheduler.counters.begun == 0


def test_a_ring_changes_between_transactions_only() -> None:
    scheduler = TransactionScheduler()
    scheduler.ring("s", 2)
    assert scheduler.newest("s") == -1
    scheduler.write("s")
    query = scheduler.begin({"s": 2})
    for change in (lambda: scheduler.ring("s", 4), lambda: scheduler.drop("s")):
        with pytest.raises(ValueError, match="transactions are reading it"):
            change()
    reads = [scheduler.next()]
    scheduler.read(reads[0])
    reads.append(scheduler.next())
    assert [r and r.number for r in reads] == [0, -1]  # what was never written reads as empty
    assert scheduler.read(reads[1])
    assert query not in scheduler.running()
    scheduler.ring("s", 4)
    assert scheduler.newest("s") == 0
    scheduler.drop("s")
    with pytest.raises(ValueError, match="no ring 's'; there are none"):
        scheduler.newest("s")


def test_a_read_is_confirmed_once() -> None:
    scheduler = TransactionScheduler()
    scheduler.ring("s", 4)
    scheduler.begin({"s": 4})
    read = scheduler.next()
    assert read is not None and scheduler.next() == read
    scheduler.read(read)
    with pytest.raises(ValueError, match="not what next"):
        scheduler.read(read)


def test_long_windows_are_cheap() -> None:
    """Ten thousand sub-windows and a thousand waiting readers: no call looks at all of them."""
    scheduler = TransactionScheduler()
    scheduler.ring("s", 10_000, newest=9_999)
    for _ in range(1_000):
        scheduler.begin({"s": 10_000})
    for step in range(30_000):
        read = scheduler.next()
        assert read is not None
        scheduler.read(read)
        if step % 3 == 0:
            scheduler.write("s")
    assert scheduler.counters.committed >= 1 and scheduler.counters.aborted == 0
