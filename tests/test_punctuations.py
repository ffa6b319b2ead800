"""PUNCTUATE: what a stream promises is held to, and queries let go of what it makes needless."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.frames import Frame
from dsms.intake.convert import to_batch
from dsms.intake.promises import MANY, Promises
from dsms.operators.group import GroupByOp
from dsms.operators.group_closed import Closed
from dsms.operators.join import JoinOp
from dsms.plan.rejoin import Unfit
from dsms.running.exchanging import inputs_at
from dsms.sql.types import ALWAYS, FOREVER
from tests.folders.play import results

S = 1_000_000
STREAMS = """
CREATE STREAM s (k INT, v INT, c STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM u (k INT, v INT, c STRING, t TIMESTAMP) TIMESTAMP BY t;
"""
ROWS = 4000
BY_BOTH = "CREATE QUERY q AS SELECT s.k FROM s, u WHERE s.k = u.k AND s.v = u.v"


def declared(sql: str, data: str | None = None) -> Engine:
    engine = Engine(data)
    engine.execute(STREAMS + sql)
    return engine


def rows(n: int = ROWS, first: int = 0, keys: int = 4) -> dict[str, list[Any]]:
    at = range(first, first + n)
    return {
        "k": [i % keys for i in at],
        "v": [i * 7919 % 2003 for i in at],
        "c": [str(i % 997) for i in at],
        "t": [i * 1000 for i in at],
    }


def filled(sql: str, *streams: str, data: str | None = None) -> Engine:
    """Streams with rows, all of which queries have come past."""
    engine = declared(sql, data)
    for first in range(0, ROWS, 100):
        for stream in streams:
            engine.ingest(stream, rows(100, first))
    for stream in streams:
        engine.heartbeat(stream, ROWS * 1000)
    return engine


def state(engine: Engine, query: str = "q") -> int:
    found = engine.execute(f"SHOW QUERIES LIKE '{query}'")[0].data
    return found.column("state_bytes")[0].as_py()


def answer(engine: Engine, query: str = "q") -> list[Any]:
    return sorted(engine.execute(f"SELECT * FROM {query}")[0].data.to_pylist(), key=str)


AGGREGATES = (
    "COUNT(DISTINCT v)",
    "SUM(DISTINCT v)",
    "MEDIAN(v)",
    "QUANTILE(c, 0.5)",
    "TOPK(v, 3)",
    "MODE(v)",
    "ENTROPY(v)",
    "STRING_AGG(c, ',')",
    "ARRAY_AGG(c, 5)",
)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_groups_that_can_not_change_keep_their_answers_alone(aggregate: str):
    engine = filled(f"CREATE QUERY q AS SELECT k, {aggregate} AS a FROM s GROUP BY k", "s")
    before, told, held = state(engine), answer(engine), list(engine.held())
    engine.execute("PUNCTUATE s WHERE k IN (0, 1, 2)")
    assert state(engine) < 0.8 * before
    assert sum(m.bytes for m in engine.held()) < sum(m.bytes for m in held)
    assert answer(engine) == told
    twin = filled(f"CREATE QUERY q AS SELECT k, {aggregate} AS a FROM s GROUP BY k", "s")
    for one in (engine, twin):
        more = rows(400, ROWS + 1, 1) | {"k": [3, 7] * 200}
        one.ingest("s", more)
        one.heartbeat("s", 2 * ROWS * 1000)
    assert results(engine, ["q"]) == results(twin, ["q"])
    engine.execute("PUNCTUATE s WHERE k IN (3, 7)")
    assert answer(engine) == answer(twin)


def test_rows_go_that_no_partner_can_meet():
    sql = "CREATE QUERY q AS SELECT s.v, s.k AS a, u.k AS b FROM s, u WHERE s.v = u.v"
    engine, twin = filled(sql, "s", "u"), filled(sql, "s", "u")
    before, gone = state(engine), ", ".join(map(str, range(2003 * 3 // 4)))
    left = sum(v >= 2003 * 3 // 4 for v in rows()["v"])
    engine.execute(f"PUNCTUATE s WHERE v IN ({gone})")
    (join,) = joins(engine)
    assert (join.left.rows.store.live, join.right.rows.store.live) == (ROWS, left)
    assert state(engine) < before
    engine.execute(f"PUNCTUATE u WHERE v IN ({gone})")
    assert (join.left.rows.store.live, join.right.rows.store.live) == (left, left)
    assert state(engine) < 0.6 * before
    for one in (engine, twin):
        for stream in ("u", "s"):
            one.ingest(stream, rows(400, ROWS + 1) | {"v": [2000] * 400})
            one.heartbeat(stream, 2 * ROWS * 1000)
    assert results(engine, ["q"]) == results(twin, ["q"])


def joins(engine: Engine) -> list[JoinOp]:
    units = [*engine.runtime.queries.values(), *engine.runtime.dispatch.parts.values()]
    stages = [stage for unit in units for stage in unit.pipeline.stages]
    return [stage.operator for stage in stages if isinstance(stage.operator, JoinOp)]


def test_a_join_by_more_columns_than_a_promise_has_lets_go_too():
    engine = filled(BY_BOTH, "s", "u")
    engine.execute("PUNCTUATE s WHERE v = 7 AND c = '1'")  # of c nothing is known over there
    (join,) = joins(engine)
    assert join.right.rows.store.live == ROWS
    engine.execute("PUNCTUATE s WHERE v = 7")
    assert join.right.rows.store.live == ROWS - rows()["v"].count(7)


def test_different_rows_need_not_be_remembered():
    engine = filled("CREATE QUERY q AS SELECT Istream(DISTINCT k, v) FROM s", "s")
    before = state(engine)
    engine.execute("PUNCTUATE s WHERE k IN (0, 1, 2)")
    assert state(engine) < 0.9 * before
    reader = engine.subscribe("q")
    sent = rows(8, ROWS + 1) | {"k": [3] * 8, "v": [*rows()["v"][3:7], *range(3000, 3004)]}
    known = set(zip(rows()["k"], rows()["v"], strict=True))
    engine.ingest("s", sent)
    engine.heartbeat("s", 2 * ROWS * 1000)
    told = sum(p.data.num_rows for p in reader.take() if p.kind == "insert")
    assert told == len(set(zip(sent["k"], sent["v"], strict=True)) - known) > 3


def test_what_parts_of_several_queries_keep_goes_too():
    sql = (
        "SELECT s.k, COUNT(DISTINCT u.v) AS n FROM s, u WHERE s.k = u.k AND s.v = u.v GROUP BY s.k"
    )
    both = f"CREATE QUERY q AS {sql}; CREATE QUERY r AS {sql} HAVING COUNT(*) > 3"
    engine = filled(both, "s", "u")
    assert engine.runtime.dispatch.parts
    before, told = state(engine), answer(engine)
    engine.execute("PUNCTUATE u WHERE k IN (0, 1, 2); PUNCTUATE s WHERE k IN (0, 1, 2)")
    assert state(engine) < 0.6 * before
    assert answer(engine) == told


def test_a_query_that_gets_no_more_rows_lets_go_of_all():
    engine = filled("CREATE QUERY q AS SELECT k, MEDIAN(v) AS m FROM s WHERE k = 2 GROUP BY k", "s")
    before, told = state(engine), answer(engine)
    engine.execute("PUNCTUATE s WHERE k = 2")
    assert state(engine) < 0.6 * before
    assert answer(engine) == told


@pytest.mark.parametrize(
    "hours",
    [
        "DATE_BIN(INTERVAL '60' MINUTE, t) AS h FROM s",
        "DATE_TRUNC('hour', t) AS h FROM s",
        "h FROM x",
        "t AS h FROM s",
    ],
)
def test_groups_by_time_go_up_to_an_instant(hours: str):
    below = "(SELECT k, v, DATE_TRUNC('hour', t) AS h FROM s WHERE v >= 0) AS x"
    sql = f"CREATE QUERY q AS SELECT COUNT(DISTINCT v) AS n, k, {hours} GROUP BY k, h"
    engine = declared(sql.replace("FROM x", f"FROM {below}"))
    for hour in range(4):
        for k in (1, 2):
            many = {"k": [k] * 500, "v": list(range(500)), "t": [hour * 3600 * S] * 500}
            engine.ingest("s", many)
    engine.heartbeat("s", 3 * 3600 * S)
    (group,) = (
        stage.operator
        for stage in engine.runtime.queries["q"].pipeline.stages
        if isinstance(stage.operator, GroupByOp)
    )

    def kept() -> int:
        return sum(len(a.values.words) for a in group.aggregates)

    told = answer(engine)
    engine.execute("PUNCTUATE s WHERE k = 1 UPTO '1970-01-01 03:30:00'")
    assert kept() == (4000 - 2000 if "t AS h" in hours else 4000 - 1500)
    engine.execute("PUNCTUATE s WHERE k = 1 UPTO '1970-01-01 03:59:59.999999'")
    assert kept() == 2000
    assert answer(engine) == told


def test_a_promise_waits_for_the_rows_before_it():
    engine = Engine()
    engine.execute(STREAMS.replace("BY t;", "BY t SLACK 1 s;", 1))
    engine.execute("CREATE QUERY q AS SELECT k, COUNT(DISTINCT v) AS n FROM s GROUP BY k")
    engine.ingest("s", rows())
    before = state(engine)
    engine.execute("PUNCTUATE s WHERE k IN (0, 1, 2, 3)")
    assert state(engine) == before
    engine.heartbeat("s", ROWS * 1000)
    assert {row["n"] for row in answer(engine)} == {ROWS // 4}
    assert state(engine) < before


def test_a_query_goes_by_promises_made_before_it():
    engine = Engine()
    engine.execute(STREAMS.replace("BY t;", "BY t RETAIN 1 h;"))
    for first in range(0, ROWS, 100):
        engine.ingest("s", rows(100, first))
    engine.heartbeat("s", ROWS * 1000)
    engine.execute("CREATE QUERY q AS SELECT k, MEDIAN(v) AS m FROM s GROUP BY k")
    told = answer(engine)
    engine.execute("CREATE QUERY r AS SELECT k, MEDIAN(v) AS m FROM s WHERE v >= 0 GROUP BY k")
    before = state(engine, "r")
    engine.execute("DROP QUERY r; PUNCTUATE s WHERE k IN (0, 1, 2)")
    engine.execute("CREATE QUERY r AS SELECT k, MEDIAN(v) AS m FROM s WHERE v >= 0 GROUP BY k")
    engine.heartbeat("s", ROWS * 1000 + 1)
    assert answer(engine, "r") == told
    assert before - state(engine, "r") > 40 * ROWS // 4 * 3


def test_all_comes_back(tmp_path: Path):
    sql = "CREATE QUERY q AS SELECT k, MEDIAN(v) AS m FROM s GROUP BY k"
    engine = filled(sql, "s", data=str(tmp_path))
    before, told = state(engine), answer(engine)
    engine.execute("PUNCTUATE s WHERE k IN (0, 1) AND c IN ('1', '2'); PUNCTUATE s WHERE k = 2")
    engine.heartbeat("s", None, where={"k": [0, 1]})
    engine.close()
    again = Engine(str(tmp_path))
    assert not again.recovered.notes
    assert state(again) < 0.8 * before
    assert answer(again) == told
    late = rows(4, ROWS + 1)
    assert again.ingest("s", late).late == 3
    assert again.execute("SHOW STREAMS LIKE 's'")[0].data.column("promised")[0].as_py() == 7
    again.close()


# ---------------------------------------------------------------- rows that contradict


def test_what_is_told_of_rows_that_contradict():
    engine = declared("PUNCTUATE s WHERE k = 1 AND c IS NULL; PUNCTUATE s WHERE v = 9 UPTO 5 s")
    sent = {
        "k": [1, 1, None, 2, 2],
        "v": [0, 0, 9, 9, 9],
        "c": [None, "a", None, None, None],
        "t": [S, S, 5 * S, 5 * S + 1, 2 * S],
    }
    report = engine.ingest("s", sent)
    assert (report.accepted, report.late, report.refused) == (2, 3, 0)
    assert report.reasons == (
        "3 rows are late (DS365): a punctuation of the stream said that none such comes",
    )
    assert [p.tolist() for reason, p in report.positions if reason == "late"] == [[0, 2, 4]]
    assert engine.runtime.inputs["s"].newest == 5 * S + 1


def test_a_row_that_contradicts_moves_no_clock():
    engine = declared("PUNCTUATE s WHERE k = 1")
    engine.ingest("s", {"k": [0, 1], "t": [S, 90 * S]})
    assert engine.runtime.inputs["s"].newest == S
    assert engine.ingest("s", {"k": [0], "t": [2 * S]}).accepted == 1


def test_frames_that_wait_together_are_judged_one_by_one():
    engine = declared("PUNCTUATE s WHERE k = 1")
    schema = engine.runtime.inputs["s"].definition.schema
    frames = [
        Frame(to_batch({"k": [k], "t": [n * S]}, schema)) for n, k in enumerate((0, 1, 2, 1, 0))
    ]
    told = engine.ingest_group("s", frames)
    assert [(r.accepted, r.late) for r in told] == [(1, 0), (0, 1), (1, 0), (0, 1), (1, 0)]


def test_rows_stamped_on_arrival():
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT)")
    engine.advance(10 * S)
    engine.execute("PUNCTUATE s WHERE k = 1 UPTO 20 s; PUNCTUATE s WHERE k = 2")
    assert engine.ingest("s", {"k": [0, 1, 2]}).late == 2
    engine.advance(20 * S)
    assert engine.ingest("s", {"k": [1]}).late == 1
    engine.advance(21 * S)
    assert engine.ingest("s", {"k": [1, 2]}).late == 1


def test_late_rows_of_others_are_held_to_it():
    engine = Engine()
    engine.execute(
        "CREATE STREAM lost (k INT, t TIMESTAMP) TIMESTAMP BY t;"
        "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO lost;"
        "PUNCTUATE lost WHERE k = 1"
    )
    engine.ingest("s", {"k": [0, 1, 2], "t": [9 * S, S, S]})
    counts = engine.runtime.inputs["lost"].counts
    assert counts.accepted == 1
    assert dict(counts.refused) == {"late rows that contradict a punctuation": 1}


def test_a_stream_that_queries_feed_from_then_on():
    engine = declared("PUNCTUATE u WHERE k = 1")
    engine.execute("CREATE QUERY f AS INSERT INTO u SELECT Istream(k, v, c) FROM s")
    engine.ingest("s", rows(40))
    engine.heartbeat("s", S)
    counts = engine.runtime.inputs["u"].counts
    assert (counts.accepted, counts.late, counts.contradicting) == (30, 10, 10)
    with pytest.raises(DsmsError, match="DS513"):
        engine.execute("PUNCTUATE u WHERE k = 2")


def test_set_clock_takes_promises_back():
    engine = filled("CREATE QUERY q AS SELECT k, MEDIAN(v) AS m FROM s GROUP BY k", "s")
    engine.execute("PUNCTUATE s WHERE k = 1; PUNCTUATE u WHERE k = 1")
    engine.heartbeat("s", 3600 * S)
    engine.execute("ALTER STREAM s SET CLOCK TO '1970-01-01 00:10:00'")
    sent = {"k": [1, 1], "v": [5, 5], "t": [600 * S, 601 * S]}
    assert (engine.ingest("s", sent).accepted, engine.ingest("u", sent).late) == (2, 2)
    engine.heartbeat("s", 700 * S)
    assert {row["k"]: row["m"] for row in answer(engine)}[1] == 5


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("PUNCTUATE nothing WHERE k = 1", "DS401"),
        ("PUNCTUATE s WHERE z = 1", "DS201"),
        ("PUNCTUATE s WHERE k = 'a'", "DS218"),
        ("PUNCTUATE s WHERE k > 1", "DS335"),
        ("END STREAM s; PUNCTUATE s WHERE k = 1", "DS507"),
        ("PUNCTUATE s WHERE k = 1 UPTO", "DS101"),
    ],
)
def test_what_can_not_be(text: str, code: str):
    with pytest.raises(DsmsError) as found:
        declared(text)
    assert found.value.code == code


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ({}, "DS335"),
        ({"k": []}, "DS335"),
        ({"k": "five"}, "DS335"),
        ({"z": 1}, "DS501"),
        ({"k": list(range(300)), "v": list(range(300))}, "DS336"),
    ],
)
def test_heartbeats_that_can_not_be(where: dict[str, Any], code: str):
    with pytest.raises(DsmsError) as found:
        declared("").heartbeat("s", S, where=where)
    assert found.value.code == code


def test_a_heartbeat_by_key():
    engine = declared("")
    engine.heartbeat("s", 5 * S, where={"K": 1, "c": ["a", None]})
    assert engine.runtime.inputs["s"].completed == ALWAYS
    report = engine.ingest("s", {"k": [1, 1, 1], "c": ["a", None, "b"], "t": [5 * S] * 3})
    assert (report.accepted, report.late) == (1, 2)
    assert engine.ingest("s", {"k": [1], "c": ["a"], "t": [5 * S + 1]}).accepted == 1


# ---------------------------------------------------------------- inside


def test_a_bug_stops_one_query_alone(monkeypatch: pytest.MonkeyPatch):
    engine = filled("CREATE QUERY q AS SELECT k, MEDIAN(v) AS m FROM s GROUP BY k", "s")
    engine.execute("CREATE QUERY r AS SELECT DISTINCT k FROM s")

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("what never is")

    monkeypatch.setattr(GroupByOp, "let_go", broken)
    engine.execute("PUNCTUATE s WHERE k = 1")
    assert engine.ingest("s", {"k": [2], "t": [ROWS * 2000]}).accepted == 1
    found = engine.execute("SHOW QUERIES")[0].data.to_pylist()
    assert {row["query"]: row["status"][:5] for row in found} == {"q": "stopp", "r": "runni"}


def test_joins_that_let_go_of_rows_stay_as_they_are():
    engine = filled(BY_BOTH, "s", "u")
    query = engine.runtime.queries["q"]
    at = next(s.path for s in query.pipeline.stages if isinstance(s.operator, JoinOp))
    inputs_at(query, at)
    engine.execute("PUNCTUATE s WHERE k = 1")
    with pytest.raises(Unfit, match="PUNCTUATE"):
        inputs_at(query, at)


def ints(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


def test_promises_are_numbered_and_read_from_where_one_was():
    promises = Promises()
    promises.add((0,), [ints(1, 2, 2)], FOREVER, 10, ALWAYS)
    promises.add((0,), [ints(2, 3)], FOREVER, 20, ALWAYS)  # of 2 it is known
    promises.add((0, 1), [ints(4), ints(5)], 50, 30, ALWAYS)
    promises.add((0,), [ints(6)], 60, 30, 70)  # that has passed
    assert (promises.made, promises.count) == (4, 4)

    def read(seen: int, clock: int) -> list[Any]:
        return [
            (p.columns, [v.to_pylist() for v in p.values], n)
            for p, n in promises.since(seen, clock)
        ]

    assert read(0, 9) == []
    assert read(0, 10) == [((0,), [[1, 2]], 2)]
    assert read(2, 30) == [((0,), [[3]], 3), ((0, 1), [[4], [5]], 4)]
    assert read(4, 30) == []
    assert promises.covers({0: ints(1, 3, 9)}, 3, 15).tolist() == [True, False, False]
    broken = promises.broken([ints(4, 4, 1), ints(5, 5, 0)], np.array([50, 51, 99]))
    assert broken is not None and broken.tolist() == [True, False, True]


def test_promises_up_to_instants_are_forgotten_when_these_have_passed():
    promises = Promises()
    for n in range(30):
        many = ints(*range(n * MANY, (n + 1) * MANY))
        promises.add((0,), [many], n + 1, 0, n)
    assert promises.count <= 3 * MANY
    assert promises.broken([ints(29 * MANY, 0)], 30).tolist() == [True, False]
    for n in range(30, 60):  # the same keys again and again
        promises.add((0,), [ints(*range(29 * MANY, 30 * MANY))], n + 1, 0, 0)
    assert promises.sets[(0,)].order.n <= 3 * MANY


def test_groups_are_swept_together():
    closed, count, swept = Closed(), np.full(1000, 10), 0
    for code in range(1000):
        shut = closed.close(np.array([code]), count)
        swept += 0 if shut is None else 1
        assert closed.close(np.array([code]), count) is None
    assert closed.shut.all() and swept < 80
    assert closed.swept + closed.gone == 10_000
