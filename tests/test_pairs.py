"""Aggregates of two columns, MODE, ENTROPY and STRING_AGG: in all queries, and after a restart."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

from dsms import Engine

ALL = (
    "COVAR_POP(y, x) AS cp, COVAR_SAMP(y, x) AS cs, CORR(y, x) AS r, REGR_SLOPE(y, x) AS a, "
    "REGR_INTERCEPT(y, x) AS b, MODE(k) AS m, ENTROPY(k) AS h, STRING_AGG(k, '-') AS l"
)
DECLARED = f"""
CREATE STREAM s (k STRING, y FLOAT, x INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min;
CREATE QUERY c AS SELECT {ALL} FROM s [RANGE 4 s];
CREATE QUERY p AS SELECT {ALL} FROM s [RANGE 4 s SLIDE 1 s];
"""
ONCE = f"SELECT {ALL} FROM s [RANGE 4 s]"
NAMES = ("cp", "cs", "r", "a", "b", "m", "h", "l")
ROWS = (
    ("a", 3.0, 1), ("b", 5.0, 2), ("b", None, 3), ("c", 9.0, 4), ("a", 1e300, 5), ("a", 7.0, 3),
    ("d", 7.0, 3), ("d", 7.5, 3), ("a", 7.0, 3), ("b", math.nan, 3), ("b", 2.0, 0),
)  # a table  # fmt: skip


def ingest(engine: Engine, second: int) -> None:
    k, y, x = ROWS[second]
    engine.ingest("s", {"k": [k], "y": [y], "x": [x], "t": [second * 1_000_000]})
    engine.heartbeat("s", second * 1_000_000)


def answer(engine: Engine, text: str) -> tuple[object, ...]:
    (result,) = engine.execute(text)
    (row,) = result.data.to_pylist()
    return tuple(row[name] for name in NAMES)


def near(got: object, want: object) -> bool:
    if not isinstance(want, float):
        return got == want
    return bool(got == pytest.approx(want, rel=1e-14, abs=1e-15, nan_ok=True))


def wanted(second: int) -> tuple[object, ...]:
    """By the textbook, with fractions."""
    rows = ROWS[max(0, second - 3) : second + 1]
    pairs = [(y, x) for _, y, x in rows if y is not None]
    counts = {k: sum(r[0] == k for r in rows) for k in sorted(r[0] for r in rows)}
    shares = [c / len(rows) for c in counts.values()]
    mode, entropy = (
        max(counts, key=counts.__getitem__),
        -math.fsum(p * math.log2(p) for p in shares),
    )
    kinds = (mode, entropy, "-".join(r[0] for r in rows))
    n = len(pairs)
    if any(math.isnan(y) for y, _ in pairs):
        return (*(math.nan,) * 5, *kinds)
    y, x = (Fraction(sum(map(Fraction, c))) / n for c in zip(*pairs, strict=True))
    yx, xx, yy = (
        sum((f(Fraction(b), Fraction(a)) for b, a in pairs), Fraction(0))
        for f in (
            lambda b, a: (b - y) * (a - x),
            lambda b, a: (a - x) ** 2,
            lambda b, a: (b - y) ** 2,
        )
    )
    line = (None, None) if xx == 0 else (float(yx / xx), float(y - yx / xx * x))
    r = None if xx == 0 or yy == 0 else math.copysign(float(yx * yx / xx / yy) ** 0.5, yx)
    return (float(yx / n), None if n < 2 else float(yx / (n - 1)), r, *line, *kinds)


@pytest.mark.parametrize("restart", [False, True])
def test_all_ways_answer_what_the_textbook_says(tmp_path: Path, restart: bool) -> None:
    engine = Engine(str(tmp_path))
    engine.execute(DECLARED)
    told = engine.subscribe("p")
    seen = []
    for second in range(len(ROWS)):
        if restart and second == 5:
            assert engine.saver is not None and engine.saver.checkpoint()
        if restart and second == 6:
            engine.close()
            engine = Engine(str(tmp_path))
            told = engine.subscribe("p")
        ingest(engine, second)
        one = answer(engine, "SELECT * FROM c")
        assert all(map(near, one, wanted(second))), (one, wanted(second))
        assert repr(answer(engine, ONCE)) == repr(one)
        seen.append(repr(one))
        for push in told.take():
            if push.data is not None:
                for row in push.data.to_pylist():
                    assert repr(tuple(row[name] for name in NAMES)) in seen
    engine.close()


def test_big_means_cancel_nothing() -> None:
    """A spread far below the mean: what sums of rounded squares would lose."""
    engine = Engine()
    engine.advance(0)
    engine.execute("CREATE STREAM s (y FLOAT, x FLOAT)")
    engine.ingest("s", {"y": [1e15 + k for k in (1, 2, 4)], "x": [1e15, 1e15 + 1, 1e15 + 2]})
    engine.advance(1)
    (found,) = engine.execute("SELECT REGR_SLOPE(y, x) AS a, COVAR_POP(y, x) AS c FROM s [ROWS 3]")
    assert found.data.to_pylist() == [{"a": 1.5, "c": 1.0}]
    engine.close()
