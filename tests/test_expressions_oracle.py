"""Every function and operator over every combination of types it takes, on random values, against
the oracle."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from itertools import product
from uuid import UUID as UUID_

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsms.sql.expr import Col, Expr, Lit
from dsms.sql.functions import (
    FUNCTIONS,
    GROUPS,
    Function,
    FunctionError,
    call,
    cast,
    castable,
    resolve,
)
from dsms.sql.functions.constants import unit_name
from dsms.sql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    MAX_INSTANT,
    MIN_INSTANT,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    Kind,
    Type,
    decimal,
    item_of,
    list_of,
)
from tests.effort import examples, thinned
from tests.oracle.lists import packed
from tests.oracle.scalar import evaluate
from tests.scalars import DEC, WIDE, every_way, same

QUICK = settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
STRUCTS = {f.name for f in GROUPS["structs"]}  # typed by the binder: tests/test_structs.py
LOW, HIGH = -(2**63), 2**63 - 1
DAY = 86_400_000_000
PLAIN = (BOOL, INT, FLOAT, DEC, WIDE, STRING, BYTES, TIMESTAMP, INTERVAL, DATE, TIME, UUID)
LISTS = tuple(map(list_of, PLAIN))
TYPES = (*PLAIN, *LISTS)
CLOSE = {
    "sqrt",
    "exp",
    "ln",
    "log10",
    "log2",
    "power",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "haversine",
}
CONSTANTS = {
    "unit": ["second", "Hours", "day", "week", "month", "quarter", "year", "millisecond"],
    "length_unit": ["microsecond", "minutes", "week"],
    "epoch_unit": ["s", "ms", "us", "ns"],
    "zone": [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "America/Sao_Paulo",
        "Asia/Kolkata",
        "+05:30",
        "-1130",
    ],
    "regex": ["a", "^a+$", "(b|é)", "x*"],
    "path": ["$", "$.a", "$[0].b"],
    "written": ["%Y-%m-%d", "%A %a %j %I%p|%G-%V", "%%", "", "%F %T.%f %z", "%B %b %d %y %u%w"],
    "read": ["%Y-%m-%d %H:%M", "%y", "%Y", "%j%Y"],
    "text": ["", "-", "<\\1>", "zz"],
}

INTS = st.one_of(
    st.integers(-12, 12),
    st.sampled_from([LOW, LOW + 1, HIGH, 10**18, -(10**9)]),
    st.integers(LOW, HIGH),
)
FLOATS = st.one_of(
    st.sampled_from(
        [
            0.0,
            -0.0,
            0.5,
            -1.5,
            2.5,
            math.nan,
            math.inf,
            -math.inf,
            1e308,
            5e-324,
            2.0**53,
            -(2.0**63),
            1e18,
        ]
    ),
    st.integers(-50, 50).map(lambda i: i / 4),
    st.floats(),
)
INSTANTS = st.one_of(
    st.integers(-(10**16), 4 * 10**15),
    st.sampled_from(
        [0, -1, MIN_INSTANT, MAX_INSTANT, 1616893200000000, 1635642000000000, 1540695600000000 - 1]
    ),
    st.integers(MIN_INSTANT, MAX_INSTANT),
)
IDS = st.one_of(st.sampled_from([0, 2**128 - 1]), st.integers(0, 2**128 - 1)).map(
    lambda n: str(UUID_(int=n))
)
TEXTS = st.one_of(
    st.text("ab,%_ é€😀", max_size=6),
    st.sampled_from(["", "a", "aab", "ab,b,", "  a ", "414a", "zz"]),
)


def _decimals(type_: Type) -> st.SearchStrategy[Decimal]:
    top = 10**type_.precision - 1
    numbers = st.one_of(
        st.integers(-500, 500), st.integers(-top, top), st.sampled_from([top, -top, 0])
    )
    return numbers.map(lambda n: Decimal(f"{n}e{-type_.scale}"))


def values(type_: Type) -> st.SearchStrategy[object]:
    known: dict[Kind, st.SearchStrategy[object]] = {
        Kind.BOOL: st.booleans(),
        Kind.INT: INTS,
        Kind.FLOAT: FLOATS,
        Kind.STRING: TEXTS,
        Kind.BYTES: st.binary(max_size=4),
        Kind.TIMESTAMP: INSTANTS,
        Kind.INTERVAL: INTS,
        Kind.DATE: INSTANTS.map(lambda t: t // DAY * DAY),
        Kind.TIME: st.one_of(st.sampled_from([0, DAY - 1]), st.integers(0, DAY - 1)),
        Kind.UUID: IDS,
    }
    if type_.kind is Kind.LIST:
        chosen = st.lists(values(item_of(type_)), max_size=4).map(lambda v: packed(v, type_))
    else:
        chosen = _decimals(type_) if type_.kind is Kind.DECIMAL else known[type_.kind]
    return st.one_of(st.none(), chosen, chosen, chosen)


@cache
def signatures(name: str) -> list[tuple[Type, ...]]:
    """Up to 14 argument lists of up to three types (CASE: up to five) that the function takes."""
    found = []
    lists = [(BOOL, t, BOOL, t, t) for t in TYPES] if name == "case" else _type_lists()
    for types in lists:
        try:
            resolve(name, types)
        except FunctionError:
            continue
        found.append(types)
    step = max(1, len(found) // 14)
    return found[::step] + [f for f in found if len(set(f)) == 1 and f not in found[::step]]


def _type_lists() -> list[tuple[Type, ...]]:
    plain = [types for n in range(4) for types in product(PLAIN, repeat=n)]
    mixed = [types for n in (1, 2) for types in product(TYPES, repeat=n) if {*types} & {*LISTS}]
    return plain + mixed


def _arguments(draw: st.DrawFn, spec: Function, types: Sequence[Type]) -> list[Expr]:
    """Columns, but constants where the function wants them."""
    args: list[Expr] = []
    for i, type_ in enumerate(types):
        what = spec.constants.get(i)
        if spec.name.startswith("regexp_extract") and i == 2:
            args.append(Lit(draw(st.integers(0, 1)), INT))  # a group
            continue
        args.append(Lit(draw(st.sampled_from(CONSTANTS[what])), STRING) if what else Col(i, type_))
    return args


def _agrees(name: str, got: object, want: object) -> bool:
    if name in CLOSE and isinstance(got, float) and isinstance(want, float):
        return same(got, want) or math.isclose(got, want, rel_tol=1e-14)
    return same(got, want)


def _check(
    name: str, expr: Expr, types: Sequence[Type], rows: Sequence[tuple[object, ...]]
) -> None:
    found, _ = every_way(expr, types, rows)
    for row, value in zip(rows, found, strict=True):
        want = evaluate(expr, row)
        assert _agrees(name, value, want), f"{name}{row}: {value!r}, the oracle says {want!r}"


def _sensible(name: str, args: Sequence[Expr], types: Sequence[Type]) -> bool:
    """Lengths are cut at units up to a week only."""
    if name != "date_trunc" or types[1] != INTERVAL:
        return True
    return isinstance(args[0], Lit) and unit_name(str(args[0].value)) in (
        "second",
        "hour",
        "day",
        "week",
        "millisecond",
    )


@pytest.mark.parametrize(
    "name", [n for n in FUNCTIONS if n not in ("cast", "try_cast", "haversine", *STRUCTS)]
)
@QUICK
@given(data=st.data())
def test_every_function(name: str, data: st.DataObject) -> None:
    spec = FUNCTIONS[name]
    types = data.draw(st.sampled_from(signatures(name)))
    args = _arguments(data.draw, spec, types)
    params = (
        (data.draw(st.sampled_from(["%", "a", "\\"])),)
        if name == "like" and data.draw(st.booleans())
        else ()
    )
    if not _sensible(name, args, types):
        return
    rows = data.draw(st.lists(st.tuples(*(values(t) for t in types)), min_size=1, max_size=6))
    try:
        expr = call(name, args, params)
    except FunctionError as error:
        assert error.kind == "constant" or "digits after the point" in str(error)
        return
    _check(name, expr, types, rows)


# --- casts

TARGETS = (*PLAIN, decimal(3, 3), *LISTS)
SPELLED = """
1|-5|+7|1.5|-0.005|.5|5.|1e3|1E-2|1e400|nan|-Inf|infinity|0x10|1_0|٣|true|YES|off|T|0|9223372036854775807
9223372036854775808|00000000000000000000012|-9223372036854775808|99999999.995|12345678.90|2.675
2020-02-29|2021-02-29|2020-02-29 10:30|2020-02-29T10:30:59.1234567Z|2020-02-29 10:30:59 +05:30|0001-01-01
0000-01-01|0001-01-01 00:00+01|9999-12-31 23:59:59.999999|2020-13-01|2020-01-01 24:00|2020-01-01 10:60
2020-01-01 10:00:60|2020-01-01 10:00-0530|2020-01-01 10:00+24|2020-1-1|2020-01-01 10|1 h 30 min|-2 days 3 hours
12:30|0:00:00.1234567|23:59:59,5|24:00:00|12:30:60|12:30Z|2020-02-30|20200229|2020-02-29Z|0001-1-1|9999-12-31
5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f405162|5A0E3B1C0F2D4C6E9B7A1D2E3F405162|{5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f405162}|{5a0e3b1c
5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f40516|5a0e3b1c0f2d-4c6e-9b7a-1d2e3f405162|-5a0e3b1c0f2d4c6e9b7a1d2e3f405162
1.5 us|2.5us|26:03:04.5|-00:00:01|1:60|10|10 years|5 MINUTES|1.1234567 s|0.5s -0.5 s|99999999999999 h|1d2h
"""  # noqa: E501
WRITTEN = st.one_of(
    st.sampled_from([text for line in SPELLED.strip().split("\n") for text in line.split("|")]),
    st.from_regex(r"[+-]?[0-9]{1,3}(\.[0-9]{1,3})?", fullmatch=True),
    st.from_regex(
        r"20[0-9]{2}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,7})?",
        fullmatch=True,
    ),
    TEXTS,
)
JSON = st.one_of(
    st.sampled_from(
        [
            "[]", " [ ] ", "[null]", "[1]", "[1,2.50 , -3e2]", "[1e400]", "[01]", "[1,]", "[1 2]",
            "[[1]]", '[{"a": 1}]', "[NaN]", '["NaN", "-Infinity", 0.5, -0.0]', '["nan"]',
            "[true, false]",
            "[TRUE]", '["a", "b\\"c", "\\u00e9\\n", ""]', '["\\ud800"]', '["\\ud83d\\ude00"]',
            '["1", "2.25"]', '["6f", "FF"]', '["2020-01-01", "1 h"]', '["2020-01-01 00:00:00"]',
            '["26:03:04.5", "-00:00:01"]', "[99999999999999999999]", "null", "1", "{}", "", "[",
            '["a]', "[-9223372036854775808]", "[12345678.99]", "[0.001]",
        ]
    ),
    st.lists(
        st.one_of(st.none(), st.booleans(), INTS, st.floats(-1e300, 1e300), TEXTS), max_size=4
    ).map(json.dumps),
)  # a table  # fmt: skip


@thinned(2)
@pytest.mark.parametrize(
    ("source", "to"),
    [(s, t) for s in TYPES for t in TARGETS if castable(s, t)],
    ids=lambda t: str(t).replace(",", "."),
)
@QUICK
@given(data=st.data())
def test_every_cast(source: Type, to: Type, data: st.DataObject) -> None:
    chosen = (
        st.one_of(st.none(), JSON)
        if source == STRING and to.kind is Kind.LIST
        else st.one_of(st.none(), WRITTEN, WRITTEN.map(lambda t: f" {t}\n"))
        if source == STRING
        else values(source)
    )
    rows = data.draw(st.lists(st.tuples(chosen), min_size=1, max_size=6))
    for fn in ("cast", "try_cast"):
        _check(f"{fn} to {to} ", cast(Col(0, source), to, fn), [source], rows)
