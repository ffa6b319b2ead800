"""APPROX_HISTOGRAM and APPROX_INTERSECT: against their definition however rows are cut and put
together, what their answers guarantee, and every way to ask for them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine
from dsms.aggregates.histograms import TRIED, Histogram, Ranged, algebra
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.scales import bits
from dsms.errors import InternalError, QueryError
from dsms.sql.expr import AggCall, Col
from dsms.sql.types import BOOL, FLOAT, INT, INTERVAL, STRING, TIMESTAMP, Type
from tests.effort import examples, thinned
from tests.oracle import aggregates as oracle

INTS = (
    st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1])
)
FLOATS = st.floats() | st.floats(-9, 9) | st.integers(-9, 9).map(float)
INSTANTS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999) | st.integers(0, 10**8)
VALUES = {INT: INTS, FLOAT: FLOATS, TIMESTAMP: INSTANTS, INTERVAL: INTS}


def histogram(type_: Type, g: int, scale: str = "linear") -> AggCall:
    return AggCall("approx_histogram", (Col(0, type_),), STRING, params=(g, scale))


def common(type_: Type, g: int) -> AggCall:
    return AggCall("approx_intersect", (Col(0, type_), Col(1, BOOL)), STRING, params=(g,))


def lifted(call: AggCall, cells: Sequence[Sequence[tuple[Any, ...]]]) -> Ranged:
    rows = [r for cell in cells for r in cell]
    cell, n = np.repeat(np.arange(len(cells)), [len(c) for c in cells]), np.arange(len(rows))
    args = tuple(pa.array([r[k] for r in rows], a.type.arrow) for k, a in enumerate(call.args))
    return algebra(call).lift(CellRows(cell.astype(np.int64), n, n, args), len(cells))


def answer(call: AggCall, rows: Sequence[tuple[Any, ...]]) -> dict[str, list[list[Any]]]:
    (text,) = algebra(call).lower(lifted(call, [rows])).to_pylist()
    found: dict[str, list[list[Any]]] = json.loads(text)
    return found


@st.composite
def cases(draw: Any) -> tuple[AggCall, list[list[tuple[Any, ...]]]]:
    """A call, and the rows of some sub-windows."""
    type_ = draw(st.sampled_from(list(VALUES)))
    g, both = draw(st.integers(2, 6)), draw(st.booleans())
    value = st.none() | VALUES[type_]
    row = st.tuples(value, st.none() | st.booleans()) if both else st.tuples(value)
    scale = draw(st.sampled_from(["linear", "log"]))
    call = common(type_, g) if both else histogram(type_, g, scale)
    return call, draw(st.lists(st.lists(row, max_size=9), min_size=1, max_size=6))


@settings(deadline=None, max_examples=examples(400))
@given(case=cases(), seed=st.integers(0, 99))
def test_the_answer_is_the_definition_however_cells_are_put_together(
    case: tuple[AggCall, list[list[tuple[Any, ...]]]], seed: int
) -> None:
    call, cells = case
    how, rng, state = algebra(call), Random(seed), lifted(call, cells)
    assert how.lower(state).to_pylist() == [oracle.aggregate(call, c) for c in cells]
    everything = [r for c in cells for r in c]
    want = [oracle.aggregate(call, everything)]
    n, zeros = len(cells), np.zeros(len(cells), np.int64)
    one = how.merge(state, zeros, zeros[:1], zeros[:1] + n, zeros[:1], 1)
    parts = [how.take(state, np.array([i])) for i in range(n)]
    while len(parts) > 1:
        a, b = (parts.pop(rng.randrange(len(parts))) for _ in range(2))
        parts.append(how.combine(a, b))
    assert how.lower(one).to_pylist() == how.lower(parts[0]).to_pylist() == want
    assert all(np.diff(s.starts).max() <= how.g + 3 for s in (state, one, parts[0]))


@pytest.mark.parametrize("how", ["uniform", "normal", "skewed", "outliers"])
def test_counts_are_exact_and_ranges_as_narrow_as_documented(how: str) -> None:
    rng, g = np.random.default_rng(3), 40
    values = {
        "uniform": lambda: rng.integers(-5000, 90_000, 3 * TRIED),
        "normal": lambda: rng.normal(10**6, 10**4, 3 * TRIED).astype(np.int64),
        "skewed": lambda: rng.zipf(1.3, 3 * TRIED) % 10**9,
        "outliers": lambda: np.append(rng.integers(0, 500, 3 * TRIED), [10**17, -(10**15)]),
    }[how]()
    found = answer(histogram(INT, g), [(int(v),) for v in values])["ranges"]
    assert len(found) <= g
    for low, high, count in found:
        assert ((values >= low) & (values < high)).sum() == count > 0
    assert sum(count for *_, count in found) == len(values)
    (width,) = {high - low for low, high, _ in found}
    assert width < 2 * (int(values.max()) - int(values.min())) / (g - 1)
    assert len(set((values // (width // 2)).tolist())) > g
    assert width == 16 or how != "outliers"  # these take two ranges of the forty


def test_ranges_of_a_log_scale_are_as_narrow_as_documented() -> None:
    values = np.random.default_rng(4).pareto(0.7, 20_000) + 1e-3
    found = answer(histogram(FLOAT, 200, "log"), [(float(v),) for v in values])["ranges"]
    assert 20 < len(found) <= 200 and sum(n for *_, n in found) == len(values)
    for low, high, count in found:
        assert ((values >= low) & (values < high)).sum() == count > 0
    ratio = max(high / low for low, high, _ in found)
    assert 1 < ratio <= 2 and math.log2(ratio - 1).is_integer()  # level below 52


@settings(deadline=None, max_examples=examples(150))
@given(
    a=st.lists(st.integers(0, 400), max_size=40),
    b=st.lists(st.integers(200, 900), max_size=40),
    g=st.integers(2, 60),
)
def test_no_common_value_is_outside_the_common_ranges(a: list[int], b: list[int], g: int) -> None:
    rows = [(v, True) for v in a] + [(v, False) for v in b]
    if not rows:
        return
    found = answer(common(INT, g), rows)["ranges"]
    for low, high, mine, others in found:
        assert sum(low <= v < high for v in a) == mine > 0
        assert sum(low <= v < high for v in b) == others > 0
    listed = {v for low, high, *_ in found for v in range(low, high)}
    assert set(a) & set(b) <= listed
    if len({*a, *b}) <= g:  # single values: the intersection itself
        both, x, y = set(a) & set(b), Counter(a), Counter(b)
        assert found == [[v, v + 1, x[v], y[v]] for v in sorted(both)]


def test_large_pieces_are_what_small_ones_make() -> None:
    """Rows beyond those from which a first level is taken, in cells these don't have."""
    rng = np.random.default_rng(5)
    n = 5 * TRIED
    cell = np.sort(rng.integers(0, 3, n))
    values = rng.normal(size=n) * 10.0 ** (3 * cell)
    values[::97] = np.nan
    how = algebra(histogram(FLOAT, 30))
    rows = CellRows(cell, np.arange(n), np.arange(n), (pa.array(values),))
    whole, parts = how.lift(rows, 3), how.empty(3)
    for at in range(0, n, 1000):
        piece = slice(at, at + 1000)
        some = CellRows(cell[piece], rows.ts[piece], rows.ts[piece], (rows.args[0][piece],))
        parts = how.combine(parts, how.lift(some, 3))
    assert how.lower(whole).to_pylist() == how.lower(parts).to_pylist()
    assert how.nbytes(whole) > how.nbytes(how.empty(3)) > 0
    with pytest.raises(InternalError):
        how.subtract(whole, parts)


@given(n=st.integers(0, 2**64 - 1))
def test_bits_are_counted_exactly(n: int) -> None:
    assert bits(np.array([n], np.uint64)).tolist() == [n.bit_length()]


def test_cells_are_columns() -> None:
    how = Histogram(algebra(histogram(INT, 2)).scale, 2, 1)
    assert how.size(how.concat([])) == 0
    state = lifted(histogram(INT, 2), [[(1,), (2,), (9,)], [], [(None,)]])
    assert how.present(state).tolist() == [True, False, False]
    assert how.lower(state).to_pylist()[1:] == [None, None]


# ---------------------------------------------------------------- asked of the engine

DECLARED = """
CREATE STREAM s (k STRING, i INT, f FLOAT, d DECIMAL(9,2), u INTERVAL, t TIMESTAMP)
    TIMESTAMP BY t RETAIN 1 min;
"""
CALLS = {
    "APPROX_HISTOGRAM(i, 4)": histogram(INT, 4),
    "APPROX_HISTOGRAM(f, 3, 'log')": histogram(FLOAT, 3, "log"),
    "APPROX_HISTOGRAM(u, 5)": histogram(INTERVAL, 5),
    "APPROX_INTERSECT(i, f > 0, 4)": common(INT, 4),
}
SECOND = 1_000_000
Came = list[tuple[int, str, int | None, float, int]]


def came(rng: Random, n: int) -> Came:
    times = sorted(rng.randrange(20 * SECOND) for _ in range(n))
    odd = (math.nan, math.inf, -0.0)
    return [
        (
            t,
            rng.choice("ab"),
            rng.choice([None, rng.randint(0, 99), rng.randint(-(10**6), 10**6)]),
            rng.choice([*odd, rng.gauss(0, 9), rng.paretovariate(0.3)]),
            rng.randint(0, 9 * SECOND),
        )
        for t in times
    ]


def ingest(engine: Engine, rows: Came, rng: Random) -> None:
    """In frames cut anywhere."""
    at = 0
    while at < len(rows):
        part = rows[at : (at := at + rng.randint(1, 30))]
        t, k, i, f, u = (list(c) for c in zip(*part, strict=True))
        engine.ingest("s", {"k": k, "i": i, "f": f, "d": [None] * len(t), "u": u, "t": t})


def expected(rows: Came, low: int, high: int, key: str | None = None) -> list[object]:
    """The answers of CALLS over rows with low <= t < high."""
    some = [r for r in rows if low <= r[0] < high and key in (None, r[1])]
    given_ = {
        "i": [(i,) for _, _, i, _, _ in some],
        "f": [(f,) for *_, f, _ in some],
        "u": [(u,) for *_, u in some],
        "both": [(i, f > 0 or math.isnan(f)) for _, _, i, f, _ in some],  # NaN is above all
    }
    return [
        oracle.aggregate(call, given_[name])
        for name, call in zip(given_, CALLS.values(), strict=True)
    ]


@thinned()
@pytest.mark.parametrize("options", ["", "synopsis = basic", "synopsis = interval", "path = ws"])
@pytest.mark.parametrize("keyed", [False, True])
def test_boundaries_answer_by_every_path(options: str, keyed: bool) -> None:
    rng = Random(len(options) + keyed)
    rows = came(rng, 300)
    engine = Engine()
    engine.execute(DECLARED)
    group = ("k, ", " GROUP BY k") if keyed else ("", "")
    more = f" WITH ({options})" if options else ""
    for name, width in (("narrow", 2), ("wide", 9)):
        engine.execute(
            f"CREATE QUERY {name} AS SELECT {group[0]}{', '.join(CALLS)} "
            f"FROM s [RANGE {width} s SLIDE 1 s]{group[1]}{more}"
        )
    told = {name: engine.subscribe(name) for name in ("narrow", "wide")}
    ingest(engine, rows, rng)
    engine.end("s")
    for name, width in (("narrow", 2), ("wide", 9)):
        current: dict[str | None, list[object]] = {}
        pushes = 0
        for push in told[name].take():
            if push.kind == "snapshot" or push.data is None:
                continue
            pushes += 1
            for row in push.data.to_pylist():
                low, high = push.at - width * SECOND, push.at
                values = list(row.values())
                key = values.pop(0) if keyed else None
                assert values == expected(rows, low, high, key), (name, push.at)
                current[key] = values
        assert pushes >= 15 and len(current) == 1 + keyed
    engine.close()


def test_one_time_answers_and_groups() -> None:
    rng = Random(8)
    rows = came(rng, 200)
    engine = Engine()
    engine.execute(DECLARED)
    ingest(engine, rows, rng)
    last = rows[-1][0]
    engine.heartbeat("s", last)
    (one,) = engine.execute(f"SELECT {', '.join(CALLS)} FROM s [RANGE 7 s]")[0].data.to_pylist()
    assert list(one.values()) == expected(rows, last - 7 * SECOND + 1, last + 1)
    found = engine.execute(f"SELECT k, {', '.join(CALLS)} FROM s [RANGE 7 s] GROUP BY k")[0].data
    for row in found.to_pylist():
        key = row.pop("k")
        assert list(row.values()) == expected(rows, last - 7 * SECOND + 1, last + 1, key)
    kept = engine.execute(
        "SELECT APPROX_HISTOGRAM(i, 4) FILTER (WHERE k = 'a') AS h FROM s [RANGE 7 s]"
    )
    assert kept[0].data["h"].to_pylist() == expected(rows, last - 7 * SECOND + 1, last + 1, "a")[:1]
    engine.close()


def test_two_windows_intersect_by_ranges() -> None:
    """The intersection of §6.2: two windows of two streams, one side each."""
    engine = Engine()
    for name in "ab":
        engine.execute(f"CREATE STREAM {name} (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min")
    both = (
        "SELECT APPROX_INTERSECT(v, left_one, 4) AS h FROM "
        "(SELECT v, TRUE AS left_one FROM a [RANGE 9 s{0}] UNION ALL "
        "SELECT v, FALSE AS left_one FROM b [RANGE 9 s{0}]) x"
    )
    engine.execute(f"CREATE QUERY q AS {both.format(' SLIDE 1 s')} WITH (path = ws)")
    told = engine.subscribe("q")
    engine.ingest("a", {"v": [1, 2, 50, 99], "t": [0, 1, 2, 3]})
    engine.ingest("b", {"v": [2, 51, 700], "t": [0, 1, 3]})
    want = oracle.aggregate(
        common(INT, 4),
        [(v, True) for v in (1, 2, 50, 99)] + [(v, False) for v in (2, 51, 700)],
    )
    for name in "ab":
        engine.heartbeat(name, SECOND)
    (row,) = engine.execute(both.format(""))[0].data.to_pylist()
    assert row["h"] == want and "[[0, 4, 2, 1], [48, 52, 1, 1]]" in str(want)
    pushed = [r["h"] for p in told.take() if p.data is not None for r in p.data.to_pylist()]
    assert pushed[-1] == want
    engine.close()


def test_answers_go_on_after_a_restart(tmp_path: Path) -> None:
    rng = Random(9)
    rows = came(rng, 200)
    create = f"CREATE QUERY q AS SELECT {', '.join(CALLS)} FROM s [RANGE 6 s SLIDE 1 s]"
    engine = Engine(tmp_path)
    engine.execute(DECLARED + create)
    ingest(engine, rows[:100], rng)
    assert engine.saver is not None and engine.saver.checkpoint()
    ingest(engine, rows[100:120], rng)
    engine.close()
    engine = Engine(tmp_path)
    told = engine.subscribe("q")
    ingest(engine, rows[120:], rng)
    engine.end("s")
    seen = 0
    for push in told.take():
        for row in (
            push.data.to_pylist() if push.data is not None and push.kind != "snapshot" else ()
        ):
            assert list(row.values()) == expected(rows, push.at - 6 * SECOND, push.at)
            seen += 1
    assert seen > 8
    engine.close()


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        ("APPROX_HISTOGRAM(i, 1)", "DS207", "number g from 2 to 10000, not 1"),
        ("APPROX_HISTOGRAM(i)", "DS207", "takes g and scale"),
        ("APPROX_HISTOGRAM(i, 4, 'cubic')", "DS207", "'linear' or 'log'"),
        ("APPROX_HISTOGRAM(k, 4)", "DS207", "(INT) -> STRING"),
        ("APPROX_HISTOGRAM(i, i)", "DS207", "constant"),
        ("APPROX_INTERSECT(i, 4)", "DS207", "BOOL) -> STRING"),
        ("APPROX_INTERSECT(i, f, 4)", "DS207", "BOOL) -> STRING"),
        ("APPROX_HISTOGRAM(DISTINCT i, 4)", "DS207", "DISTINCT"),
    ],
)
def test_what_it_does_not_take(call: str, code: str, says: str) -> None:
    engine = Engine()
    engine.execute(DECLARED)
    with pytest.raises(QueryError) as caught:
        engine.execute(f"SELECT {call} FROM s [RANGE 7 s]")
    assert caught.value.code == code
    assert says in f"{caught.value} {caught.value.hint}"
    with pytest.raises(QueryError) as caught:
        engine.execute("CREATE QUERY c AS SELECT APPROX_HISTOGRAM(i, 4) FROM s [RANGE 7 s]")
    assert caught.value.code == "DS331"
    engine.close()
