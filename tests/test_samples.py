"""SAMPLE p PERCENT and HASH: which rows are drawn, and that the share is what it says."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise, product
from math import nan

import numpy as np
import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql.binder.samples import limit
from dsms.sql.functions import call
from dsms.sql.types import BOOL, BYTES, FLOAT, INT, NULL, STRING, Type, decimal, list_of
from tests.bags import bag, told
from tests.oracle.scalar import evaluate
from tests.scalars import apply, columns

STREAM = "CREATE STREAM s (k INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
ROWS = [(i % 50, i / 4, i * 1000) for i in range(2000)]


def _filled() -> Engine:
    engine = Engine()
    engine.execute(STREAM)
    engine.ingest("s", ROWS)
    engine.heartbeat("s", 2_000_000)
    return engine


def _rows(engine: Engine, query: str) -> list[tuple[object, ...]]:
    (answer,) = engine.execute(query)
    return [tuple(row.values()) for row in answer.data.to_pylist()]


def _hashes(column: pa.Array) -> np.ndarray:
    engine = Engine()
    engine.execute("CREATE STREAM h (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.ingest("h", {"v": column, "t": np.arange(len(column))})
    (answer,) = engine.execute("SELECT hash(v) AS h FROM h")
    return answer.data["h"].to_numpy()


@pytest.mark.parametrize(
    ("types", "values", "hashed"),
    [
        ((INT,), (0,), -2152535657050944081),
        ((INT,), (1,), -7995527694508729151),
        ((FLOAT,), (1.0,), -7995527694508729151),
        ((decimal(6, 2),), (Decimal("1.00"),), -7995527694508729151),
        ((BOOL,), (True,), -7995527694508729151),
        ((FLOAT,), (-0.0,), -2152535657050944081),
        ((NULL,), (None,), 0),
        ((STRING,), (None,), 0),
        ((list_of(INT),), ("[1]",), -4356374706190104004),
        ((list_of(STRING),), ('["a"]',), 8213643226172755053),
    ],
)
def test_hashes_stay_what_they_are(
    types: tuple[Type, ...], values: tuple[object, ...], hashed: int
) -> None:
    """Samples of archives of another version must be drawn alike: numbers of 2026."""
    assert apply("hash", types, [values]) == ([hashed], 0)


def test_hashes_are_the_oracles() -> None:
    kinds = {
        INT: (0, -1, 2**63 - 1, -(2**63), None),
        FLOAT: (2.5, -0.0, nan, 2.0**63, -(2.0**63), 1e300, None),
        STRING: ("", "a", "é😀", None),
        BYTES: (b"", b"\x00\xff", None),
        decimal(38, 2): (Decimal("-0.25"), Decimal(2**63), Decimal(2**62), Decimal("0.10"), None),
        BOOL: (True, False, None),
        list_of(FLOAT): ("[]", '[0.0, null, 2.5, "NaN", "Infinity", 1e+300]', None),
        list_of(decimal(38, 2)): (f"[{2**63}.00, {2**62}.00, -0.25, {10**36 - 1}.99, null]",),
    }
    for a, b in pairwise((*kinds, INT)):
        rows = list(product(kinds[a], kinds[b]))
        for types, values in (((a, b), rows), ((a,), [(x,) for x in kinds[a]])):
            expr = call("hash", columns(*types))
            wanted = [evaluate(expr, row) for row in values]
            assert apply("hash", types, values) == (wanted, 0)


def test_equal_numbers_of_any_type_have_one_hash() -> None:
    for value in (0, 7, -3, 2**62, -(2**63)):
        types = (INT, FLOAT, decimal(38, 0))
        found = {
            apply("hash", [t], [(v,)])[0][0]
            for t, v in zip(types, (value, float(value), Decimal(value)), strict=True)
        }
        assert len(found) == 1


def test_equal_lists_of_any_numbers_have_one_hash() -> None:
    wanted = apply("hash", [list_of(INT)], [("[1, null, -3]",), ("[]",), (None,)])
    assert len(set(wanted[0])) == 3
    for item, texts in (
        (FLOAT, ("[1.0, null, -3.0]", "[]", None)),
        (decimal(5, 2), ("[1.00, null, -3.00]", "[]", None)),
        (decimal(38, 0), ("[1, null, -3]", "[]", None)),
    ):
        assert apply("hash", [list_of(item)], [(t,) for t in texts]) == wanted


def test_the_share_is_drawn_without_bias() -> None:
    """Of 200,000 numbers in a row the drawn ones are as many as by chance, whatever the share."""
    hashes = _hashes(pa.array(np.arange(200_000)))
    for percent in ("0.1", "1", "25", "99"):
        share = float(percent) / 100
        drawn, wanted = int((hashes < limit(Decimal(percent))).sum()), 200_000 * share
        assert abs(drawn - wanted) < 5 * (wanted * (1 - share)) ** 0.5
    assert (np.unpackbits(hashes.view(np.uint8)).reshape(-1, 64).mean(0) - 0.5 < 0.01).all()


def test_by_a_column_draws_whole_keys() -> None:
    engine = _filled()
    drawn = _rows(engine, "SELECT k, COUNT(*) FROM s SAMPLE 30 PERCENT BY k GROUP BY k")
    assert 0 < len(drawn) < 50
    assert {n for _, n in drawn} == {40}
    more = _rows(engine, "SELECT DISTINCT k FROM s SAMPLE 60 PERCENT BY k")
    assert {k for k, _ in drawn} < {k for (k,) in more}
    both = "FROM s a SAMPLE 30 PERCENT BY k JOIN s b SAMPLE 30 PERCENT BY b.k ON a.k = b.k"
    assert _rows(engine, f"SELECT COUNT(*) {both}") == [(len(drawn) * 1600,)]


def test_a_registered_query_draws_what_a_question_does() -> None:
    engine = _filled()
    text = "SELECT SUM(x) AS total, COUNT(*) AS n FROM s [RANGE 1 s] SAMPLE 25 PERCENT"
    engine.execute(f"CREATE QUERY q AS {text}; CREATE QUERY p AS {text} EVERY 500 ms")
    engine.ingest("s", [(k, x, t + 2_000_000) for k, x, t in ROWS])
    engine.heartbeat("s", 4_000_000)
    asked = _rows(engine, text)
    assert asked == _rows(engine, "SELECT * FROM q") == _rows(engine, "SELECT * FROM p")
    assert 150 < asked[0][1] < 350  # type: ignore[operator]


def test_a_hundred_percent_are_all_rows() -> None:
    assert _rows(_filled(), "SELECT COUNT(*) FROM s SAMPLE 100 PERCENT BY k") == [(2000,)]


@pytest.mark.parametrize("share", ["0", "100.01", "1000"])
def test_a_share_that_is_none(share: str) -> None:
    with pytest.raises(QueryError, match=f"DS367.*SAMPLE {share} PERCENT"):
        _filled().execute(f"SELECT * FROM s SAMPLE {share} PERCENT")


def test_rows_that_nothing_tells_apart() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM clicks (page STRING) RETAIN 1 h")
    with pytest.raises(QueryError, match=r"DS367.*equal in all columns"):
        engine.execute("SELECT * FROM clicks SAMPLE 5 PERCENT")
    engine.execute("SELECT * FROM clicks SAMPLE 5 PERCENT BY page")


def test_a_table_that_rows_read_is_no_sample() -> None:
    engine = _filled()
    engine.execute("CREATE TABLE n (k INT PRIMARY KEY) NON RETROACTIVE")
    for text in ("s [NOW] JOIN n SAMPLE 50 PERCENT BY n.k ON s.k = n.k", "n SAMPLE 50 PERCENT"):
        with pytest.raises(QueryError, match=r"(?s)DS367.*sample the stream"):
            engine.execute(f"SELECT * FROM {text}")


def test_what_was_said_is_shown_and_renamed() -> None:
    engine = _filled()
    sample = "a SAMPLE 2.50 PERCENT BY (a.k, x)"
    engine.execute(f"CREATE QUERY q AS SELECT x FROM s [RANGE 1 s] {sample}")
    engine.execute("ALTER STREAM s RENAME COLUMN k TO key; ALTER STREAM s RENAME TO samples")
    (shown,) = engine.execute("SHOW CREATE QUERY q")
    assert "FROM samples [RANGE 1 s] AS a SAMPLE 2.50 PERCENT BY (a.key, x)" in str(
        shown.data.to_pylist()
    )


def test_parameters_and_aliases() -> None:
    engine = _filled()
    (answer,) = engine.execute("SELECT COUNT(*) AS n FROM s AS sample SAMPLE ? PERCENT", [50])
    assert 800 < answer.data["n"][0].as_py() < 1200
    assert _rows(engine, "SELECT COUNT(*) FROM s AS sample") == [(2000,)]


def _estimates(values: list[float], percent: float) -> tuple[float, ...]:
    """COUNT(*), SUM and AVG of a sample and their errors, from the definitions of Horvitz and
    Thompson."""
    w, n = 100 / percent, len(values)
    mean = sum(values) / n
    spread = w * (w - 1)
    squares = sum(v * v for v in values)
    apart = sum((v - mean) ** 2 for v in values)
    return (
        n * w, (n * spread) ** 0.5, sum(values) * w, (squares * spread) ** 0.5,
        mean, (apart * spread) ** 0.5 / (n * w),
    )  # fmt: skip  # pairs


@pytest.mark.parametrize("window", ["[RANGE 1 s]", "[ROWS 500]", "[RANGE UNBOUNDED]"])
def test_sums_of_a_sample_make_up_for_what_is_not_in_it(window: str) -> None:
    engine = Engine()
    engine.execute(STREAM)
    read, option = f"FROM s {window} SAMPLE 20 PERCENT", "WITH (sample = scale)"
    sums = f"SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a {read} {option}"
    engine.execute(f"CREATE QUERY q AS {sums}")
    slide = window.replace("]", " SLIDE 1 s]")
    if "RANGE 1" in window:
        engine.execute(f"CREATE QUERY p AS {sums.replace(window, slide)}")
    engine.ingest("s", ROWS)
    engine.heartbeat("s", 1_999_000)
    kept = [x for (x,) in _rows(engine, f"SELECT x {read}")]
    wanted = pytest.approx(_estimates(kept, 20), rel=1e-9)
    assert _rows(engine, "SELECT * FROM q") == [wanted]
    assert _rows(engine, sums) == [wanted]
    if "RANGE 1" in window:
        engine.heartbeat("s", 3_000_000)
        pushes = [p for p in engine.subscribe("p", 0).take() if p.at == 2_000_000]
        ((row,),) = (p.data.to_pylist() for p in pushes if p.data)
        within = [x for _, x, t in ROWS if t >= 1_000_000]
        assert abs(row["s"] - sum(within)) < 4 * row["s_error"]


def test_sums_of_a_sample_by_grouping_sets_are_scaled_in_each() -> None:
    engine = _filled()
    read = "FROM s [RANGE 1 h] SAMPLE 20 PERCENT"
    kept: dict[object, list[float]] = {None: []}
    for k, x in _rows(engine, f"SELECT k, x {read}"):
        assert isinstance(x, float)
        kept.setdefault(k, []).append(x)
        kept[None].append(x)
    sums = f"SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a {read} GROUP BY ROLLUP (k)"
    found = {k: row for k, *row in _rows(engine, f"{sums} WITH (sample = scale)")}
    assert found.keys() == kept.keys()
    for k, row in found.items():
        assert row == pytest.approx(list(_estimates(kept[k], 20)), rel=1e-9)


def test_weights_of_a_sample_of_what_was_shed_are_both() -> None:
    engine = Engine()
    engine.execute(STREAM.replace("RETAIN 1 h", "RETAIN 1 h WITH (shed = random)"))
    engine.ingest("s", ROWS)
    engine.heartbeat("s", 2_000_000)
    read = "FROM s [RANGE 1 h] SAMPLE 50 PERCENT"
    ((n,),) = _rows(engine, f"SELECT COUNT(*) {read}")
    ((twice, error),) = _rows(engine, f"SELECT COUNT(*) {read} WITH (sample = scale, shed = scale)")
    assert (twice, error) == (2.0 * n, pytest.approx((2 * n) ** 0.5))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, SAMPLE(x, 2) AS some FROM s [RANGE 1 s] GROUP BY ROLLUP (k)",
        "SELECT APPROX_QUANTILE(x, 0.5) AS m FROM s [RANGE 1 s] WHERE x > (SELECT AVG(x) FROM s)",
        "SELECT k, FREQUENT(x, 2) AS often FROM s [ROWS 100] GROUP BY GROUPING SETS ((k), ())",
    ],
)
def test_where_no_synopsis_answers_the_windows_are_read(query: str) -> None:
    """By queries EVERY so often and ON LOOKUP, without a word of the path."""
    engine = _filled()
    asked = query.replace("FROM s)", "FROM s [RANGE 1 s])")
    engine.execute(f"CREATE QUERY e AS {asked} EVERY 1 s; CREATE QUERY l AS {asked} ON LOOKUP")
    engine.ingest("s", [(i % 7, i / 8, 2_000_001 + i * 9000) for i in range(111)])
    engine.heartbeat("s", 2_999_999)
    wanted = bag(engine, asked)
    assert told(engine, "e")[-1] == (3_000_000, "result", wanted)
    assert bag(engine, "LOOKUP l") == wanted


@pytest.mark.parametrize("option", ["sample = scale", "shed = scale"])
@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("SUM(d)", None),
        ("AVG(d)", None),
        ("2 + AVG(k)", "DS207"),
        ("SUM(k)", "DS207"),
        ("SUM(b)", "DS207"),
        ("AVG(b)", "DS207"),
        ("AVG(v)", "DS207"),
    ],
)
def test_sums_that_are_scaled_are_of_what_there_are_sums_of(
    option: str, call: str, code: str | None
) -> None:
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (k STRING, b BOOL, d INTERVAL, v BYTES, x FLOAT, t TIMESTAMP)"
        " TIMESTAMP BY t RETAIN 1 h WITH (shed = random)"
    )
    wanted = code or ("DS366" if "sample" in option else "DS361")
    read = "FROM s [RANGE 1 h]" + (" SAMPLE 50 PERCENT" if "sample" in option else "")
    for begun in ("", "CREATE QUERY q AS "):
        with pytest.raises(QueryError, match=wanted):
            engine.execute(f"{begun}SELECT {call} AS y {read} WITH ({option})")
    assert len(_rows(engine, f"SELECT COUNT(d), SUM(x) {read} WITH ({option})")) == 1
