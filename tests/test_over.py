"""OVER over long inputs, what it keeps and lets go of, and the forms that ask for first rows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dsms.api import Chunk
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.render import to_sql
from tests.plan_forms import comparable
from tests.stories.declared import Declared

S = 1_000_000
DDL = "CREATE STREAM s (k INT, m STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"


def engine(text: str) -> tuple[Engine, Any]:
    made = Engine()
    made.execute(DDL)
    made.execute(f"CREATE QUERY q AS {text}")
    return made, made.subscribe("q", limit_bytes=1 << 40)


def drifting(n: int) -> dict[str, np.ndarray]:
    """Rows whose keys are others after a while, a few at each instant."""
    rng = np.random.default_rng(7)
    return {
        "k": np.arange(n) // 8 + rng.integers(0, 2000, n),
        "v": rng.integers(-100, 100, n),
        "t": np.cumsum(rng.integers(0, 2, n) * rng.integers(1, 40_000, n)) // 1000 * 1000,
    }


def frame_of(data: dict[str, np.ndarray], window: str, back: int | None) -> list[list[int]]:
    """Of each row the places of the rows in its frame, by definition."""
    of, found = defaultdict(list), []
    t, n = data["t"].tolist(), len(data["t"])
    last = np.searchsorted(data["t"], data["t"], side="right") - 1
    for i, k in enumerate(data["k"].tolist()):
        of[k].append(i)
        there = of[k]
        if window == "[RANGE 5 s]":
            there = [j for j in there if t[j] > t[i] - 5 * S]
        elif window == "[ROWS 1000]":
            there = [j for j in there if j > last[i] - 1000]
        elif window == AGED:
            there = [j for j in there if t[j] > t[i] - 5 * S]
            later = int(np.count_nonzero(data["k"][i + 1 : last[i] + 1] == k))
            there = there[max(0, len(there) + later - 3) :]
        of[k] = there
        found.append(list(there) if back is None else there[-1 - back :])
    assert len(found) == n
    return found


AGED = "[PARTITION BY k ROWS 3 RANGE 5 s]"


@pytest.mark.parametrize("window", ["", "[RANGE 5 s]", "[ROWS 1000]", AGED])
@pytest.mark.parametrize("back", [None, 2])
def test_keys_that_come_and_go(window: str, back: int | None) -> None:
    """Rows are let go of, slots and codes taken anew, whatever the cuts; each row says what it
    should."""
    n = 20_000
    data = drifting(n)
    rows = "" if back is None else f" ROWS {back} PRECEDING"
    over = f"OVER (PARTITION BY k{rows})"
    text = (
        f"SELECT Istream(SUM(v) {over} AS a, MAX(m) {over} AS b, LAG(m) OVER (PARTITION BY k) AS c)"
        f" FROM s {window}"
    )
    made, reader = engine(text)
    m = [f"m{v}" for v in data["v"]]
    batch = pa.record_batch(
        [
            pa.array(data["k"]),
            pa.array(m),
            pa.array(data["v"]),
            pa.array(data["t"]).cast(pa.timestamp("us")),
        ],
        ["k", "m", "v", "t"],
    )
    chunks, start = list[Any](), 0
    for size in np.random.default_rng(1).integers(1, 3000, 100).tolist():
        if start < n:
            made.ingest("s", batch.slice(start, size))
        chunks += reader.take_chunks()
        start += size
    made.end("s")
    chunks += reader.take_chunks()
    got = [row for c in chunks if isinstance(c, Chunk) for row in c.data.to_pylist()]
    frames, whole = frame_of(data, window, back), frame_of(data, window, None)
    v = data["v"].tolist()
    shown = range(n) if "ROWS" not in window else [i for i in range(n) if frames[i][-1:] == [i]]
    assert len(got) == len(list(shown))
    if window == AGED:
        assert operator(made).frames.numbering.intern.size < 2200 < len(set(data["k"].tolist()))
    for row, i in zip(got, shown, strict=True):
        assert row["a"] == sum(v[j] for j in frames[i])
        assert row["b"] == max(m[j] for j in frames[i])
        assert row["c"] == (m[whole[i][-2]] if len(whole[i]) > 1 else None)


def operator(made: Engine) -> Any:
    stages = made.runtime.queries["q"].pipeline.stages  # type: ignore[attr-defined]
    return next(s.operator for s in stages if hasattr(s.operator, "frames"))


def test_rows_go_with_the_window_and_keys_with_their_last_row() -> None:
    made, _ = engine("SELECT SUM(v) OVER (PARTITION BY k) AS x FROM s [RANGE 2 s]")
    n = 20_000
    made.ingest("s", {"k": list(range(n)), "m": ["a"] * n, "v": [1] * n, "t": [S] * n})
    made.heartbeat("s", 2 * S)
    held = operator(made)
    full = held.nbytes()
    assert held.live() == n
    made.heartbeat("s", 9 * S)
    (rows,) = held.frames.rows
    assert held.live() == 0 and rows.groups.intern.size < 1100
    assert held.nbytes() < full


def test_frames_of_so_many_rows_keep_no_more() -> None:
    made, _ = engine("SELECT LAG(v, 3) OVER (PARTITION BY k) AS x, SUM(v) OVER () AS y FROM s")
    for at in range(50):
        made.ingest("s", {"k": [1, 2], "m": ["a"] * 2, "v": [1, 2], "t": [at * S] * 2})
    made.heartbeat("s", 60 * S)
    assert operator(made).live() == 8


def test_state_has_a_limit() -> None:
    made, reader = engine(
        "SELECT SUM(v) OVER (PARTITION BY k) AS x FROM s [RANGE 9 s] WITH (max_state = 100000)"
    )
    n = 20_000
    made.ingest("s", {"k": list(range(n)), "m": ["a"] * n, "v": [1] * n, "t": list(range(n))})
    made.heartbeat("s", S)
    assert reader.take()[-1].code == "DS630"


def test_a_sum_that_does_not_fit_stops_the_query_there() -> None:
    made, reader = engine("SELECT SUM(v) OVER (PARTITION BY k) AS x FROM s")
    big = 2**62
    made.ingest("s", {"k": [1, 1], "m": ["a"] * 2, "v": [big, 1], "t": [S, 2 * S]})
    made.ingest("s", {"k": [2, 1], "m": ["a"] * 2, "v": [big, big], "t": [3 * S, 4 * S]})
    made.heartbeat("s", 9 * S)
    pushes = reader.take()
    told = [v for p in pushes if p.kind == "insert" for v in p.data.column(0).to_pylist()]
    assert told == [big, big + 1, big]
    assert pushes[-1].kind == "end" and pushes[-1].code == "DS706"


def test_asked_once_it_says_since_when_it_is_complete() -> None:
    made = Engine()
    made.execute(DDL.replace("RETAIN 1 h", "RETAIN 3 s SUBWINDOW 1 s"))
    for at in range(20):
        made.ingest("s", {"k": [1], "m": ["a"], "v": [1], "t": [at * S]})
    made.heartbeat("s", 20 * S)
    (short,) = made.execute("SELECT COUNT(*) OVER () AS n FROM s [RANGE 1 s]")
    assert short.since is None  # type: ignore[union-attr]
    asked = "SELECT COUNT(*) OVER () AS n FROM s [RANGE 3 s]"
    (long,) = made.execute(asked)
    assert long.since is not None  # type: ignore[union-attr]
    with pytest.raises(DsmsError, match="keeps"):
        made.execute(f"{asked} WITH (complete = required)")


def test_a_macro_may_stand_before_over() -> None:
    made = Engine()
    made.execute(DDL)
    made.execute("CREATE AGGREGATE span(x INT) AS MAX(x) - MIN(x)")
    made.execute("CREATE QUERY q AS SELECT span(v) OVER (PARTITION BY k) AS x FROM s")
    reader = made.subscribe("q")
    made.ingest("s", {"k": [1, 1, 2], "m": ["a"] * 3, "v": [5, 9, 1], "t": [0, S, 2 * S]})
    made.heartbeat("s", 9 * S)
    assert [v for p in reader.take() for v in p.data.column(0).to_pylist()] == [0, 4, 0]


def test_explain_says_what_is_looked_at_and_what_grows() -> None:
    made, _ = engine("SELECT k, LAG(v) OVER (PARTITION BY k) AS x, SUM(v) OVER () AS y FROM s")
    (plan,) = made.execute("EXPLAIN QUERY q")
    text = "\n".join(plan.data.column(0).to_pylist())  # type: ignore[union-attr]
    assert "Over lag(s.v, 1) PARTITION BY s.k ROWS 1 PRECEDING; sum(s.v)" in text
    assert "grows with the number of keys of OVER" in text


# ---------------------------------------------------------------- first rows


def bound(text: str) -> Any:
    declared = Declared()
    declared.run(f"{DDL};")
    statement = parse_one(text)
    return comparable(bind_query(statement, declared.catalog))  # type: ignore[arg-type]


FIRST = "CREATE QUERY q AS SELECT k, m FROM s [RANGE 9 s]"
BY = "ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC)"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (f"{FIRST} QUALIFY {BY} <= 3", f"{FIRST} ORDER BY v DESC LIMIT 3 PER k"),
        (f"{FIRST} QUALIFY {BY} < 3", f"{FIRST} ORDER BY v DESC LIMIT 2 PER k"),
        (f"{FIRST} QUALIFY {BY} = 1", f"{FIRST} ORDER BY v DESC LIMIT 1 PER k"),
        (
            f"{FIRST} QUALIFY 3 >= {BY} EVERY 2 s",
            f"{FIRST} ORDER BY v DESC LIMIT 3 PER k EVERY 2 s",
        ),
        (
            f"{FIRST} QUALIFY ROW_NUMBER() OVER (ORDER BY t DESC) <= 2",
            f"{FIRST} ORDER BY t DESC LIMIT 2 PER ()",
        ),
        (
            "CREATE QUERY q AS SELECT k, m FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, m "
            "ORDER BY t DESC) AS rn FROM s [RANGE 9 s] WHERE v > 0) x WHERE m = 'a' AND rn <= 1",
            "CREATE QUERY q AS SELECT k, m FROM (SELECT * FROM s [RANGE 9 s] WHERE v > 0 ORDER BY "
            "t DESC LIMIT 1 PER k, m) x WHERE m = 'a'",
        ),
        (
            "CREATE QUERY q AS SELECT DISTINCT ON (k) k, m FROM s [RANGE 9 s] ORDER BY k, v DESC",
            f"{FIRST} ORDER BY k, v DESC LIMIT 1 PER k",
        ),
        (  # OVER sees the columns of FROM, whatever is called so in the select list
            f"CREATE QUERY q AS SELECT m, -v AS v, v AS k FROM s [RANGE 9 s] QUALIFY {BY} <= 1",
            "CREATE QUERY q AS SELECT m, -v AS v, v AS k FROM s [RANGE 9 s] ORDER BY s.v DESC "
            "LIMIT 1 PER s.k",
        ),
        (
            "CREATE QUERY q AS SELECT m FROM (SELECT m, -v AS v, ROW_NUMBER() OVER (PARTITION BY k "
            "ORDER BY v) AS rn FROM s [RANGE 9 s]) WHERE rn <= 1",
            "CREATE QUERY q AS SELECT m FROM (SELECT m, -v AS v FROM s [RANGE 9 s] ORDER BY s.v "
            "LIMIT 1 PER k)",
        ),
        (
            f"{FIRST} QUALIFY ROW_NUMBER() OVER (ORDER BY doubled) <= 2".replace(
                "m FROM", "v + v AS doubled FROM"
            ),
            "CREATE QUERY q AS SELECT k, v + v AS doubled FROM s [RANGE 9 s] ORDER BY doubled "
            "LIMIT 2 PER ()",
        ),
    ],
)
def test_forms_of_other_systems_are_the_first_rows(text: str, meant: str) -> None:
    assert bound(text) == bound(meant)


def test_a_number_in_the_order_of_the_stream_is_settled_when_the_row_comes() -> None:
    form = f"{FIRST} QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) <= 3"
    assert bound(form) == bound(form.replace(" ORDER BY t", ""))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, SUM(v) OVER (PARTITION BY k ROWS 2 PRECEDING) AS x, m FROM s [RANGE 5 s]",
        "SELECT LAG(v, 2, 0) OVER () AS x, ROW_NUMBER() OVER (PARTITION BY m) AS n FROM s [ROWS 5] "
        "WHERE v > 0",
        "SELECT k FROM s [PARTITION BY k ROWS 3] QUALIFY v > AVG(v) OVER (PARTITION BY k RANGE 2 s "
        "PRECEDING)",
        "SELECT q.x, COUNT(*) AS n FROM (SELECT COUNT(*) FILTER (WHERE v > 1) OVER () AS x FROM s "
        "[NOW]) q GROUP BY q.x",
        "SELECT Istream(k, FIRST(m) OVER (PARTITION BY k) AS x) FROM s",
        "SELECT x, LAG(x) OVER () AS y FROM (SELECT LAG(v) OVER () AS x FROM s [RANGE 5 s]) q",
    ],
)
def test_plans_are_written_as_they_were_said(text: str) -> None:
    declared = Declared()
    declared.run(f"{DDL};")
    plan = bind_query(parse_one(text), declared.catalog)  # type: ignore[arg-type]
    again = bind_query(parse_one(to_sql(plan)), declared.catalog)  # type: ignore[arg-type]
    assert comparable(again) == comparable(plan)


def test_now_may_stand_in_what_is_asked_once() -> None:
    made = Engine()
    made.execute(DDL)
    made.ingest("s", {"k": [1, 1, 2], "m": ["a"] * 3, "v": [5, 9, 1], "t": [0, S, 3 * S]})
    made.heartbeat("s", 4 * S)
    late = "COUNT(*) FILTER (WHERE t > NOW() - INTERVAL 2 s) OVER () AS n"
    (rows,) = made.execute(f"SELECT {late} FROM s [RANGE 9 s] ORDER BY n")
    assert rows.data.column(0).to_pylist() == [0, 0, 1]  # type: ignore[union-attr]


def test_queries_share_what_they_look_at() -> None:
    made, _ = engine("SELECT k, SUM(v) OVER (PARTITION BY k) AS x FROM s [RANGE 9 s]")
    made.execute(
        "CREATE QUERY again AS SELECT k, x FROM (SELECT k, SUM(v) OVER (PARTITION BY k) AS "
        "x FROM s [RANGE 9 s]) q WHERE x > 1"
    )
    lines = made.execute("EXPLAIN QUERY again")[0].data.column(0).to_pylist()  # type: ignore[union-attr]
    assert any("shared" in line for line in lines), lines


def test_what_a_query_answers_now_is_no_stream_but_what_it_has_told_is() -> None:
    made, _ = engine("SELECT k, v FROM s [RANGE 9 s]")
    made.ingest("s", {"k": [1, 1], "m": ["a"] * 2, "v": [5, 9], "t": [0, S]})
    made.heartbeat("s", 2 * S)
    with pytest.raises(DsmsError, match=r"DS373.*what q answers now is a relation") as caught:
        made.execute("SELECT LAG(v) OVER () AS x FROM q")
    assert "FROM q [RANGE 1 min]" in (caught.value.hint or "")
    (told,) = made.execute("SELECT LAG(v) OVER () AS x FROM q [RANGE 1 min]")
    assert told.data.column(0).to_pylist() == [None, 5]  # type: ignore[union-attr]
