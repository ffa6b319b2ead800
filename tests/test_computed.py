"""Computed columns of streams, and TIMESTAMP BY an expression: the same as if a SELECT had made
them, whichever way rows come in, and after restarts."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine
from dsms.errors import DsmsError, UsageError
from dsms.frames import Frame
from dsms.intake.convert import to_batch
from tests.effort import examples
from tests.recovery_world import World, told

S = 1_000_000
MADE = """
CREATE STREAM late (k INT, v INT, half FLOAT, s STRING, r INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM s (k INT, v INT, half FLOAT AS (v / 2.0), s STRING,
    r INT NOT NULL AS (100 / (v - 3)))
    TIMESTAMP BY (CAST(s AS TIMESTAMP) + INTERVAL '1' SECOND) AS at
    SLACK 1 s LATE INTO late MAX FUTURE 1 h RETAIN 1 h
"""
QUERIES = {
    "halves": "SELECT k, half, r FROM s [RANGE 3 s]",
    "sums": "SELECT k, SUM(half) AS h FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
    "lates": "SELECT * FROM late [RANGE UNBOUNDED]",
}
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.none() | st.integers(0, 5),
        st.none() | st.just("x") | st.integers(0, 9).map(lambda n: f"1970-01-01 00:00:0{n}"),
    ),
    max_size=12,
)


def expected(row: tuple) -> tuple | None:
    """The whole row; None: it is refused."""
    k, v, s = row
    if v is None or v == 3 or s is None or s == "x":
        return None
    return k, v, v / 2.0, s, int(100 / (v - 3)), int(s[-1]) * S + S


def declared(engine: Engine, plain: bool) -> None:
    sql = MADE
    if plain:
        sql = sql.replace("AS (v / 2.0)", "").replace("AS (100 / (v - 3)))", ", at TIMESTAMP)")
        sql = sql.replace("(CAST(s AS TIMESTAMP) + INTERVAL '1' SECOND) AS at", "at")
    engine.execute(sql)
    for name, query in QUERIES.items():
        engine.execute(f"CREATE QUERY {name} AS {query}")


def results(engine: Engine) -> dict[str, list[tuple]]:
    engine.end("s")
    return {
        name: [row for push in engine.subscribe(name, 0).take() for row in told(push)]
        for name in QUERIES
    }


@given(st.lists(ROWS, max_size=3), st.booleans(), st.booleans())
@settings(max_examples=examples(120), deadline=None)
def test_it_is_as_if_the_columns_had_been_given(
    tmp_path_factory: pytest.TempPathFactory,
    frames: list[list[tuple]],
    grouped: bool,
    crash: bool,
) -> None:
    world, plain = World(tmp_path_factory.mktemp("data")), Engine()
    world.open()
    declared(world.engine, plain=False)
    declared(plain, plain=True)
    stream = world.engine.runtime.catalog.streams["s"]
    whole = [[e for row in frame if (e := expected(row)) is not None] for frame in frames]
    if grouped:
        made = [Frame(to_batch(f, stream.given), "w", n) for n, f in enumerate(frames)]
        reports = world.engine.ingest_group("s", made)
    else:
        reports = [world.engine.ingest("s", f, client="w", seq=n) for n, f in enumerate(frames)]
    if crash:
        world.crash()
        world.open()
        assert not world.engine.recovered.notes
    others = [plain.ingest("s", f) for f in whole]
    for frame, report, other in zip(frames, reports, others, strict=True):
        assert (report.accepted, report.late) == (other.accepted, other.late)
        assert report.accepted + report.late + report.refused == len(frame)
    assert results(world.engine) == results(plain)
    world.crash()


FORMS: list[Any] = [
    [[1, 4, "1970-01-01"]],
    [{"k": 1, "s": "1970-01-01", "v": 4}],
    {"v": [4], "s": ["1970-01-01"], "k": [1]},
    pa.table({"K": [1], "v": [4], "s": ["1970-01-01"]}),
    pl.DataFrame({"k": [1], "v": [4], "s": ["1970-01-01"]}),
]


@pytest.mark.parametrize("data", FORMS, ids=lambda data: type(data).__name__)
def test_all_forms_of_rows(data: Any) -> None:
    engine = Engine()
    declared(engine, plain=False)
    assert engine.ingest("s", data).accepted == 1
    engine.heartbeat("s", 9 * S)
    (found,) = engine.execute("SELECT * FROM s [RANGE 1 h]")
    assert [tuple(row.values()) for row in found.data.to_pylist()] == [
        (1, 4, 2.0, "1970-01-01", 100, S)
    ]


@pytest.mark.parametrize(
    "data", [{"k": [1], "HALF": [2.0]}, [{"k": 1, "half": 2.0}], pa.table({"at": [0]})]
)
def test_rows_can_not_give_them(data: Any) -> None:
    engine = Engine()
    declared(engine, plain=False)
    with pytest.raises(UsageError, match=r"DS443: column '(half|at)' of stream s is computed"):
        engine.ingest("s", data)


def test_what_is_wrong_with_a_row_is_told() -> None:
    engine = Engine()
    declared(engine, plain=False)
    rows = [[1, 3, "1970-01-01"], [1, 1, None], ["x", 1, ""], [1, 1, "1970-01-01"]]
    report = engine.ingest("s", rows)
    assert (report.accepted, report.refused) == (1, 3)
    assert report.reasons == (
        "1 row refused (wrong value): row 2: column k: expected INT, got str 'x'",
        "1 row refused (NULL in a NOT NULL column): row 0: column r: NULL",
        "1 row refused (NULL timestamp): row 1: column at is NULL",
    )


def test_what_they_are_is_seen(tmp_path: Any) -> None:
    for _ in range(2):
        engine = Engine(str(tmp_path))
        engine.execute(
            "CREATE STREAM IF NOT EXISTS s (a INT, b INT AS (a + 1)) "
            "TIMESTAMP BY (a) AS t UNIT s RETAIN 1 h"
        )
        (found,) = engine.execute("DESCRIBE s")
        notes = {row["column"]: row["note"] for row in found.data.to_pylist()}
        assert notes == {"a": None, "b": "computed", "t": "event time in s, computed"}
        (done,) = engine.execute("CREATE STREAM IF NOT EXISTS s (a INT, b INT AS (a + 2))")
        assert done.warnings[0].endswith(
            "no column t, TIMESTAMP BY, UNIT, RETAIN, what is computed"
        )
        engine.ingest("s", [[1]])
        engine.close()


def test_queries_do_not_feed_them_and_late_rows_do_not_go_there() -> None:
    engine = Engine()
    declared(engine, plain=False)
    engine.execute("CREATE STREAM x (k INT, t TIMESTAMP) TIMESTAMP BY t")
    with pytest.raises(DsmsError, match=r"DS330.*computed: half, r, at"):
        engine.execute("CREATE QUERY q AS INSERT INTO s (k) SELECT k FROM x")
    columns = "(k INT, v INT, half FLOAT, s STRING, r INT, at TIMESTAMP)"
    with pytest.raises(DsmsError, match="DS225"):
        engine.execute(f"CREATE STREAM y {columns} TIMESTAMP BY at LATE INTO s")
