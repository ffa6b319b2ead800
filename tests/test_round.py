"""ROUND to digits: one rule for FLOAT, DECIMAL and CAST, on every way to evaluate it."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.operators.expressions.rounding import round_floats
from dsms.sql.expr import Call, Col
from dsms.sql.types import FLOAT, INT
from tests.oracle.numbers import NUMBERS
from tests.scalars import agree

NAN, INF = math.nan, math.inf

TABLE = [
    (1.325, 2, 1.33),  # the FLOAT is 1.32499999999999995559...
    (2.675, 2, 2.68),
    (1.005, 2, 1.01),
    (0.285, 2, 0.29),
    (1.115, 2, 1.12),
    (4.35, 1, 4.4),
    (1.15, 1, 1.2),
    (-1.325, 2, -1.33),
    (-2.675, 2, -2.68),
    (0.5, 0, 1.0),
    (1.5, 0, 2.0),
    (2.5, 0, 3.0),
    (-2.5, 0, -3.0),
    (0.49999999999999994, 0, 0.0),
    (-0.4, 0, -0.0),
    (0.0, 2, 0.0),
    (1250.0, -2, 1300.0),
    (1249.999, -2, 1200.0),
    (-1250.0, -2, -1300.0),
    (55.0, -2, 100.0),
    (49.0, -2, 0.0),
    (123456789.123456789, 4, 123456789.1235),
    (9007199254740993.0, 1, 9007199254740992.0),
    (1e22, 5, 1e22),
    (1e300, 2, 1e300),
    (1e300, -299, 1e300),
    (1.7e308, -308, 1.7e308),  # 2e308 is no FLOAT
    (1.4e308, -308, 1e308),
    (0.1, 17, 0.1),
    (0.1, 30, 0.1),
    (1.5, 400, 1.5),
    (1.5, 2**62, 1.5),
    (1.5, -400, 0.0),
    (1.5, -(2**62), 0.0),
    (5e-324, 323, 1e-323),
    (5e-324, 324, 5e-324),
    (2.5e-25, 25, 3e-25),
    (NAN, 2, NAN),
    (INF, 2, INF),
    (-INF, -2, -INF),
]


@pytest.mark.parametrize(("x", "n", "want"), TABLE)
def test_table(x: float, n: int, want: float):
    got = round_floats(np.array([x]), np.array([n]))
    assert agree([float(got[0])], [want])
    assert agree(
        [NUMBERS["round"](Call("round", (Col(0, FLOAT), Col(1, INT)), FLOAT), x, n)], [want]
    )


def test_one_time_and_continuous():
    rows = [[x, n, i] for i, (x, n, _) in enumerate(TABLE)]
    want = [w for *_, w in TABLE]
    engine = Engine()
    engine.execute("CREATE STREAM s (x FLOAT, n INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.execute("CREATE QUERY q AS SELECT Rstream(t, ROUND(x, n) AS r) FROM s [RANGE 1 h]")
    engine.ingest("s", rows)
    engine.heartbeat("s", 10**6)
    for text in (
        "SELECT ROUND(x, n) AS r FROM s [RANGE 1 h] ORDER BY t",
        "SELECT r FROM q ORDER BY t",
    ):
        assert agree(engine.execute(text)[0].data.column("r").to_pylist(), want), text
    (line,) = engine.execute(
        "SELECT ROUND(1.325, 2), ROUND(-1.325, 2), ROUND(DECIMAL '1.325', 2), ROUND(1.325)"
    )
    assert [c[0].as_py() for c in line.data.columns] == [1.33, -1.33, Decimal("1.33"), 1.0]


FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.decimals(
    -(10**6), 10**6, places=3, allow_nan=False, allow_infinity=False
).map(float)


@given(FLOATS, st.integers(-30, 30))
@example(1.325, 2)
@example(8.5e-5, 5)
@example(2251799813685248.5, 0)
def test_like_decimal(x: float, n: int):
    """As the text is rounded in decimal digits."""
    with localcontext() as context:
        context.prec = 800
        want = float(Decimal(repr(x)).quantize(Decimal(1).scaleb(-n), rounding=ROUND_HALF_UP))
    got = float(round_floats(np.array([x]), np.array([n]))[0])
    assert got == (want if math.isfinite(want) else x)


@given(
    st.decimals(-(10**6), 10**6, places=4, allow_nan=False, allow_infinity=False), st.integers(0, 4)
)
def test_float_and_decimal_agree(x: Decimal, n: int):
    exact = x.quantize(Decimal(1).scaleb(-n), rounding=ROUND_HALF_UP)
    assert float(round_floats(np.array([float(x)]), np.array([n]))[0]) == float(exact)
