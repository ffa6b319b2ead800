"""Joins on one of several equalities find each pair once, as often as its rows are there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.plan.either import MOST, ways
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.types import BOOL, INT
from tests.effort import examples
from tests.nested import follows_the_definition, histories
from tests.oracle import plans as p

STREAMS = (
    "CREATE STREAM l (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;"
    "CREATE STREAM r (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t"
)
CONDITIONS = (
    "l.k = r.k OR l.v = r.w",
    "l.k = r.k OR l.k = r.w OR l.v = r.k AND r.w > 0",
    "(l.k = r.k AND l.v = r.w OR l.k = r.w AND l.v < r.k) AND l.k <= r.k",
)
WINDOWS = (
    {"l": "RANGE 5 us", "r": "RANGE 8 us"},
    {"l": "RANGE UNBOUNDED", "r": "RANGE UNBOUNDED"},
    {"l": "ROWS 3", "r": "RANGE 4 us"},
)


@pytest.mark.parametrize("slide", [0, 4])
@settings(max_examples=examples(100))
@given(
    condition=st.sampled_from(CONDITIONS), windows=st.sampled_from(WINDOWS), history=histories("lr")
)
def test_it_finds_what_the_definition_says(
    slide: int, condition: str, windows: dict[str, str], history: Any
) -> None:
    if slide and "ROWS" in windows["l"]:
        windows = WINDOWS[0]
    query = f"SELECT l.k, l.v, r.k AS j, r.w FROM l{{l}}, r{{r}} WHERE {condition}"
    follows_the_definition(STREAMS, query, windows, slide, history)


def _rows(push: Any) -> list[dict[str, Any]]:
    return [] if push.data is None else push.data.to_pylist()


def test_large_steps_are_those_of_nested_loops() -> None:
    """Beside a twin whose condition adds zero, which no hash can serve."""
    counts = []
    for zero in ("", " + 0"):
        engine = Engine()
        engine.execute(STREAMS)
        condition = f"l.k{zero} = r.k OR l.v{zero} = r.w"
        engine.execute(
            "CREATE QUERY q AS SELECT l.k, l.v, r.k AS j, r.w"
            f" FROM l [RANGE 700 us], r [RANGE 900 us] WHERE {condition}"
        )
        pushes = engine.subscribe("q")
        for name, step in (("l", 7), ("r", 11)):
            engine.ingest(name, [(i * step % 53, i * step % 31, i) for i in range(1500)])
        for name in "lr":
            engine.heartbeat(name, 1500)
        told = [tuple(row.values()) for push in pushes.take() for row in _rows(push)]
        counts.append(told)
    assert counts[0] == counts[1]
    assert len(counts[0]) > 10_000


S, T = p.stream("s", a=INT, b=INT), p.stream("t", a=INT, b=INT)
MINE, THEIRS = (Col(0, INT), Col(1, INT)), (Col(2, INT), Col(3, INT))


def either(*operands: Expr) -> lp.Join:
    return p.join(S, T, residual=Call("or", operands, BOOL))


def equal(a: Expr, b: Expr) -> Call:
    return Call("eq", (a, b), BOOL)


def test_ways_leave_out_what_those_before_find() -> None:
    first, second = equal(MINE[0], THEIRS[0]), equal(THEIRS[1], MINE[1])
    one, other = ways(either(first, second))
    assert (one.keys, one.residual) == (((MINE[0], Col(0, INT)),), None)
    assert other.keys == ((MINE[1], Col(1, INT)),)
    known = Call("coalesce", (first, Lit(False, BOOL)), BOOL)
    assert other.residual == Call("not", (known,), BOOL)


@pytest.mark.parametrize(
    "node",
    [
        either(equal(MINE[0], THEIRS[0]), Call("lt", (MINE[1], THEIRS[1]), BOOL)),
        either(
            equal(MINE[0], THEIRS[0]),
            equal(MINE[1], Call("div", (THEIRS[1], THEIRS[0]), INT)),
        ),
        either(*[equal(MINE[0], THEIRS[0])] * (MOST + 1)),
        p.join(S, T, "a", residual=Call("or", (equal(MINE[0], THEIRS[1]),) * 2, BOOL)),
        p.join(S, T, residual=equal(MINE[0], THEIRS[1])),
    ],
    ids=["no equality", "can fail", "many", "has keys", "no choice"],
)
def test_no_ways(node: lp.Join) -> None:
    assert ways(node) == ()
