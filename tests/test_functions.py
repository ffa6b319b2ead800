"""The registry: names, overloads, implicit casts, result types, constants; and folding of constant
expressions."""

from __future__ import annotations

from decimal import Decimal as D

import pytest

from dsms.operators.expressions import evaluate_constant
from dsms.operators.expressions.compile import _BUILDERS
from dsms.sql.expr import NOW, PYTHON, Call, Col, Expr, Lit
from dsms.sql.fold import fold
from dsms.sql.functions import (
    AGGREGATES,
    FUNCTIONS,
    FunctionError,
    aggregate_names,
    aggregate_params,
    call,
    cast,
    castable,
    common_type,
    function,
    is_aggregate,
    is_scalar,
    resolve,
    resolve_aggregate,
    scalar_names,
)
from dsms.sql.types import BOOL, BYTES, FLOAT, INT, INTERVAL, NULL, STRING, TIMESTAMP, Type, decimal
from tests.scalars import lit

DEC = decimal(10, 2)

TYPED = [
    ("add", (INT, INT), (None, None), INT),
    ("add", (INT, FLOAT), (FLOAT, None), FLOAT),
    ("add", (INT, DEC), (decimal(19, 0), None), decimal(22, 2)),
    ("add", (DEC, decimal(5, 4)), (None, None), decimal(13, 4)),
    ("sub", (decimal(38, 2), decimal(38, 4)), (None, None), decimal(38, 4)),
    ("mul", (DEC, decimal(5, 3)), (None, None), decimal(15, 5)),
    ("mul", (decimal(30, 2), decimal(30, 3)), (None, None), decimal(38, 5)),
    ("div", (DEC, DEC), (FLOAT, FLOAT), FLOAT),
    ("mod", (DEC, decimal(5, 3)), (None, None), decimal(11, 3)),
    ("add", (TIMESTAMP, INTERVAL), (None, None), TIMESTAMP),
    ("sub", (TIMESTAMP, TIMESTAMP), (None, None), INTERVAL),
    ("mul", (INT, INTERVAL), (None, None), INTERVAL),
    ("div", (INTERVAL, INTERVAL), (None, None), FLOAT),
    ("add", (NULL, NULL), (INT, INT), INT),
    ("eq", (INT, FLOAT), (FLOAT, None), BOOL),
    ("eq", (NULL, STRING), (STRING, None), BOOL),
    ("lt", (DEC, decimal(5, 4)), (None, None), BOOL),
    ("in", (INT, INT, FLOAT), (FLOAT, FLOAT, None), BOOL),
    ("concat", (STRING, INT), (None, STRING), STRING),
    ("concat", (BYTES, BYTES), (None, None), BYTES),
    ("case", (BOOL, INT, NULL, FLOAT, NULL), (None, FLOAT, BOOL, None, FLOAT), FLOAT),
    ("coalesce", (INT, DEC), (decimal(21, 2), decimal(21, 2)), decimal(21, 2)),
    ("coalesce", (NULL, NULL), (None, None), NULL),
    ("round", (DEC,), (None,), decimal(9, 0)),
    ("round", (DEC, INT), (None, None), decimal(11, 2)),
    ("ceil", (decimal(38, 0),), (None,), decimal(38, 0)),
    ("sqrt", (INT,), (FLOAT,), FLOAT),
    ("SUBSTRING", (STRING, INT), (None, None), STRING),
    ("year", (TIMESTAMP, STRING), (None, None), INT),
    ("pi", (), (), FLOAT),
]


@pytest.mark.parametrize(("name", "args", "casts", "result"), TYPED, ids=lambda v: str(v)[:24])
def test_resolve(
    name: str, args: tuple[Type, ...], casts: tuple[Type | None, ...], result: Type
) -> None:
    found = resolve(name, args)
    assert (found.casts, found.type) == (casts, result)
    assert found.fn == function(name).name


REFUSED = [
    ("eq", (STRING, INT), "types", "eq(T, T) -> BOOL"),
    ("add", (TIMESTAMP, TIMESTAMP), "types", "add(TIMESTAMP, INTERVAL) -> TIMESTAMP"),
    ("add", (TIMESTAMP, INT), "types", "add(TIMESTAMP, INTERVAL) -> TIMESTAMP"),
    ("and", (BOOL, INT), "types", "and(BOOL, BOOL...) -> BOOL"),
    ("case", (INT, INT, INT), "types", "case(BOOL, T, ..., T) -> T"),
    ("case", (BOOL, INT, STRING), "types", "case(BOOL, T, ..., T) -> T"),
    ("lower", (INT,), "types", "lower(STRING) -> STRING"),
    ("pi", (INT,), "types", "pi() -> FLOAT"),
    ("coalesce", (), "types", "coalesce(T...) -> T"),
    ("frobnicate", (INT,), "unknown", "lower"),
]


@pytest.mark.parametrize(("name", "args", "kind", "candidate"), REFUSED, ids=lambda v: str(v)[:20])
def test_resolve_refuses(name: str, args: tuple[Type, ...], kind: str, candidate: str) -> None:
    with pytest.raises(FunctionError) as caught:
        resolve(name, args)
    assert caught.value.kind == kind
    assert candidate in caught.value.candidates


def test_a_product_with_too_many_decimals_says_so() -> None:
    with pytest.raises(FunctionError, match="40 digits after the point"):
        resolve("mul", (decimal(38, 20), decimal(38, 20)))


def test_common_types() -> None:
    assert common_type(INT, FLOAT) == FLOAT
    assert common_type(NULL, STRING) == STRING
    assert common_type(DEC, decimal(5, 4)) == decimal(12, 4)
    assert common_type(decimal(38, 0), decimal(38, 38)) == decimal(38, 38)
    assert common_type(INT, DEC) == decimal(21, 2)
    assert common_type(INT, STRING) is None
    assert common_type(TIMESTAMP, INTERVAL) is None


def test_castable() -> None:
    assert castable(STRING, TIMESTAMP)
    assert castable(NULL, BYTES)
    assert castable(DEC, decimal(5, 4))
    assert not castable(INT, TIMESTAMP)
    assert not castable(BYTES, INT)
    assert not castable(BOOL, FLOAT)


AGGREGATED = [
    ("sum", (INT,), (), None, INT),
    ("sum", (DEC,), (), None, decimal(38, 2)),
    ("sum", (INTERVAL,), (), None, INTERVAL),
    ("avg", (INT,), (), None, FLOAT),
    ("AVG", (DEC,), (), None, FLOAT),
    ("avg", (INTERVAL,), (), None, INTERVAL),
    ("min", (STRING,), (), None, STRING),
    ("variance", (INT,), (), FLOAT, FLOAT),
    ("median", (DEC,), (), FLOAT, FLOAT),
    ("median", (TIMESTAMP,), (), None, TIMESTAMP),
    ("quantile", (STRING,), (0.5,), None, STRING),
    ("quantile_cont", (INT,), (D("0.9"),), FLOAT, FLOAT),
    ("topk", (INT,), (3,), None, STRING),
    ("last", (BYTES,), (), None, BYTES),
    ("bool_or", (BOOL,), (), None, BOOL),
]


@pytest.mark.parametrize(
    ("name", "args", "params", "to", "result"), AGGREGATED, ids=lambda v: str(v)[:20]
)
def test_resolve_aggregate(
    name: str, args: tuple[Type, ...], params: tuple, to: Type | None, result: Type
) -> None:
    found = resolve_aggregate(name, args, params=params)
    assert (found.casts, found.type) == ((to,), result)
    assert len(found.params) == len(aggregate_params(name))


def test_aggregates_of_their_own_kind() -> None:
    assert resolve_aggregate("count", ()).fn == "count_star"
    assert resolve_aggregate("COUNT", (STRING,), distinct=True).type == INT
    assert resolve_aggregate("arg_max", (STRING, FLOAT)).type == STRING
    assert resolve_aggregate("quantile", (INT,), params=(1,)).params == (1.0,)


@pytest.mark.parametrize(
    ("name", "args", "options", "kind"),
    [
        ("sum", (STRING,), {}, "types"),
        ("sum", (TIMESTAMP,), {}, "types"),
        ("first", (INT,), {"distinct": True}, "distinct"),
        ("quantile", (INT,), {"params": (1.5,)}, "constant"),
        ("quantile", (INT,), {"params": ("x",)}, "constant"),
        ("quantile", (INT,), {}, "constant"),
        ("topk", (INT,), {"params": (0,)}, "constant"),
        ("sum", (INT,), {"params": (1,)}, "constant"),
        ("summ", (INT,), {}, "unknown"),
    ],
)
def test_resolve_aggregate_refuses(
    name: str, args: tuple[Type, ...], options: dict, kind: str
) -> None:
    with pytest.raises(FunctionError) as caught:
        resolve_aggregate(name, args, **options)
    assert caught.value.kind == kind


def test_names() -> None:
    assert is_scalar("Char_Length")
    assert not is_scalar("sum")
    assert is_aggregate("STDDEV_SAMP")
    assert "add" in scalar_names()
    assert "add" not in scalar_names(operators=False)
    assert "count" in aggregate_names()
    assert "mean" in aggregate_names(aliases=True)


def test_everything_listed_is_explained_and_implemented() -> None:
    assert set(FUNCTIONS) == set(_BUILDERS) - {PYTHON, NOW}  # which have no types of their own
    for spec in [*FUNCTIONS.values(), *AGGREGATES]:
        assert spec.doc.endswith((".", "26:03:04.5")), spec.name
        assert all(s.startswith(f"{spec.name}(") for s in spec.signatures())


def test_calls_get_their_casts() -> None:
    x = Col(0, INT)
    assert call("add", [x, lit(0.5)]) == Call("add", (Call("cast", (x,), FLOAT), lit(0.5)), FLOAT)
    assert call("add", [lit(1), Col(0, FLOAT)]).args[0] == lit(1.0)
    assert call("add", [x, Lit(None, NULL)]).args[1] == Lit(None, INT)
    assert cast(x, INT) is x


@pytest.mark.parametrize(
    ("name", "args", "params", "message"),
    [
        ("date_trunc", [lit("dya"), Col(0, TIMESTAMP)], (), "did you mean 'day'"),
        (
            "date_trunc",
            [Col(1, STRING), Col(0, TIMESTAMP)],
            (),
            "argument 1 of date_trunc must be a constant",
        ),
        ("regexp_matches", [Col(0, STRING), lit("(")], (), "no regular expression"),
        ("regexp_replace", [Col(0, STRING), lit("a"), lit("\\1")], (), "can't replace"),
        ("like", [Col(0, STRING), lit("a!")], ("!",), "ends in its escape"),
        ("like", [Col(0, STRING), lit("a!!!")], ("!",), "ends in its escape"),
        ("like", [Col(0, STRING), lit("a")], ("!!",), "one character"),
        ("to_timestamp", [Col(0, INT), lit("day")], (), "there are s, ms, us, ns"),
    ],
)
def test_constants_are_checked(name: str, args: list[Expr], params: tuple, message: str) -> None:
    with pytest.raises(FunctionError, match=message) as caught:
        call(name, args, params)
    assert caught.value.kind == "constant"


def test_a_zone_is_checked() -> None:
    with pytest.raises(FunctionError, match="unknown time zone 'Europe/Berlni'") as caught:
        call("year", [Col(0, TIMESTAMP), lit("Europe/Berlni")])
    assert caught.value.kind == "zone" and "'Europe/Berlin'" in (caught.value.hint or "")


# --- folding

X = Col(0, INT)
B = Col(1, BOOL)
BROKEN = call("div", [lit(1), lit(0)])
YES, NO, UNKNOWN = lit(True), lit(False), Lit(None, BOOL)

FOLDED = [
    (call("add", [lit(1), call("mul", [lit(2), lit(3)])]), lit(7)),
    (call("add", [X, call("mul", [lit(2), lit(3)])]), call("add", [X, lit(6)])),
    (cast(lit("1.5"), decimal(3, 1)), Lit(D("1.5"), decimal(3, 1))),
    (
        call("add", [X, lit(D("0.5"), decimal(2, 1))]),
        call("add", [X, lit(D("0.5"), decimal(2, 1))]),
    ),
    (call("lower", [lit("ABC")]), lit("abc")),
    (BROKEN, BROKEN),
    (call("add", [BROKEN, lit(1)]), call("add", [BROKEN, lit(1)])),
    (cast(lit("x"), INT), cast(lit("x"), INT)),
    (call("and", [B, YES]), B),
    (call("and", [YES, YES]), YES),
    (call("and", [NO, B]), NO),
    (call("and", [B, NO, B]), call("and", [B, NO])),
    (call("and", [UNKNOWN, B]), call("and", [UNKNOWN, B])),
    (call("and", [UNKNOWN, YES]), UNKNOWN),
    (call("or", [NO, B]), B),
    (call("or", [YES, call("eq", [BROKEN, lit(1)])]), YES),
    (call("case", [YES, X, BROKEN]), X),
    (call("case", [NO, BROKEN, UNKNOWN, BROKEN, X]), X),
    (call("case", [B, lit(1), YES, lit(2), BROKEN]), call("case", [B, lit(1), lit(2)])),
    (call("coalesce", [Lit(None, INT), X, lit(1), BROKEN]), call("coalesce", [X, lit(1)])),
    (call("coalesce", [lit(1), BROKEN]), lit(1)),
    (call("coalesce", [BROKEN, lit(1)]), call("coalesce", [BROKEN, lit(1)])),
    (call("coalesce", [Lit(None, INT)]), Lit(None, INT)),
]


@pytest.mark.parametrize(("expr", "want"), FOLDED, ids=lambda e: "")
def test_fold(expr: Expr, want: Expr) -> None:
    found = fold(expr, evaluate_constant)
    assert found == want
    assert found.type == expr.type
