"""Queries get the rows that an index over their predicates finds, and answer as if each had looked
at all of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.operators.expressions import ErrorCounter, compile_predicate
from dsms.operators.predicate_index import PredicateIndex, atom_of
from dsms.running.dispatch import lookup_of
from dsms.sql import logical as lp
from dsms.state.batch import Batch
from tests.effort import examples
from tests.hosts import Host as AnyHost
from tests.stories.declared import Declared

SECOND = 1_000_000
DDL = (
    "CREATE STREAM s (k INT, f FLOAT, n STRING, d DECIMAL(12, 2), u TIMESTAMP, b BOOL, "
    "t TIMESTAMP) TIMESTAMP BY t"
)
INTS, TEXTS = [0, 1, 2, 3, -(2**63), 2**63 - 1], ["", "a", "b", "ab"]
FLOATS = [0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf")]
DECIMALS = [Decimal("0"), Decimal("1.50"), Decimal("-1.50"), Decimal("9999999999.99")]

ATOMS = st.one_of(
    st.builds("k {} {}".format, st.sampled_from(["=", "<", "<=", ">", ">="]), st.integers(-1, 4)),
    st.builds("{} {} k".format, st.integers(-1, 4), st.sampled_from(["=", "<", "<=", ">", ">="])),
    st.builds("k BETWEEN {} AND {}".format, st.integers(-1, 3), st.integers(-1, 3)),
    st.sampled_from(
        [
            "k IN (1, 3, 1)", "k IS NULL", "k IS NULL OR k = 2", "k = 1 OR k IN (2, 3)",
            "k > 9223372036854775806", "k < -9223372036854775807", "k >= 9223372036854775807",
            "f = 0.0", "f = -0.0", "f = CAST('nan' AS FLOAT)", "f > 1.0", "f <= 1.5", "f < 0.0",
            "f BETWEEN -1.5 AND 1.5", "f IS NULL", "f >= CAST('inf' AS FLOAT)", "f IN (1.5, -1.5)",
            "n = 'a'", "n IN ('a', 'ab')", "n = ''", "n IS NULL", "n > 'a'", "n LIKE 'a%'",
            "d = 1.5", "d = 1.50", "d >= 1.5", "d < 1.5", "d BETWEEN -1.50 AND 0", "d IN (0, 1.5)",
            "u = TIMESTAMP '1970-01-01 00:00:01'", "u > TIMESTAMP '1970-01-01 00:00:01'",
            "b", "b = TRUE", "NOT b", "b IS NULL", "k <> 1", "k = 1 OR n = 'a'", "k = NULL",
            "1 / k > 0", "10 / (k - 1) < 5", "CAST(n AS INT) = 1", "k IN (1, NULL)", "TRUE",
        ]
    ),
)  # predicates by the line  # fmt: skip
PREDICATES = st.lists(ATOMS, min_size=1, max_size=3).map(" AND ".join)
SHAPES = st.sampled_from(
    [
        "SELECT * FROM s [NOW] WHERE {}",
        "SELECT Istream(k, f) FROM s [NOW] WHERE {}",
        "SELECT k, n FROM s [RANGE 2 s] WHERE {}",
        "SELECT Dstream(k) FROM s [RANGE 3 s] WHERE {}",
        "SELECT k + 1 AS x FROM s WHERE {}",
        "SELECT n, COUNT(*) AS c, MAX(f) AS m FROM s [RANGE 3 s] WHERE {} GROUP BY n",
        "SELECT COUNT(*) AS c FROM s [RANGE 2 s] WHERE {}",
        "SELECT DISTINCT k FROM s [RANGE 2 s] WHERE {}",
        "SELECT k FROM s [ROWS 3] WHERE {}",
        "SELECT k FROM s [RANGE 4 s UNTIL 1 s AGO] WHERE {}",
        "SELECT k FROM s [RANGE 3 s SLIDE 2 s] WHERE {}",
        "SELECT a.k FROM s [RANGE 1 s] AS a, s [RANGE 2 s] AS c WHERE a.k = c.k AND a.{}",
        "SELECT 1 / k AS x FROM (SELECT k FROM s [RANGE 2 s] WHERE {}) AS q WHERE k < 3",
    ]
)
OPTIONS = st.sampled_from(
    ["", "", "", " WITH (on_error = 'stop')", " WITH (strategy = 'nt')", " WITH (optimize = FALSE)"]
)
ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from(INTS),
        st.none() | st.sampled_from(FLOATS),
        st.none() | st.sampled_from(TEXTS),
        st.none() | st.sampled_from(DECIMALS),
        st.none() | st.integers(0, 2).map(lambda x: x * SECOND),
        st.none() | st.booleans(),
        st.integers(0, 2),  # halves of a second later than the row before
    ),
    max_size=6,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), ROWS),
        st.tuples(st.just("rows"), ROWS),
        st.tuples(st.just("query"), st.tuples(SHAPES, PREDICATES, OPTIONS)),
        st.tuples(st.just("query"), st.tuples(SHAPES, PREDICATES, OPTIONS)),
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("time"), st.integers(0, 8)),
        st.tuples(st.just("look"), st.integers(0, 9)),
        st.tuples(st.just("restart"), st.none()),
    ),
    min_size=4,
    max_size=14,
)


class Host(AnyHost):
    """One with the index, or without it."""

    def __init__(self, folder: str, on: bool, pauses: bool = False) -> None:
        super().__init__(folder, pauses, [DDL], predicate_index=on)

    def create(self, name: str, select: str) -> str:
        try:
            self.engine.execute(f"CREATE QUERY {name} AS {select}")
        except DsmsError as error:
            return f"{error.code} {error.message}"
        self.readers[name] = self.engine.subscribe(name)
        return ""


def same(steps: list[tuple[str, Any]], pauses: bool = False) -> None:
    """Play it with and without the index."""
    with TemporaryDirectory() as on, TemporaryDirectory() as off:
        hosts = [Host(on, True, pauses), Host(off, False, pauses)]
        now, number, names = 0, 0, []
        for kind, given_ in [*steps, ("time", 20), ("look", 0), ("end", None)]:
            told: list[Any] = [None, None]
            match kind:
                case "rows" if given_:
                    ts = []
                    for row in given_:
                        now += row[-1] * SECOND // 2
                        ts.append(now)
                    columns = [list(c) for c in zip(*given_, strict=True)][:-1]
                    data = dict(zip("kfndubt", [*columns, ts], strict=True))
                    for host in hosts:
                        host.engine.ingest("s", data)
                case "query":
                    shape, where, options = given_
                    name = f"q{number}"
                    number += 1
                    told = [h.create(name, shape.format(where) + options) for h in hosts]
                    names += [name] if name in hosts[0].readers else []
                case "drop" if names:
                    name = names.pop(given_ % len(names))
                    for host in hosts:
                        host.drop(name)
                case "time":
                    now += given_ * SECOND // 2
                    for host in hosts:
                        host.engine.heartbeat("s", now)
                case "look":
                    told = [h.look() for h in hosts]
                case "restart":
                    for host in hosts:
                        host.restart()
                case "end":
                    for host in hosts:
                        host.engine.end("s")
                    told = [h.look() for h in hosts]
            assert told[0] == told[1], (kind, given_)
            got, want = (host.taken() for host in hosts)
            assert got == want, (kind, given_)
        for host in hosts:
            host.engine.close()


@settings(max_examples=examples(200), deadline=None)
@given(STEPS, st.booleans())
@example(
    [
        ("query", ("SELECT k + 1 AS x FROM s WHERE {}", "k >= 2", " WITH (on_error = 'stop')")),
        ("rows", [(k, None, None, None, None, None, 1) for k in (2, 1, 2**63 - 1, 3)]),
    ],
    False,
)
@example(
    [
        ("query", ("SELECT k FROM s [RANGE 2 s] WHERE {}", "k = 1 AND 1 / (k - 1) > 0", "")),
        ("rows", [(None, 1.0, "a", None, None, None, 0), (1, None, None, None, None, None, 1)]),
        ("rows", [(2, None, None, None, None, None, 3)]),
        ("restart", None),
        ("look", 0),
    ],
    False,
)
def test_answers_are_the_same_without_it(steps: list[tuple[str, Any]], pauses: bool) -> None:
    same(steps, pauses)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(PREDICATES, min_size=1, max_size=24), ROWS)
def test_it_finds_all_rows_that_a_predicate_is_true_of(wheres: list[str], rows: list[Any]) -> None:
    declared = Declared()
    declared.run(DDL + ";")
    schema = declared.catalog.streams["s"].schema
    columns = [list(c) for c in zip(*rows, strict=True)] if rows else [[]] * 7
    batch = Batch(
        np.arange(len(rows)),
        None,
        None,
        (np.arange(len(rows)),),
        tuple(pa.array(c, f.type.arrow) for c, f in zip(columns, schema, strict=True)),
    )
    index, wanted = PredicateIndex(), {}
    for slot, where in enumerate(wheres):
        plan = declared.register(f"q{slot}", f"SELECT * FROM s [NOW] WHERE {where}")
        select = next((n for n in lp.nodes_of(plan) if isinstance(n, lp.Select)), None)
        atom = None if select is None else atom_of(select.predicate)
        if select is None or atom is None:
            continue
        index.add(slot, atom)
        passed = compile_predicate(select.predicate)(batch.cols, len(batch), ErrorCounter())
        wanted[slot] = {k for k, p in enumerate(passed.to_pylist()) if p}
    found = index.match(batch)
    for slot, own in wanted.items():
        numbers = found[slot].ids[0].tolist() if slot in found else []
        assert own <= set(numbers) and numbers == sorted(set(numbers)), wheres[slot]


@pytest.mark.parametrize(
    ("where", "looked_up"),
    [
        ("k = 1", True),
        ("k = 1 AND 1 / k > 0", True),
        ("1 / k > 0 AND k = 1", True),  # the planner puts first what cannot fail
        ("1 / k = 1", False),
        ("k <> 1", False),
        ("k = 1 OR n = 'a'", False),
        ("n > 'a'", False),
        ("n > 'a' AND d BETWEEN 1 AND 2", True),
    ],
)
def test_what_can_be_looked_up(where: str, looked_up: bool) -> None:
    engine = Engine()
    engine.execute(DDL)
    engine.execute(f"CREATE QUERY q AS SELECT k FROM s [RANGE 1 s] WHERE {where}")
    assert (lookup_of(engine.runtime.queries["q"]) is not None) == looked_up


def test_idle_queries_are_not_touched() -> None:
    """Of 300 the one that has rows moves, and the one whose window lets a row go."""
    engine = Engine()
    engine.execute(DDL)
    for k in range(300):
        engine.execute(f"CREATE QUERY q{k} AS SELECT k, n FROM s [RANGE 5 s] WHERE k = {k}")
    reader = engine.subscribe("q7")
    row = {"f": [1.0], "n": ["a"], "d": [None], "u": [None], "b": [None]}
    engine.ingest("s", row | {"k": [1], "t": [0]})
    engine.ingest("s", row | {"k": [7], "t": [SECOND]})
    engine.heartbeat("s", 2 * SECOND)
    steps = {name: q.pipeline.steps for name, q in engine.runtime.queries.items()}
    engine.ingest("s", row | {"k": [9], "t": [4 * SECOND]})
    engine.ingest("s", row | {"k": [3], "t": [7 * SECOND]})
    moved = {n for n, q in engine.runtime.queries.items() if q.pipeline.steps > steps[n]}
    assert moved == {"q1", "q7", "q9"}  # the newest instant is not complete yet
    assert [(p.kind, p.at) for p in reader.take()] == [
        ("snapshot", None),
        ("insert", SECOND),
        ("delete", 6 * SECOND),
    ]
    clocks = {q["clock"] for q in engine.stats()["queries"].values()}
    assert len(clocks) == 1  # who asks is told the time


def test_many_drops_and_registrations(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path))
    engine.execute(DDL)
    for k in range(400):
        engine.execute(f"CREATE QUERY q{k} AS SELECT k FROM s [NOW] WHERE k = {k}")
    row = {"f": [1.0] * 2, "n": ["a"] * 2, "d": [None] * 2, "u": [None] * 2, "b": [None] * 2}
    engine.ingest("s", row | {"k": [5, 399], "t": [0, 1]})
    for k in range(390):
        engine.execute(f"DROP QUERY q{k}")
    engine.execute("CREATE QUERY q5 AS SELECT k FROM s [NOW] WHERE k = 5")
    engine.ingest("s", row | {"k": [5, 399], "t": [SECOND, SECOND + 1]})
    engine.heartbeat("s", 2 * SECOND)
    assert engine.next_seq("q5") == 2 and engine.next_seq("q399") == 4
    engine.close()
    again = Engine(str(tmp_path))
    again.ingest("s", row | {"k": [5, 399], "t": [3 * SECOND, 3 * SECOND + 1]})
    again.heartbeat("s", 4 * SECOND)
    assert again.next_seq("q5") == 4 and again.next_seq("q399") == 6
    again.close()


def test_who_finds_rows_by_the_index_is_shown() -> None:
    engine = Engine()
    engine.execute(DDL)
    wheres = ["k = 1", "k IN (2, 3)", "f > 1", "f < 2", "n = 'x'", "k <> 1"]
    for name, where in zip("abcdeg", wheres, strict=True):
        engine.execute(f"CREATE QUERY {name} AS SELECT k FROM s [RANGE 1 s] WHERE {where}")
    engine.execute("CREATE QUERY p AS SELECT COUNT(*) FROM s [RANGE 2 s SLIDE 1 s] WHERE k = 1")
    assert [row[:5] for row in shown(engine, "SHOW SHARING")] == [
        ("PI", "s by constants of k", None, "a, b", 2),
        ("PI", "s by ranges of f", None, "c, d", 2),
    ]
    assert shown(engine, "EXPLAIN QUERY e")[-1] == (
        "rows of s: those that the predicate index finds by n",
    )
    assert not any("index" in line for (line,) in shown(engine, "EXPLAIN QUERY g"))
    engine.execute("DROP QUERY b")
    assert [row[3] for row in shown(engine, "SHOW SHARING")] == ["c, d"]


def shown(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
    (rows,) = engine.execute(statement)
    return [tuple(row.values()) for row in rows.data.to_pylist()]  # type: ignore[union-attr]


def test_a_stream_that_is_made_anew_may_have_other_types() -> None:
    engine = Engine()
    for kind, constant, value in (("INT", "1", 1), ("STRING", "'1'", "1"), ("FLOAT", "1.0", 1.0)):
        engine.execute(f"CREATE STREAM s (k {kind}, t TIMESTAMP) TIMESTAMP BY t")
        engine.execute(f"CREATE QUERY q AS SELECT k FROM s WHERE k = {constant}")
        reader = engine.subscribe("q")
        engine.ingest("s", {"k": [value, None], "t": [1, 2]})
        data = [p.data for p in reader.take() if p.kind == "insert"]
        assert [d.column(0).to_pylist() for d in data if d is not None] == [[value]]
        engine.execute("DROP QUERY q; DROP STREAM s")
