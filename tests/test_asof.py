"""ASOF JOIN over long inputs, and what it keeps: the newest row of each key, none that WITHIN no
longer finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dsms.api import Chunk
from dsms.engine import Engine
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.render import to_sql
from tests.benchmarks.asof import Data, found
from tests.effort import thinned
from tests.plan_forms import nameless
from tests.stories.declared import Declared

S = 1_000_000
DDL = (
    "CREATE STREAM l (k {key}, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 s;"
    "CREATE STREAM r (k {key}, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 s;"
)
JOIN = "FROM l ASOF JOIN r ON l.k = r.k"


def engine(text: str, key: str = "INT") -> tuple[Engine, Any]:
    made = Engine()
    made.execute(DDL.format(key=key))
    made.execute(f"CREATE QUERY q AS {text}")
    return made, made.subscribe("q")


def rows(part: tuple[np.ndarray, ...], key: str, start: int, stop: int) -> pa.RecordBatch:
    ts, k, v = (a[start:stop] for a in part)
    keys = pa.array(k).cast(pa.string()) if key == "STRING" else pa.array(k)
    return pa.record_batch(
        [keys, pa.array(v), pa.array(ts).cast(pa.timestamp("us"))], ["k", "v", "t"]
    )


def drifting(n: int) -> Data:
    """Two streams of n rows whose keys are others after a while."""
    rng = np.random.default_rng(7)

    def stream() -> tuple[np.ndarray, ...]:
        ts = np.cumsum(rng.integers(1, 40_000, n))
        return ts, np.arange(n) // 8 + rng.integers(0, 2000, n), rng.integers(0, 100, n)

    return Data(stream(), stream())  # type: ignore[arg-type]


@thinned()
@pytest.mark.parametrize("key", ["INT", "STRING"])
@pytest.mark.parametrize("within", [None, 5 * S])
@pytest.mark.parametrize("strategy", ["upa", "nt"])
def test_keys_that_come_and_go(key: str, within: int | None, strategy: str) -> None:
    """Rows are let go of, slots and codes taken anew, whatever the cuts; each row finds what it
    should."""
    data, n = drifting(20_000), 20_000
    clause = "" if within is None else " WITHIN 5 s"
    text = f"SELECT Istream(l.v, r.v AS w) {JOIN}{clause} WITH (strategy = {strategy})"
    made, reader = engine(text, key)
    chunks, cuts = list[Any](), np.random.default_rng(1).integers(1, 3000, 100)
    start = 0
    for size in cuts.tolist():
        for name, part in (("r", data.quotes), ("l", data.trades)):
            if start < n:
                made.ingest(name, rows(part, key, start, start + size))
        chunks += reader.take_chunks()
        start += size
    for name in ("l", "r"):
        made.end(name)
    chunks += reader.take_chunks()
    quotes = [c.data.column(1).to_numpy() for c in chunks if isinstance(c, Chunk)]
    all_ = np.concatenate(quotes)
    assert start >= n
    assert (len(all_), int(all_.sum())) == found(data, within)


def operator(made: Engine) -> Any:
    stages = made.runtime.queries["q"].pipeline.stages  # type: ignore[attr-defined]
    return next(s.operator for s in stages if hasattr(s.operator, "probe"))


@pytest.mark.parametrize(
    "text", [f"SELECT * {JOIN}", f"SELECT * {JOIN.replace('l ', 'l [ROWS 2] ')}"]
)
def test_the_newest_row_of_each_key_is_kept(text: str) -> None:
    made, _ = engine(text)
    for n in range(5):
        made.ingest("r", {"k": [1, 2, None, 1], "v": [n] * 4, "t": [n * S] * 4})
        made.ingest("l", {"k": [1], "v": [n], "t": [n * S]})
    for name in "lr":
        made.heartbeat(name, 9 * S)
    assert operator(made).probe.live() == 2


def test_within_lets_rows_go() -> None:
    made, _ = engine(f"SELECT * {JOIN} WITHIN 2 s")
    made.ingest("r", {"k": list(range(5000)), "v": [1] * 5000, "t": [S] * 5000})
    for name in "lr":
        made.heartbeat(name, 2 * S)
    probe = operator(made).probe
    full = probe.nbytes
    assert probe.live() == 5000
    for name in "lr":
        made.heartbeat(name, 9 * S)
    assert probe.live() == 0
    assert probe.intern is not None and probe.intern.size < 1100
    assert probe.nbytes < full


def test_state_has_a_limit() -> None:
    made, _ = engine(f"SELECT * {JOIN} WITH (max_state = 100000)")
    n = 20_000
    made.ingest("r", {"k": list(range(n)), "v": [1] * n, "t": list(range(n))})
    for name in "lr":
        made.heartbeat(name, S)
    failure = made.runtime.queries["q"].failure
    assert failure is not None and failure.code == "DS630"


def test_plans_print_and_parse() -> None:
    declared = Declared()
    declared.run(
        DDL.format(key="INT") + "CREATE STREAM u (k INT, v INT, s TIMESTAMP) TIMESTAMP BY s;"
    )
    for text in (
        f"SELECT l.v, r.v AS w {JOIN} WITHIN 500 ms WHERE l.v > 1 AND r.v > 2",
        "SELECT l.k FROM l [ROWS 3] ASOF LEFT JOIN r ON l.k = r.k AND l.v = r.v AND l.t > r.t",
        f"SELECT l.k {JOIN} ASOF JOIN u ON r.v = u.k AND l.t >= u.s JOIN u [NOW] w ON w.k = l.k",
        "SELECT x.k FROM l x ASOF JOIN (SELECT k, t FROM r WHERE v > 0) y ON TRUE AND y.t < x.t",
        "SELECT COUNT(*) AS n FROM l [RANGE 4 s SLIDE 2 s] ASOF JOIN r [RANGE 2 s] ON l.k = r.k",
    ):
        bound = bind_query(parse_one(f"CREATE QUERY q AS {text}"), declared.catalog)  # type: ignore[arg-type]
        again = bind_query(parse_one(f"CREATE QUERY q AS {to_sql(bound)}"), declared.catalog)  # type: ignore[arg-type]
        assert nameless(again) == nameless(bound), to_sql(bound)


def test_queries_share_the_join() -> None:
    made, _ = engine(f"SELECT l.v, r.v AS w {JOIN}")
    made.execute(f"CREATE QUERY again AS SELECT l.v, r.v AS w {JOIN} WHERE r.v > 1")
    lines = made.execute("EXPLAIN QUERY again")[0].data.column(0).to_pylist()
    assert any("shared" in line for line in lines), lines
