"""Joins of many windows in one operator: the pushes of trees of joins, and those of the oracle."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.operators import multi_join
from dsms.operators import multi_join_kernels as kernels
from dsms.operators.multi_join import Arena
from dsms.operators.multi_join_kernels import AHEAD
from dsms.settings import Settings
from tests.effort import examples, thinned
from tests.generate.many_windows import joined_sliding, joined_windows
from tests.stories.model import Story
from tests.stories.play import Way
from tests.test_equivalence import check
from tests.test_periodic_equivalence import check as check_boundaries
from tests.test_recovery_equivalence import check as check_restarts

SEEDS = st.integers(0, 9999)
PIPELINE, TREE = (("joins", "pipeline"),), (("joins", "tree"),)


def ways(seed: int, more: tuple[tuple[str, str], ...] = ()) -> list[Way]:
    return [
        Way("upa", "all", True, seed, PIPELINE + more),
        Way("upa", "random", True, seed, TREE + more),
        Way("direct", "rows", True, seed, PIPELINE + more),
        Way("nt", "random", True, seed, PIPELINE + more),
        Way("upa", "random", True, seed + 1, more),
    ]


@settings(max_examples=examples(24))
@given(joined_windows(), SEEDS)
def test_pipeline_tree_and_oracle_agree(story: Story, seed: int) -> None:
    """Over windows of all kinds, NULLs, ties, tables beside, and however the rows are cut."""
    check(story, ways(seed))


@settings(max_examples=examples(12), deadline=None)
@given(joined_windows(), SEEDS)
def test_restarts(story: Story, seed: int) -> None:
    check_restarts(story, ways(seed)[(0, 2, 3)[seed % 3]], seed)


@settings(max_examples=examples(12))
@given(joined_sliding(), SEEDS)
def test_boundaries(story: Story, seed: int) -> None:
    """Rows of a period come at its end, and those of one key look together; or each at its own
    instant, with restore."""
    path = (("path", ("'is'", "'is'", "ws")[seed % 3]),)
    check_boundaries(story, ways(seed, path))


# ---------------------------------------------------------------- in the engine

DDL = ";".join(f"CREATE STREAM {s} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t" for s in "abc")
SECOND = 1_000_000


def engine(limit: int = 1 << 22) -> Engine:
    made = Engine(settings=Settings(step_rows=limit))
    made.execute(DDL)
    return made


def joined(alias: str, items: str = "{0}.v", where: str = "") -> str:
    x, y, z = (f"{alias}{i}" for i in range(3))
    return (
        f"SELECT Istream({items.format(x)} AS v) FROM a [RANGE 9 s] {x}, b [RANGE 9 s] {y}, "
        f"c [RANGE 9 s] {z} WHERE {x}.k = {y}.k AND {y}.k = {z}.k{where} WITH (joins = pipeline)"
    )


def fed(made: Engine, rows: int, at: int) -> None:
    for stream in "abc":
        given = {"k": [1] * rows, "v": list(range(rows)), "t": [at * SECOND] * rows}
        made.ingest(stream, given)
        made.heartbeat(stream, at * SECOND)


def test_equal_ones_run_once() -> None:
    made = engine()
    made.execute(f"CREATE QUERY q AS {joined('x')}; CREATE QUERY r AS {joined('y', '{0}.v + 1')}")
    fed(made, 3, 1)
    shared = made.execute("SHOW SHARING")[0].data.to_pylist()
    assert any("MultiJoin x0.k = x1.k = x2.k" in str(line) for line in shared)
    assert made.next_seq("q") == made.next_seq("r") == 27


def test_too_many_results_of_one_instant_stop_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of results, not of what the condition leaves out; those of instants before are told."""
    monkeypatch.setattr(multi_join, "PART", 7)
    made = engine(limit=30)
    made.execute(
        f"CREATE QUERY q AS {joined('x')};"
        f"CREATE QUERY few AS {joined('y', where=' AND y0.v = y1.v AND y0.v = y2.v')}"
    )
    readers = [made.subscribe(q, 0) for q in ("q", "few")]
    fed(made, 3, 1)
    fed(made, 10, 20)
    told = [list(reader.take()) for reader in readers]
    assert told[0][-1].code == "DS631"
    assert sum(len(push.data or ()) for push in told[0]) == 27
    assert sum(len(push.data or ()) for push in told[1]) == 3 + 10


def test_of_rows_of_one_period_the_older_hide_no_younger_one_of_another_key() -> None:
    """They look by key, so an old one may stand before a young one in a chain that both are in."""
    made = engine()
    of = "FROM a [RANGE 9 s SLIDE 5 s] x, b [RANGE 9 s SLIDE 5 s] y, c [RANGE 9 s SLIDE 5 s] z"
    where = "WHERE x.k = y.k AND y.k = z.k"
    for joins in ("pipeline", "tree"):
        made.execute(
            f"CREATE QUERY {joins} AS SELECT Rstream(x.k) {of} {where} WITH (joins = {joins})"
        )
    n = 200  # keys, most of which share a chain with another one
    made.ingest("a", [[n - i, i, i * 4 * SECOND // n] for i in range(n)])
    for stream in "bc":
        made.ingest(stream, [[k, k, 10 * SECOND + 1] for k in range(n + 1)])
    made.ingest("a", [[n - i, i, 5 * SECOND + i * 4 * SECOND // n] for i in range(n)])
    for stream in "abc":
        made.heartbeat(stream, 30 * SECOND)
    told = [made.subscribe(joins, 0).take_changes().arrow() for joins in ("pipeline", "tree")]
    assert told[0].num_rows > n // 2
    assert told[0].equals(told[1])


# ---------------------------------------------------------------- the kernel


def every(rows: list[list[tuple[int, int, int]]]) -> list[tuple[int, ...]]:
    """Slots of all results, from the definition: (ts, exp, key) by input."""
    out = []
    for wanted in {key for _, _, key in rows[0]}:
        of = [[s for s, (_, _, key) in enumerate(r) if key == wanted] for r in rows]
        for slots in product(*of):
            parts = [rows[i][s] for i, s in enumerate(slots)]
            if max(p[0] for p in parts) < min(p[1] for p in parts):
                out.append(slots)
    return sorted(out)


@thinned()
@pytest.mark.parametrize(
    ("n", "count", "until", "values"),
    [(3, 14, 9, 2), (4, 14, 9, 2), (8, 4, 9, 2), (3, 2 * AHEAD, 400, 60), (4, AHEAD, 60, 40)],
)
@pytest.mark.parametrize("enough", [1, 1000])
def test_the_kernel_makes_each_combination_once(
    n: int, count: int, until: int, values: int, enough: int
) -> None:
    """Also where the product of one row is cut, where rows of one instant look together, and where
    more rows come than are looked up ahead of their turn, of which many find none."""
    random = Random(n)
    rows = [
        sorted((random.randint(0, until), random.randrange(values)) for _ in range(count))
        for _ in range(n)
    ]
    lives = [[(ts, ts + 1 + 3 * (i + 1), key) for ts, key in r] for i, r in enumerate(rows)]
    arena = Arena(n)
    arena.reserve([len(r) for r in lives])
    for i, r in enumerate(lives):
        _, exp, keys = (np.array(c, np.int64) for c in zip(*r, strict=True))
        arena.add(i, keys, np.ones(len(r), np.bool_), exp)
    first = np.append(0, np.cumsum([len(r) for r in rows]))
    when = np.array([ts for r in lives for ts, _, _ in r], np.int64)
    slot = np.concatenate([np.arange(len(r)) for r in rows])
    *events, runs = kernels.merged(when, np.ones(len(when), np.int8), slot, first)
    assert runs == len(set(zip(events[0].tolist(), events[2].tolist(), strict=True)))
    order = np.array([[j for j in range(n) if j != i] for i in range(n)])
    at, found = np.zeros(2, np.int64), []
    while at[0] < len(when):
        given = (arena.head, arena.rows, arena.offset, arena.old, np.zeros(n, np.int64))
        made, _ = kernels.multi_join(*given, np.ones(n, np.bool_), order, at, enough, *events)
        *slots, exp, ts = made.tolist()
        assert len(ts) <= enough
        for row, end, born in zip(zip(*slots, strict=True), exp, ts, strict=True):
            parts = [lives[i][s] for i, s in enumerate(row)]
            assert (born, end) == (max(p[0] for p in parts), min(p[1] for p in parts))
            found.append(row)
    assert sorted(found) == every(lives)
