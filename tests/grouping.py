"""Histories for GROUP BY, and its answers by recomputing every group from the log at every
instant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from dsms.aggregates.cards import CARDS
from dsms.errors import QueryError
from dsms.operators.group import GroupByOp
from dsms.operators.pieces import go_on
from dsms.plan.physical import State
from dsms.sql.expr import AggCall, Col, Expr
from dsms.sql.functions.aggregate import resolve_aggregate
from dsms.sql.logical import GroupBy, Values
from dsms.sql.types import (
    ALWAYS,
    BOOL,
    FLOAT,
    FOREVER,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Field,
    Type,
    decimal,
)
from dsms.state.batch import Batch
from tests.oracle.aggregates import SumOverflow, aggregate
from tests.oracle.values import canons

DEC = decimal(10, 2)
WIDE = decimal(30, 3)
SCHEMA = tuple(
    Field(n, t)
    for n, t in (
        ("k", INT),
        ("s", STRING),
        ("i", INT),
        ("f", FLOAT),
        ("d", DEC),
        ("w", WIDE),
        ("t", TIMESTAMP),
        ("p", INTERVAL),
        ("b", BOOL),
        ("kf", FLOAT),
        ("y", FLOAT),
    )
)
COL = {f.name: Col(i, f.type, f.name) for i, f in enumerate(SCHEMA)}
FLOATS = [0.0, -0.0, 1.5, -1.5, 0.1, 0.2, 0.3, 1e16, -1e16, 1.0, 1e308, -1e308, 5e-324, -5e-324,
          math.inf, -math.inf,
          math.nan, 3e-310]  # a long list  # fmt: skip
VALUES: dict[str, st.SearchStrategy] = {
    "k": st.integers(0, 2),
    "s": st.sampled_from(["", "a", "b", "ab", "é", "z" * 9]),
    "i": st.integers(-5, 5) | st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]),
    "f": st.sampled_from(FLOATS) | st.floats(-10, 10),
    "d": st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2)),
    "w": st.sampled_from(
        [Decimal(10**26), Decimal(-(10**26)), Decimal("0.001"), Decimal("-7.125"), Decimal(0)]
    ),
    "t": st.integers(-3, 9),
    "p": st.integers(-3, 9) | st.sampled_from([2**61, -(2**61) + 1]),
    "b": st.booleans(),
    "kf": st.sampled_from([0.0, -0.0, math.nan, 1.0]),
    "y": st.integers(-3, 3).map(float) | st.floats(-1e3, 1e3) | st.sampled_from([1e300, 5e-324]),
}


@dataclass(frozen=True)
class Logged:
    """A row: alive over [ts, death); `exp` is what the input foretells, `ids` its two arrival
    numbers."""

    ts: int
    exp: int
    death: int
    ids: tuple[int, int]
    values: tuple


def nullable(name: str) -> st.SearchStrategy:
    return st.none() | VALUES[name] if name != "k" else VALUES[name] | st.none()


@st.composite
def histories(draw, pattern: str, names: Sequence[str], size: int = 24) -> list[Logged]:
    """Rows of an input of that pattern; columns not in `names` are NULL."""
    # tables have rows from ALWAYS on
    starts = [0, 0, -7] if pattern in ("wks", "wk") else [ALWAYS, 0, 0, -7]
    now, out = draw(st.sampled_from(starts)), []
    for n in range(draw(st.integers(0, size))):
        now = max(now, -7) + draw(st.sampled_from([0, 0, 1, 2, 7])) if n else now
        row = tuple(draw(nullable(f.name)) if f.name in names else None for f in SCHEMA)
        start = max(now, -7)
        match pattern:
            case "wks":
                exp = death = start + 6
            case "wk":
                exp = death = start + draw(st.integers(1, 20))
            case "str":
                exp = (
                    draw(st.sampled_from([start + 3, start + 9, FOREVER]))
                    if now > ALWAYS
                    else FOREVER
                )
                death = min(exp, draw(st.sampled_from([start + 1, start + 4, FOREVER])))
            case "nt":
                exp, death = FOREVER, start + draw(st.sampled_from([1, 3, 9]))
            case _:
                exp = death = FOREVER
        out.append(Logged(now, exp, death, (draw(st.integers(0, 3)), n), row))
    return out


def expected(node: GroupBy, log: list[Logged], until: int) -> list[tuple]:
    """(ts, sign, ids, values) of every deletion and insertion up to `until`."""
    out: list[tuple] = []
    reported: dict[tuple, tuple[tuple, tuple]] = {}  # key -> (ids, values)
    instants = {r.ts for r in log} | {r.death for r in log if r.death <= until} | {ALWAYS}
    for now in sorted(instants):
        groups: dict[tuple, list[Logged]] = {} if node.keys else {(): []}
        for r in sorted(
            (r for r in log if r.ts <= now < r.death), key=lambda r: (r.ts, r.ids[::-1])
        ):
            groups.setdefault(canons(tuple(r.values[k.index] for k in node.keys)), []).append(r)
        fresh = {}
        for key, rows in groups.items():
            values = [r.values for r in rows]
            shown = tuple(values[0][k.index] for k in node.keys) if node.keys else ()
            fresh[key] = (
                rows[0].ids if rows else (-1, -1),
                shown + tuple(aggregate(c, values) for c in node.aggs),
            )
        gone = {
            k: v
            for k, v in reported.items()
            if k not in fresh or canons(fresh[k][1]) != canons(v[1])
        }
        come = {
            k: v
            for k, v in fresh.items()
            if k not in reported or canons(reported[k][1]) != canons(v[1])
        }
        out += sorted(((now, -1, *v) for v in gone.values()), key=lambda r: r[2][::-1])
        out += sorted(((now, 1, *v) for v in come.values()), key=lambda r: r[2][::-1])
        reported = {**{k: v for k, v in reported.items() if k not in gone}, **come}
    return out


def events(log: list[Logged], pattern: str, until: int) -> list[tuple[int, int, Logged]]:
    """(instant, sign, row) as the input edge carries them."""
    told = [(r.ts, 1, r) for r in log]
    if pattern in ("str", "nt"):
        told += [(r.death, -1, r) for r in log if r.death < r.exp and r.death <= until]
    return sorted(told, key=lambda e: e[:2])


def batch_of(rows: list[tuple[int, int, Logged]], signed: bool, mortal: bool) -> Batch:
    cols = tuple(
        pa.array([r.values[i] for _, _, r in rows], f.type.arrow) for i, f in enumerate(SCHEMA)
    )
    ids = tuple(np.array([r.ids[k] for _, _, r in rows], np.int64) for k in range(2))
    exp = np.array([r.exp for _, _, r in rows], np.int64) if mortal else None
    sign = np.array([s for _, s, _ in rows], np.int8) if signed else None
    return Batch(np.array([t for t, _, _ in rows], np.int64), exp, sign, ids, cols)


def node_of(keys: Sequence[Expr], aggs: Sequence[AggCall]) -> GroupBy:
    schema = (*(Field("key", k.type) for k in keys), *(Field(a.fn, a.type) for a in aggs))
    return GroupBy(Values((), SCHEMA), tuple(keys), tuple(aggs), schema)


def getter(expr: Expr):
    assert isinstance(expr, Col)
    return lambda cols, n: cols[expr.index]


def operator(node: GroupBy, state: State, strict: bool, eager: bool = False) -> GroupByOp:
    return GroupByOp(
        node,
        2,
        state,
        strict,
        [getter(k) for k in node.keys],
        [[getter(a) for a in c.args] for c in node.aggs],
        [None if c.filter is None else getter(c.filter) for c in node.aggs],
        (1, 0),
        eager,
    )


def steps(
    told: list[tuple[int, int, Logged]], cuts: list[int], until: int
) -> list[tuple[list, int]]:
    """The events cut after the instants `cuts`."""
    out, start = [], 0
    for cut in [*sorted(c for c in cuts if c < until), until]:
        stop = start
        while stop < len(told) and told[stop][0] <= cut:
            stop += 1
        out.append((told[start:stop], cut))
        start = stop
    return out


def rows_of(batch: Batch) -> list[tuple]:
    cols = [c.to_pylist() for c in batch.cols]
    signs = batch.signs().tolist()
    ids = [i.tolist() for i in batch.ids]
    return [
        (t, s, tuple(i[n] for i in ids), tuple(c[n] for c in cols))
        for n, (t, s) in enumerate(zip(batch.ts.tolist(), signs, strict=True))
    ]


def run(
    op: GroupByOp, told: list[tuple[int, int, Logged]], cuts: list[int], until: int, mortal: bool
) -> list[tuple]:
    out = []
    for rows, upto in steps(told, cuts, until):
        for batch, reach in op.pieces([batch_of(rows, op.strict, mortal)], upto, go_on):
            out += rows_of(batch)
            types = [f.type.arrow for f in op.node.schema]
            assert [c.type for c in batch.cols] == types, (batch.cols, types)
            assert all(at <= reach for at in batch.ts.tolist())
            if op.failure is not None:
                assert reach == op.failure[1] - 1
    return out


def same(rows: list[tuple]) -> list[tuple]:
    """With values that compare as SQL compares."""
    return [(*r[:3], canons(r[3])) for r in rows]


def exact(rows: list[tuple]) -> list[str]:
    """With values bit for bit."""
    return [repr(r) for r in rows]


STATES: dict[str, list[State]] = {
    "wks": [State("fifo"), State("calendar", 2), State("list")],
    "wk": [State("calendar"), State("list")],
    "str": [State("calendar"), State("list")],
    "nt": [State("hash")],
    "mon": [State("grow"), State("list")],
}


def type_of(fn: str, arg: Type | None) -> Type:
    """The result type, as `dsms.sql.functions` has it."""
    params = (0.5,) if fn.startswith("quantile") else ()
    two = CARDS[fn].forms == ("code", "word") or CARDS[fn].family == "pairs"
    args = () if arg is None else (arg, arg if arg == FLOAT else INT) if two else (arg,)
    return resolve_aggregate(fn, args, params=params).type


def check(
    node: GroupBy, pattern: str, log: list[Logged], cuts: list[int], until: int = 200
) -> None:
    """All structures, cut and uncut, answer the same, and what recomputation answers."""
    mortal = pattern not in ("nt", "mon")
    try:
        want = same(expected(node, log, until))
    except SumOverflow:
        want = None
    told = events(log, pattern, until)
    answers: list[list[tuple]] = []
    for state in STATES[pattern]:
        for eager in (False, True) if state.kind == "list" else (False,):
            for cut in ([], cuts):
                op = operator(node, state, pattern in ("str", "nt"), eager)
                if want is None:
                    with pytest.raises(QueryError, match="SUM"):
                        run(op, told, cut, until, mortal)
                    continue
                answers.append(run(op, told, cut, until, mortal))
                assert same(answers[-1]) == want, (state, cut)
                assert exact(answers[-1]) == exact(answers[0])


def call(
    fn: str, *args: str, distinct: bool = False, filter_: str | None = None, params: tuple = ()
) -> AggCall:
    exprs = tuple(COL[a] for a in args)
    if params:
        type_ = resolve_aggregate(fn, [e.type for e in exprs], params=params).type
    else:
        type_ = type_of(fn, exprs[0].type if exprs else None)
    return AggCall(fn, exprs, type_, distinct, COL[filter_] if filter_ else None, params, fn)


def in_order(found: AggCall, **keys: str) -> AggCall:
    """The call with ORDER BY: how each column goes."""
    columns = tuple(COL[name] for name in keys)
    return replace(found, args=(*found.args, *columns), params=(*found.params, *keys.values()))
