"""Adaptive joins: the pushes of trees of joins, and those of the oracle, whatever the routes, the
indices and the partitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.operators import adaptive_join, routing, stems, tuning
from dsms.operators.adaptive_join import AdaptiveJoinOp
from dsms.settings import Settings
from tests.effort import effort, examples
from tests.generate.many_equalities import joined_anyhow, joined_anyhow_sliding
from tests.generate.many_windows import joined_windows
from tests.stories.model import Story
from tests.stories.play import Way
from tests.test_equivalence import check
from tests.test_periodic_equivalence import check as check_boundaries
from tests.test_recovery_equivalence import check as check_restarts

SEEDS = st.integers(0, 9999)
TREE = (("joins", "tree"),)


def adaptive(seed: int) -> tuple[tuple[str, str], ...]:
    """Hash indices, or bit-address indices under all options."""
    if seed % 2:
        return (("joins", "adaptive"),)
    migration = ("nothing", "all", "partial")[seed % 3]
    schedule = ("continuous", "periodic", "triggered", "hybrid")[seed // 3 % 4]
    return ("joins", "adaptive"), ("migration", migration), ("tuning", schedule)


def ways(seed: int, more: tuple[tuple[str, str], ...] = ()) -> list[Way]:
    return [
        Way("upa", "all", True, seed, adaptive(seed) + more),
        Way("upa", "random", True, seed, TREE + more),
        Way("direct", "rows", True, seed, adaptive(seed + 1) + more),
        Way("nt", "random", True, seed, adaptive(seed + 2) + more),
        Way("upa", "random", True, seed + 1, more),
    ]


@contextmanager
def small() -> Iterator[None]:
    """Partitions of a few rows, few rows at a time, indices tuned all the time, probes of all
    STeMs: so that a few rows meet all of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stems, "LEAST", 3)
        patch.setattr(adaptive_join, "PART", 5)
        patch.setattr(adaptive_join, "EXPLORE", 2)
        patch.setattr(routing, "AGAIN", 2)
        patch.setattr(routing, "FEW", 1)
        old = tuning.Tuner.__post_init__

        def soon(tuner: tuning.Tuner) -> None:
            tuner.period, tuner.trigger = 9, 15
            old(tuner)

        patch.setattr(tuning.Tuner, "__post_init__", soon)
        yield


@settings(max_examples=examples(45), deadline=None)
@given(joined_anyhow(), SEEDS)
def test_adaptive_tree_and_oracle_agree(story: Story, seed: int) -> None:
    """On any equalities, over windows of all kinds, NULLs, ties, and however the rows are cut."""
    with small():
        check(story, ways(seed))


@settings(max_examples=examples(15), deadline=None)
@given(joined_windows(), SEEDS)
def test_one_equality_of_all_is_a_case_of_it(story: Story, seed: int) -> None:
    with small():
        check(story, ways(seed)[::2])


@settings(max_examples=examples(15), deadline=None)
@given(joined_anyhow(), SEEDS)
def test_restarts(story: Story, seed: int) -> None:
    with small():
        check_restarts(story, ways(seed)[(0, 2, 3)[seed % 3]], seed)


@settings(max_examples=examples(15), deadline=None)
@given(joined_anyhow_sliding(), SEEDS)
def test_boundaries(story: Story, seed: int) -> None:
    path = (("path", ("'is'", "'is'", "ws")[seed % 3]),)
    with small():
        check_boundaries(story, ways(seed, path))


# ---------------------------------------------------------------- in the engine

SECOND = 1_000_000
STREAMS = "abcd"
DDL = ";".join(
    f"CREATE STREAM {s} (x INT, y INT, z INT, v INT, t TIMESTAMP) TIMESTAMP BY t" for s in STREAMS
)
CLIQUE = "a.x = b.x AND a.y = c.x AND a.z = d.x AND b.y = c.y AND b.z = d.y AND c.z = d.z"
FROM = ", ".join(f"{s} [RANGE 20 s]" for s in STREAMS)
QUERY = f"SELECT Istream(a.v, b.v AS bv, c.v AS cv, d.v AS dv) FROM {FROM} WHERE {CLIQUE}"


def fed(engine: Engine, seconds: int, rows: int, values: tuple[int, ...], first: int = 0) -> None:
    """`values` of x, y, z: they take turns, so that each stream's best route changes."""
    rng = np.random.default_rng(5)
    for second in range(first, first + seconds):
        turn = (second - first) // 15 % 3
        domains = values[turn:] + values[:turn]
        for s in STREAMS:
            given = {c: rng.integers(0, n, rows) for c, n in zip("xyz", domains, strict=True)}
            engine.ingest(s, {**given, "v": np.arange(rows), "t": np.full(rows, second * SECOND)})
            engine.heartbeat(s, second * SECOND)


def operator(engine: Engine, query: str) -> AdaptiveJoinOp:
    stages = engine.runtime.queries[query].pipeline.stages  # type: ignore[attr-defined]
    return next(s.operator for s in stages if isinstance(s.operator, AdaptiveJoinOp))


def test_routes_and_indices_follow_the_data() -> None:
    """Selectivities take turns: routes and configurations change, results stay those of a tree."""
    engine = Engine()
    engine.execute(DDL)
    engine.execute(f"CREATE QUERY q AS {QUERY} WITH (joins = adaptive, tuning = continuous)")
    engine.execute(f"CREATE QUERY tree AS {QUERY} WITH (joins = tree)")
    op = operator(engine, "q")
    op.tuner.period = 2000
    op.tuner.ends = [2000] * 4
    fed(engine, 45 if effort() else 30, 40, (4, 16, 40))
    assert engine.next_seq("q") == engine.next_seq("tree") > 0
    assert sum(op.tuner.changes) > 0
    assert len({config for stem in op.stems for config, _ in stem.index.configs()}) > 1
    assert op.live() <= 4 * 22 * 40
    told = engine.execute("EXPLAIN ANALYZE QUERY q")[0].data["plan"].to_pylist()
    (routes,) = [line for line in told if line.startswith("routes now: a to ")]
    assert all(f"{s} to " in routes for s in STREAMS)
    (index,) = [line for line in told if line.startswith("index of a: ")]
    assert " with bits " in index
    assert f"changed {op.tuner.changes[0]} times" in index
    assert "probed by " in index
    assert "partitions sorted anew: 0" in told


def test_routes_follow_the_data_over_hash_indices() -> None:
    engine = Engine()
    engine.execute(DDL)
    engine.execute(f"CREATE QUERY q AS {QUERY} WITH (joins = adaptive)")
    engine.execute(f"CREATE QUERY tree AS {QUERY} WITH (joins = tree)")
    op, routes = operator(engine, "q"), set()
    for k, values in enumerate(((4, 16, 40), (40, 4, 16), (16, 40, 4))):
        fed(engine, 15, 40, values, first=45 * k)
        routes.add(tuple(op.router.best(i, op.stems) for i in range(4)))
    assert len(routes) > 1
    assert engine.next_seq("q") == engine.next_seq("tree") > 0
    told = engine.execute("EXPLAIN ANALYZE QUERY q")[0].data["plan"].to_pylist()
    assert any(line.startswith("routes now: a to ") for line in told)
    assert not any(line.startswith("index of ") for line in told)


def test_migration_sorts_partitions_anew() -> None:
    """All of them, or those that will still be probed often enough."""
    moved = {}
    for migration in ("nothing", "partial", "all"):
        engine = Engine()
        engine.execute(DDL)
        more = f"joins = adaptive, tuning = continuous, migration = {migration}"
        engine.execute(f"CREATE QUERY q AS {QUERY} WITH ({more})")
        op = operator(engine, "q")
        op.tuner.period, op.tuner.ends = 2000, [2000] * 4
        fed(engine, 40 if effort() else 25, 40, (4, 16, 40))
        moved[migration] = op.tuner.moved
    assert 0 == moved["nothing"] <= moved["partial"] <= moved["all"]
    assert moved["all"] > 0


def test_too_many_results_of_one_instant_stop_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of results, not of what the condition leaves out; those of instants before are told."""
    monkeypatch.setattr(adaptive_join, "PART", 7)
    engine = Engine(settings=Settings(step_rows=30))
    engine.execute(DDL)
    windows = ", ".join(f"{s} [RANGE 9 s]" for s in "abc")
    sql = f"SELECT Istream(a.v) FROM {windows} WHERE a.x = b.x AND b.y = c.y"
    engine.execute(f"CREATE QUERY q AS {sql} WITH (joins = adaptive)")
    engine.execute(f"CREATE QUERY few AS {sql} AND a.v + b.v = 2 * c.v WITH (joins = adaptive)")
    readers = [engine.subscribe(q, 0) for q in ("q", "few")]
    for rows, at in ((3, 1), (4, 20)):
        for s in "abc":
            ones = [1] * rows
            cells = {"x": ones, "y": ones, "z": ones, "v": [0, 10, 100, 1000][:rows]}
            engine.ingest(s, {**cells, "t": [at * SECOND] * rows})
            engine.heartbeat(s, at * SECOND)
    told = [list(reader.take()) for reader in readers]
    assert told[0][-1].code == "DS631"
    assert sum(len(push.data or ()) for push in told[0]) == 27
    assert sum(len(push.data or ()) for push in told[1]) == 3 + 4
