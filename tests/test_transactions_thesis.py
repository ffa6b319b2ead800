"""The transaction scheduler against the thesis: its histories, its theorems, its pseudo-code line
by line.

Golab 2006, ch. 7.  Theorem 7.4 is checked by going through everything on small rings;
`test_restarts_...` says where its wording ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.schedulers.transactions import TransactionScheduler
from tests.histories import (
    History,
    commit_order_preserving,
    graph,
    latest_window_serializable,
    parse,
    reads_latest_states,
    reads_true_states,
    window_serializable,
)

# name -> (history over five sub-windows, WS, LWS, CPS, edges of the serialization graph that Figure
# 7.4 draws)
THESIS = {
    "a": (
        "rQ1[0] w5[0] c5 w6[1] c6 rQ1[1] rQ1[2] rQ1[3] rQ1[4] cQ1",
        False,
        False,
        False,
        "Q1-5 6-Q1",
    ),
    "b": (
        "rQ1[0] w5[0] c5 rQ1[1] w6[1] c6 rQ1[2] rQ1[3] rQ1[4] cQ1",
        True,
        False,
        False,
        "Q1-5 Q1-6",
    ),
    "c": (
        "w5[0] c5 rQ1[0] rQ1[1] rQ1[2] rQ1[3] w6[1] c6 rQ1[4] cQ1",
        True,
        False,
        False,
        "5-Q1 Q1-6",
    ),
    "d": (
        "w5[0] c5 rQ1[0] w6[1] c6 rQ1[1] rQ1[2] rQ1[3] rQ1[4] cQ1",
        True,
        True,
        True,
        "5-Q1 6-Q1",
    ),
    "e": (
        "rQ1[4] w5[0] c5 rQ1[0] rQ1[3] rQ1[2] w6[1] c6 rQ1[1] cQ1",
        True,
        True,
        True,
        "5-Q1 6-Q1",
    ),
    "f": (
        "rQ1[0] w5[0] c5 rQ1[1] rQ1[2] rQ1[3] w6[1] c6 rQ1[4] cQ1",
        True,
        False,
        False,
        "Q1-5 Q1-6",
    ),
    "g": (
        "rQ1[0] w5[0] w6[1] c6 rQ1[1] rQ1[2] rQ1[3] rQ1[4] cQ1 c5",
        False,
        False,
        True,
        "Q1-5 6-Q1",
    ),
    "h": ("rQ1[0] rQ1[1] rQ1[2] rQ1[3] w9[4] rQ1[4] cQ1 c9", True, True, False, "9-Q1"),
}


@pytest.mark.parametrize("name", THESIS)
def test_histories_of_the_thesis(name: str) -> None:
    text, ws, lws, cps, edges = THESIS[name]
    history = parse(text, 5)
    assert window_serializable(history) == reads_true_states(history) == ws
    assert latest_window_serializable(history) == reads_latest_states(history) == lws
    assert commit_order_preserving(history) == cps
    assert {e for e in graph(history) if "*" not in "".join(e)} == {
        tuple(e.split("-")) for e in edges.split()
    }


@pytest.mark.parametrize("name", THESIS)
def test_printed_histories_are_parsed_to_themselves(name: str) -> None:
    history = parse(THESIS[name][0], 5)
    assert parse(str(history), 5) == history
    with pytest.raises(ValueError, match="not an operation: x5"):
        parse("rQ1[0] x5[0]", 5)


@pytest.mark.parametrize(
    ("kind", "text"), [("ttu", THESIS["e"][0]), ("lws", THESIS["d"][0]), ("ws", THESIS["b"][0])]
)
def test_schedulers_read_as_the_thesis_prints(kind: str, text: str) -> None:
    """Fed the same updates at the same places, the scheduler picks the very reads."""
    expected = parse(text, 5)
    scheduler = TransactionScheduler(kind)
    scheduler.ring("", 5, newest=4)
    history = History({"": 5}, {"": 4})
    scheduler.begin({"": 5})
    for op in expected.ops:
        if op.kind == "w" and op.number is not None:
            assert scheduler.write("") == ()
            history.write("", op.number)
        elif op.kind == "r":
            read = scheduler.next()
            assert read is not None
            history.read("Q1", "", read.number)
            if scheduler.read(read):
                history.commit("Q1")
    assert history == expected


@pytest.mark.parametrize("name", ["a", "b", "f", "g"])
def test_storage_order_aborts_where_the_thesis_says(name: str) -> None:
    """H_f: "violated immediately after T_5 has committed"."""
    scheduler = TransactionScheduler("lws")
    scheduler.ring("", 5, newest=4)
    query = scheduler.begin({"": 5})
    first = scheduler.next()
    assert first is not None and first.slot == 0 and not scheduler.read(first)
    assert parse(THESIS[name][0], 5).ops[1].kind == "w"
    assert scheduler.write("") == (query,)
    assert scheduler.aborts(query) == 1


# -- theorems 7.1, 7.2 and 7.5: whatever the interleaving, the graph says what the definitions say


def _histories(size: int, length: int, writes: int) -> Iterator[History]:
    """One query over the youngest `length`: its reads in every order of slots, `writes` updates at
    every place."""
    for places in product(range(length + 1), repeat=writes):
        if list(places) == sorted(places):
            for choice in product(range(size), repeat=length):
                history = History({"": size}, {"": size - 1})
                newest = size - 1
                for step in range(length + 1):
                    for _ in range(places.count(step)):
                        newest += 1
                        history.write("", newest)
                    if step < length:
                        history.read("Q1", "", newest - choice[step])
                history.commit("Q1")
                if len(set(history.reads_of("Q1")[""])) == length:
                    yield history


@pytest.mark.parametrize(
    ("size", "length", "writes"), [(2, 2, 3), (3, 3, 3), (4, 2, 3), (4, 3, 2), (4, 4, 2)]
)
def test_the_graph_decides_as_the_definitions(size: int, length: int, writes: int) -> None:
    verdicts = set()
    for history in _histories(size, length, writes):
        ws, lws = reads_true_states(history), reads_latest_states(history)
        assert window_serializable(history) == ws, str(history)
        assert latest_window_serializable(history) == lws, str(history)
        if ws:
            assert commit_order_preserving(history) == lws, str(history)
        verdicts.add((ws, lws))
    assert verdicts == {(False, False), (True, False), (True, True)}


# -- algorithms 7 and 8 as printed


class Printed:
    """Both algorithms for one ring, with bit and TTU arrays; `L` holds [n_k, B, reads done]."""

    def __init__(self, n: int, ttu: bool) -> None:
        self.n, self.by_ttu, self.j = n, ttu, n - 1
        self.ttu = [i + 1 for i in range(n)]
        self.running: dict[int, tuple[int, list[bool]]] = {}

    def begin(self, k: int, n_k: int) -> None:
        self.running[k] = (n_k, [False] * self.n)

    def write(self) -> set[int]:
        self.j += 1
        self.ttu = [v - 1 for v in self.ttu]
        self.ttu[self.j % self.n] = self.n
        return {
            k for k, (n_k, bits) in self.running.items() if bits[(self.j + self.n - n_k) % self.n]
        }

    def read(self, k: int) -> tuple[int, bool]:
        n_k, bits = self.running[k]
        window = [i for i in range(self.n) if self.ttu[i] > self.n - n_k and not bits[i]]
        m = max(window, key=lambda i: self.ttu[i]) if self.by_ttu else min(window)
        bits[m] = True
        done = sum(bits) == n_k
        if done:
            del self.running[k]
        return m, done


@given(
    st.integers(1, 6),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), max_size=60),
)
def test_the_scheduler_is_the_printed_algorithm(
    n: int, ttu: bool, steps: list[tuple[int, int]]
) -> None:
    scheduler = TransactionScheduler("ttu" if ttu else "lws", patience=1 << 30)
    scheduler.ring("s", n, newest=n - 1)
    printed = Printed(n, ttu)
    for action, n_k in steps:
        if action == 0:
            aborted = printed.write()
            assert set(scheduler.write("s")) == aborted
            for k in aborted:
                printed.begin(k, printed.running[k][0])
        elif action == 1:
            printed.begin(scheduler.begin({"s": min(n, n_k)}), min(n, n_k))
        else:
            read = scheduler.next()
            assert (read is None) == (not printed.running)
            if read is not None:
                assert (read.slot, scheduler.read(read)) == printed.read(read.transaction)


# -- theorem 7.4


@cache
def some_order_survives(n: int, pattern: str, newest: int, read: frozenset[int]) -> bool:
    """Whether a reader over n sub-windows that has read those may go on, in some order, without
    being aborted before it has read all, or the pattern of reads (R) and updates (W) ends."""
    if not pattern or len(read) == n:
        return True
    rest = pattern[1:]
    if pattern[0] == "W":
        return newest - n + 1 not in read and some_order_survives(n, rest, newest + 1, read)
    unread = [k for k in range(newest - n + 1, newest + 1) if k not in read]
    return any(some_order_survives(n, rest, newest, read | {k}) for k in unread)


def run(kind: str, size: int, n: int, pattern: str, again: bool = False) -> tuple[int, bool]:
    """Aborts and whether it committed; not `again`: up to the first abort."""
    scheduler = TransactionScheduler(kind, patience=1 << 30)
    scheduler.ring("s", size, newest=size - 1)
    scheduler.begin({"s": n})
    for step in pattern:
        if step == "W":
            if scheduler.write("s") and not again:
                break
        else:
            read = scheduler.next()
            if read is not None and scheduler.read(read):
                return scheduler.counters.aborted, True
    return scheduler.counters.aborted, False


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_theorem_7_4(size: int) -> None:
    """Where any order of reads gets a transaction through, ours does: every pattern of reads and
    updates, every order, every shorter window.  Readers don't disturb one another, so this holds
    for any number of them."""
    saved = 0
    for n in range(1, size + 1):
        for pattern in map("".join, product("RW", repeat=9)):
            aborts = run("ttu", size, n, pattern)[0]
            assert aborts == 0 or not some_order_survives(n, pattern, size - 1, frozenset()), (
                n,
                pattern,
            )
            saved += run("lws", size, n, pattern)[0] > aborts
    assert saved > 0 or size == 1


def test_storage_order_never_gets_through_where_time_to_update_does_not() -> None:
    for size, pattern in product((2, 3, 4), map("".join, product("RW", repeat=9))):
        for n in range(1, size + 1):
            assert run("ttu", size, n, pattern)[0] <= run("lws", size, n, pattern)[0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_one_read_between_updates_is_enough(size: int) -> None:
    """Why §7.5 sees no aborts, and why no transaction starves: no two updates in a row, no abort,
    ever."""
    for pattern in map("".join, product(("R", "WR"), repeat=9)):
        for n in range(1, size + 1):
            assert run("ttu", size, n, pattern, again=True)[0] == 0


@cache
def fewest_aborts(n: int, pattern: str, newest: int, read: frozenset[int]) -> int:
    """Of all orders, when an aborted reader starts again at once and all its aborts count."""
    if not pattern or len(read) == n:
        return 0
    rest = pattern[1:]
    if pattern[0] == "W":
        hit = newest - n + 1 in read
        return hit + fewest_aborts(n, rest, newest + 1, frozenset() if hit else read)
    unread = [k for k in range(newest - n + 1, newest + 1) if k not in read]
    return min(fewest_aborts(n, rest, newest, read | {k}) for k in unread)


def test_restarts_may_differ_when_updates_come_faster_than_reads() -> None:
    """The theorem is about a transaction up to its abort.  If what restarts is counted too, an
    order that fails early may have a head start for its second try; even storage order.  It takes
    updates without a read between them."""
    better = [
        p
        for length in range(1, 10)
        for p in map("".join, product("RW", repeat=length))
        if fewest_aborts(3, p, 2, frozenset()) < run("ttu", 3, 3, p, again=True)[0]
    ]
    assert better and all("WW" in p for p in better)
    assert min(map(len, better)) == 9 and "RWRWWRRWW" in better
    assert run("lws", 3, 3, "RWRWWRRWW", again=True) == (1, True)
    assert run("ttu", 3, 3, "RWRWWRRWW", again=True) == (2, False)
