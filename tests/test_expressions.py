"""Operators, comparisons, conditionals, numbers: the corner rules, one table row each."""

from __future__ import annotations

import math
from decimal import Decimal as D

import pyarrow as pa
import pytest

from dsms.errors import QueryError
from dsms.operators.expressions import (
    ErrorCounter,
    can_fail,
    compile_expr,
    compile_many,
    compile_predicate,
)
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.functions import call
from dsms.sql.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INTERVAL,
    MAX_INSTANT,
    MIN_INSTANT,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
)
from tests.scalars import DEC, WIDE, agree, apply, columns, every_way, lit

LOW, HIGH = -(2**63), 2**63 - 1
NAN, INF = math.nan, math.inf
FAIL = object()  # NULL, and counted

ROWS = [
    # function, types, arguments, value
    ("add", (INT, INT), (2, 3), 5),
    ("add", (INT, INT), (HIGH, 1), FAIL),
    ("add", (INT, INT), (LOW, -1), FAIL),
    ("add", (INT, INT), (HIGH, None), None),
    ("sub", (INT, INT), (LOW, 1), FAIL),
    ("sub", (INT, INT), (0, LOW), FAIL),
    ("sub", (INT, INT), (-1, LOW), HIGH),
    ("mul", (INT, INT), (2**32, 2**31), FAIL),
    ("mul", (INT, INT), (-(2**32), 2**31), LOW),
    ("mul", (INT, INT), (LOW, -1), FAIL),
    ("mul", (INT, INT), (-1, LOW), FAIL),
    ("mul", (INT, INT), (0, LOW), 0),
    ("div", (INT, INT), (7, 2), 3),
    ("div", (INT, INT), (-7, 2), -3),
    ("div", (INT, INT), (7, -2), -3),
    ("div", (INT, INT), (-7, -2), 3),
    ("div", (INT, INT), (1, 0), FAIL),
    ("div", (INT, INT), (None, 0), None),
    ("div", (INT, INT), (LOW, -1), FAIL),
    ("div", (INT, INT), (LOW, 2), -(2**62)),
    ("mod", (INT, INT), (7, 3), 1),
    ("mod", (INT, INT), (-7, 3), -1),
    ("mod", (INT, INT), (7, -3), 1),
    ("mod", (INT, INT), (-7, -3), -1),
    ("mod", (INT, INT), (7, 0), FAIL),
    ("mod", (INT, INT), (None, 0), None),
    ("mod", (INT, INT), (LOW, -1), 0),
    ("neg", (INT,), (LOW,), FAIL),
    ("neg", (INT,), (HIGH,), -HIGH),
    ("abs", (INT,), (LOW,), FAIL),
    ("abs", (INT,), (-3,), 3),
    ("sign", (INT,), (LOW,), -1),
    # FLOAT is IEEE 754 but for a zero divisor
    ("add", (FLOAT, FLOAT), (1e308, 1e308), INF),
    ("add", (FLOAT, FLOAT), (INF, -INF), NAN),
    ("add", (INT, FLOAT), (1, 0.5), 1.5),
    ("div", (FLOAT, FLOAT), (1.0, 4.0), 0.25),
    ("div", (FLOAT, FLOAT), (1.0, 0.0), FAIL),
    ("div", (FLOAT, FLOAT), (0.0, -0.0), FAIL),
    ("div", (FLOAT, FLOAT), (NAN, 0.0), FAIL),
    ("div", (FLOAT, FLOAT), (1.0, INF), 0.0),
    ("div", (FLOAT, INT), (1.0, 0), FAIL),
    ("mod", (FLOAT, FLOAT), (-5.5, 2.0), -1.5),
    ("mod", (FLOAT, FLOAT), (5.5, 0.0), FAIL),
    ("mod", (FLOAT, FLOAT), (INF, 2.0), NAN),
    ("mod", (FLOAT, FLOAT), (2.0, INF), 2.0),
    ("neg", (FLOAT,), (INF,), -INF),
    # DECIMAL is exact
    ("add", (DEC, decimal(5, 3)), (D("1.25"), D("0.125")), D("1.375")),
    ("add", (DEC, INT), (D("1.25"), 2), D("3.25")),
    ("add", (DEC, FLOAT), (D("1.25"), 0.5), 1.75),
    ("add", (decimal(38, 0), decimal(38, 0)), (D(10**38 - 1), D(1)), FAIL),
    ("add", (decimal(38, 0), decimal(38, 0)), (D(10**38 - 2), D(1)), D(10**38 - 1)),
    ("add", (decimal(38, 38), decimal(38, 0)), (D("0.5"), D(10)), FAIL),
    ("sub", (decimal(38, 38), decimal(38, 38)), (D("0.5"), D("0.25")), D("0.25")),
    ("mul", (DEC, decimal(5, 3)), (D("1.25"), D("0.125")), D("0.15625")),
    ("mul", (decimal(38, 10), decimal(38, 10)), (D("123456789.5"), D(2)), D(246913579)),
    ("mul", (decimal(38, 0), decimal(38, 0)), (D(10**19), D(10**19)), FAIL),
    ("mul", (decimal(38, 0), decimal(38, 0)), (D(10**38 - 1), D(10**38 - 1)), FAIL),
    ("mul", (decimal(38, 0), decimal(38, 0)), (D(10**18), D(-(10**19))), D(-(10**37))),
    ("div", (DEC, DEC), (D("1.00"), D("8.00")), 0.125),
    ("div", (DEC, DEC), (D("1.00"), D("0.00")), FAIL),
    ("mod", (DEC, DEC), (D("-7.50"), D("2.00")), D("-1.50")),
    ("mod", (DEC, INT), (D("7.50"), 2), D("1.50")),
    ("mod", (DEC, DEC), (D("7.50"), D("0.00")), FAIL),
    (
        "mod",
        (WIDE, decimal(38, 0)),
        (D("-1234567890123456789012.75"), D(10**20)),
        D("-34567890123456789012.75"),
    ),
    ("neg", (DEC,), (D("1.25"),), D("-1.25")),
    ("sign", (DEC,), (D("-1.25"),), -1),
    # instants and lengths
    ("add", (TIMESTAMP, INTERVAL), (5, -7), -2),
    ("add", (INTERVAL, TIMESTAMP), (-7, 5), -2),
    ("add", (TIMESTAMP, INTERVAL), (MAX_INSTANT, 1), FAIL),
    ("sub", (TIMESTAMP, INTERVAL), (MIN_INSTANT, 1), FAIL),
    ("add", (TIMESTAMP, INTERVAL), (0, HIGH), FAIL),
    ("sub", (TIMESTAMP, TIMESTAMP), (MIN_INSTANT, MAX_INSTANT), MIN_INSTANT - MAX_INSTANT),
    ("add", (INTERVAL, INTERVAL), (HIGH, 1), FAIL),
    ("mul", (INTERVAL, INT), (3, -4), -12),
    ("mul", (FLOAT, INTERVAL), (2.5, 1), 2),
    ("mul", (INTERVAL, FLOAT), (3, 0.5), 2),
    ("mul", (INTERVAL, FLOAT), (1, NAN), FAIL),
    ("mul", (INTERVAL, FLOAT), (HIGH, 2.0), FAIL),
    ("div", (INTERVAL, INT), (-7, 2), -3),
    ("div", (INTERVAL, INT), (7, 0), FAIL),
    ("div", (INTERVAL, INTERVAL), (3, 2), 1.5),
    ("div", (INTERVAL, INTERVAL), (3, 0), FAIL),
    ("mod", (INTERVAL, INTERVAL), (-7, 3), -1),
    ("abs", (INTERVAL,), (-7,), 7),
    # order: NaN equals itself and is above all numbers, -0.0 is 0.0
    ("eq", (FLOAT, FLOAT), (NAN, NAN), True),
    ("eq", (FLOAT, FLOAT), (-0.0, 0.0), True),
    ("ne", (FLOAT, FLOAT), (NAN, NAN), False),
    ("ne", (FLOAT, FLOAT), (NAN, 1.0), True),
    ("lt", (FLOAT, FLOAT), (INF, NAN), True),
    ("lt", (FLOAT, FLOAT), (NAN, INF), False),
    ("lt", (FLOAT, FLOAT), (-0.0, 0.0), False),
    ("le", (FLOAT, FLOAT), (NAN, NAN), True),
    ("gt", (FLOAT, FLOAT), (NAN, INF), True),
    ("gt", (FLOAT, FLOAT), (1.0, NAN), False),
    ("ge", (FLOAT, FLOAT), (NAN, NAN), True),
    ("ge", (FLOAT, FLOAT), (1.0, NAN), False),
    ("ge", (FLOAT, FLOAT), (None, NAN), None),
    ("eq", (INT, FLOAT), (1, 1.0), True),
    ("lt", (INT, DEC), (1, D("1.01")), True),
    ("eq", (INT, decimal(38, 30)), (10**15, D("1.0")), False),
    ("eq", (decimal(38, 37), decimal(38, 0)), (D("1.5"), D(10**37)), False),
    ("lt", (STRING, STRING), ("a\uffff", "a\U00010000"), True),
    ("lt", (STRING, STRING), ("Z", "a"), True),
    ("lt", (STRING, STRING), ("a", "ab"), True),
    ("lt", (BYTES, BYTES), (b"\x7f", b"\x80"), True),
    ("lt", (BOOL, BOOL), (False, True), True),
    ("gt", (TIMESTAMP, TIMESTAMP), (-1, -2), True),
    ("distinct_from", (FLOAT, FLOAT), (NAN, NAN), False),
    ("distinct_from", (INT, INT), (None, None), False),
    ("distinct_from", (INT, INT), (None, 1), True),
    ("not_distinct_from", (STRING, STRING), (None, ""), False),
    ("not_distinct_from", (STRING, STRING), (None, None), True),
    ("greatest", (FLOAT, FLOAT), (1.0, NAN), NAN),
    ("least", (FLOAT, FLOAT), (INF, NAN), INF),
    ("greatest", (FLOAT, FLOAT), (None, 1.0), 1.0),
    ("greatest", (INT, INT), (None, None), None),
    ("least", (STRING, STRING), ("b", "a"), "a"),
    ("greatest", (BOOL, BOOL), (False, True), True),
    ("greatest", (DEC, INT), (D("1.50"), 1), D("1.50")),
    ("greatest", (BYTES, BYTES), (b"a", b"b"), b"b"),
    ("nullif", (FLOAT, FLOAT), (NAN, NAN), None),
    ("nullif", (INT, INT), (1, 2), 1),
    ("nullif", (INT, INT), (1, None), 1),
    # three values
    ("and", (BOOL, BOOL), (None, False), False),
    ("and", (BOOL, BOOL), (True, None), None),
    ("or", (BOOL, BOOL), (None, True), True),
    ("or", (BOOL, BOOL), (False, None), None),
    ("not", (BOOL,), (None,), None),
    ("not", (BOOL,), (True,), False),
    ("is_null", (FLOAT,), (NAN,), False),
    ("is_null", (FLOAT,), (None,), True),
    ("is_not_null", (NULL,), (None,), False),
    ("in", (INT, INT, INT), (1, 2, 1), True),
    ("in", (INT, INT, INT), (1, 2, 3), False),
    ("in", (INT, INT, INT), (1, 2, None), None),
    ("in", (INT, INT, INT), (1, 1, None), True),
    ("in", (INT, INT, INT), (None, 1, 2), None),
    ("in", (FLOAT, FLOAT, FLOAT), (NAN, 1.0, NAN), True),
    ("in", (FLOAT, FLOAT, FLOAT), (-0.0, 0.0, 1.0), True),
    ("in", (INT, DEC, INT), (1, D("1.00"), 5), True),
    ("coalesce", (INT, INT, INT), (None, None, 3), 3),
    ("coalesce", (INT, INT, INT), (None, None, None), None),
    ("case", (BOOL, INT, BOOL, INT, INT), (None, 1, True, 2, 3), 2),
    ("case", (BOOL, INT, BOOL, INT, INT), (True, None, True, 2, 3), None),
    ("case", (BOOL, INT, BOOL, INT, INT), (False, 1, None, 2, 3), 3),
    ("case", (BOOL, NULL, NULL), (True, None, None), None),
    # whole numbers
    ("round", (FLOAT,), (2.5,), 3.0),
    ("round", (FLOAT,), (-2.5,), -3.0),
    ("round", (FLOAT,), (0.49999999999999994,), 0.0),
    ("round", (FLOAT,), (NAN,), NAN),
    ("round", (FLOAT, INT), (2.345, 2), 2.35),
    ("round", (FLOAT, INT), (1234.5, -2), 1200.0),
    ("round", (FLOAT, INT), (1e300, 300), 1e300),
    ("round", (FLOAT, INT), (1.5, -999), 0.0),
    ("round", (INT, INT), (15, -1), 20),
    ("round", (INT, INT), (-15, -1), -20),
    ("round", (INT, INT), (HIGH, -1), FAIL),
    ("round", (INT, INT), (LOW, -18), -9 * 10**18),
    ("round", (INT, INT), (5 * 10**18, -19), FAIL),
    ("round", (INT, INT), (5 * 10**18 - 1, -19), 0),
    ("round", (INT, INT), (LOW, -20), 0),
    ("round", (INT, INT), (7, 3), 7),
    ("round", (DEC,), (D("2.50"),), D(3)),
    ("round", (DEC, INT), (D("-2.25"), 1), D("-2.30")),
    ("round", (DEC, INT), (D("99999999.95"), 1), D("100000000.00")),
    ("round", (DEC, INT), (D("55.00"), -2), D("100.00")),
    ("round", (DEC, INT), (D("55.00"), -20), D("0.00")),
    ("round", (decimal(38, 1), INT), (D("9" * 37 + ".9"), 0), FAIL),
    ("ceil", (FLOAT,), (-0.5,), 0.0),
    ("floor", (FLOAT,), (-0.5,), -1.0),
    ("trunc", (FLOAT,), (-1.5,), -1.0),
    ("ceil", (decimal(3, 2),), (D("9.01"),), D(10)),
    ("floor", (decimal(38, 38),), (D("-0.5"),), D(-1)),
    ("trunc", (DEC,), (D("-1.99"),), D(-1)),
    ("ceil", (INT,), (HIGH,), HIGH),
    # where functions are not defined
    ("sqrt", (FLOAT,), (-1.0,), FAIL),
    ("sqrt", (FLOAT,), (NAN,), NAN),
    ("ln", (FLOAT,), (0.0,), FAIL),
    ("log10", (FLOAT,), (-1.0,), FAIL),
    ("log10", (INT,), (1000,), 3.0),
    ("power", (FLOAT, FLOAT), (-8.0, 1 / 3), FAIL),
    ("power", (FLOAT, FLOAT), (0.0, -1.0), FAIL),
    ("power", (INT, INT), (2, 10), 1024.0),
    ("power", (FLOAT, FLOAT), (NAN, 0.0), 1.0),
    ("exp", (FLOAT,), (1000.0,), INF),
    ("sin", (FLOAT,), (INF,), FAIL),
    ("acos", (FLOAT,), (1.5,), FAIL),
    ("is_nan", (FLOAT,), (NAN,), True),
    ("is_nan", (FLOAT,), (None,), None),
]


@pytest.mark.parametrize(
    ("name", "types", "args", "want"), ROWS, ids=[f"{r[0]}{r[2]}"[:40] for r in ROWS]
)
def test_corner(name: str, types: tuple[Type, ...], args: tuple[object, ...], want: object) -> None:
    ordinary = tuple(None for _ in types)  # an all-NULL row must not hide or add anything
    values, errors = apply(name, types, [args, ordinary, args])
    expected = None if want is FAIL else want
    assert agree([values[0], values[2]], [expected, expected]), values
    assert errors == (2 if want is FAIL else 0)


# --- only what a row needs may fail

X = Col(0, INT)
INVERSE = call("div", [lit(10), X])


def _zero(x: Expr) -> Expr:
    return call("eq", [x, lit(0)])


LAZY = [
    (call("case", [_zero(X), lit(-1), INVERSE]), [-1, 2, None], 0),
    (call("case", [_zero(X), INVERSE, lit(1)]), [None, 1, 1], 1),
    (call("case", [call("gt", [INVERSE, lit(1)]), lit(1), lit(2)]), [2, 1, 2], 1),
    (call("case", [_zero(X), lit(1), call("gt", [INVERSE, lit(0)]), lit(2), lit(3)]), [1, 2, 3], 0),
    (call("and", [call("ne", [X, lit(0)]), call("gt", [INVERSE, lit(1)])]), [False, True, None], 0),
    (call("and", [call("gt", [INVERSE, lit(1)]), call("ne", [X, lit(0)])]), [False, True, None], 1),
    (call("or", [_zero(X), call("gt", [INVERSE, lit(1)])]), [True, True, None], 0),
    (call("coalesce", [X, INVERSE]), [0, 5, None], 0),
    (call("coalesce", [INVERSE, X]), [0, 2, None], 1),
    (call("in", [lit(1), X, INVERSE]), [None, False, None], 1),
]


@pytest.mark.parametrize(("expr", "want", "errors"), LAZY)
def test_branches_not_taken_do_not_fail(expr: Expr, want: list[object], errors: int) -> None:
    assert every_way(expr, [INT], [(0,), (5,), (None,)]) == (want, errors)


@pytest.mark.parametrize(("expr", "want", "errors"), LAZY)
def test_one_evaluator_over_many_batches(expr: Expr, want: list[object], errors: int) -> None:
    """A batch that failed makes the next ones careful; that must show in nothing, nor stop what
    should go on."""
    run, good, bad = compile_expr(expr), pa.array([5, None]), pa.array([0, 5, None])
    counter = ErrorCounter()
    for _ in range(40):
        assert run([good], 2, counter).to_pylist() == want[1:]
        assert run([bad], 3, counter).to_pylist() == want
    assert counter.count == 40 * errors
    stopping = ErrorCounter("stop")
    if errors:
        with pytest.raises(QueryError, match="division by zero"):
            run([bad], 3, stopping)
    else:
        assert run([bad], 3, stopping).to_pylist() == want


def test_a_failing_row_counts_or_stops() -> None:
    rows = pa.array([0, 1, 0, None])
    errors = ErrorCounter()
    assert compile_expr(INVERSE)([rows], 4, errors).to_pylist() == [None, 10, None, None]
    assert (errors.count, errors.first, errors.by_code) == (
        2,
        "DS701: division by zero",
        {"DS701": 2},
    )
    with pytest.raises(QueryError) as caught:
        compile_expr(INVERSE)([rows], 4, ErrorCounter("stop"))
    assert caught.value.code == "DS701"
    assert "NULLIF" in (caught.value.hint or "")
    assert compile_expr(INVERSE)([rows.slice(1, 1)], 1, ErrorCounter("stop")).to_pylist() == [10]


def test_predicates_answer_without_nulls() -> None:
    for test, want in [
        (call("gt", [X, lit(1)]), [False, True, False]),
        (call("or", [call("is_null", [X]), call("gt", [X, lit(1)])]), [False, True, True]),
        (Lit(None, BOOL), [False, False, False]),
        (lit(True), [True, True, True]),
    ]:
        mask = compile_predicate(test)([pa.array([1, 2, None])], 3, ErrorCounter())
        assert mask.type == pa.bool_()
        assert mask.to_pylist() == want


def test_columns_pass_without_a_copy_and_equal_expressions_are_worked_out_once() -> None:
    data = pa.array([1, 2])
    a, b, c = compile_many([X, INVERSE, Call("div", (lit(10), X), INT)])([data], 2, ErrorCounter())
    assert a is data
    assert b is c


def test_what_can_fail_is_known() -> None:
    x = Col(0, FLOAT)
    assert not can_fail(call("div", [X, lit(3)]))
    assert can_fail(call("div", [lit(3), X]))
    assert can_fail(call("add", [X, lit(3)]))
    assert not can_fail(call("mul", [x, x]))
    assert can_fail(call("add", [x, call("div", [x, x])]))


def test_null_takes_the_type_of_its_neighbours() -> None:
    nothing = Lit(None, NULL)
    cases = [
        ("add", [X, nothing]),
        ("eq", [nothing, nothing]),
        ("lower", [nothing]),
        ("coalesce", [nothing, X]),
    ]
    for name, args in cases:
        values, errors = every_way(call(name, args), [INT], [(1,), (None,)])
        assert values == ([1, None] if name == "coalesce" else [None, None])
        assert errors == 0
    assert every_way(call("coalesce", [nothing, nothing]), [], [(), ()]) == ([None, None], 0)
    assert every_way(call("greatest", columns(NULL, NULL)), [NULL, NULL], [(None, None)]) == (
        [None],
        0,
    )
