"""Every function in every place of a plan, and every aggregate, over odd values: run once and by
the oracle."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsms.aggregates.cards import CARDS
from dsms.aggregates.cards.python import PYTHON_AGGREGATE
from dsms.errors import QueryError
from dsms.oneshot.dialect import DUCKDB, SPARK
from dsms.oneshot.run import OneShot
from dsms.oneshot.scalars import exact
from dsms.operators.expressions import ErrorCounter, can_fail, compile_expr
from dsms.sql import logical as lp
from dsms.sql.catalog import TableDef
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit, rewrite, shift
from dsms.sql.functions import AGGREGATES, FUNCTIONS, FunctionError, call, resolve_aggregate
from dsms.sql.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Field,
    Type,
    decimal,
)
from tests.effort import examples, thinned
from tests.oneshot_runs import batch, run, values
from tests.oracle import Change, Oracle, Row
from tests.oracle import plans as p
from tests.oracle.aggregates import SumOverflow
from tests.oracle.values import canons
from tests.scalars import DEC, WIDE
from tests.test_expressions_oracle import CLOSE, STRUCTS, _arguments, _sensible, signatures
from tests.test_expressions_oracle import values as odd_values

QUICK = settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
CERTAIN = {"and", "or", "not", "is_null", "is_not_null", "eq", "ne", "lt", "le", "gt", "ge", "in",
           "case", "coalesce",
           "nullif", "distinct_from", "not_distinct_from"}  # a long list  # fmt: skip
LEFT, RIGHT = "s", "t"
ADHOC = OneShot()


def agrees(plan: lp.Node, rows: dict[str, list[Row]], shown: object) -> None:
    """The plan run once answers as the oracle does; the relation n has the rows of t."""
    output = p.output(plan, "rstream")
    tables = {"n": [Change(r.ts, "insert", r.values, r.arrival) for r in rows[RIGHT]]}
    want = [canons(f.values) for f in Oracle(output, rows, tables).answer(10)]
    got = list(map(canons, values(run(output, rows, tables, 10))))
    assert Counter(got) == Counter(want), f"{shown}: {got}, the oracle says {want}"
    if isinstance(plan, lp.Sort):
        assert got == want, f"order, {shown}: {got}, the oracle says {want}"


def places(expr: Expr, left: lp.Node, right: lp.Node) -> dict[str, lp.Node]:
    """Plans in which the expression over the columns of either input stands in all places there
    are."""
    n = len(left.schema)
    other, name = shift(expr, n), Field("e", expr.type)
    both = left.schema + right.schema
    differ = Call("distinct_from", (expr, other), BOOL)
    here = Call("is_not_null", (expr,), BOOL)
    same = tuple(Col(i, f.type) for i, f in enumerate(left.schema))
    shown = lp.Project(left, (*same, expr), (*left.schema, name))
    twin = lp.Project(right, (*same, expr), (*right.schema, name))
    alone, alone2 = lp.Project(left, (expr,), (name,)), lp.Project(right, (expr,), (name,))
    count = AggCall("count_star", (), INT, filter=here)
    found: dict[str, lp.Node] = {
        "project": shown,
        "where": lp.Select(left, expr if expr.type == BOOL else here, left.schema),
        "where above a join": lp.Select(p.join(left, right, "c0"), differ, both),
        "project above a join": lp.Project(p.join(left, right, "c0"), (expr, other), (name, name)),
        "group": lp.GroupBy(left, (expr,), (count,), (name, Field("n", INT))),
        "aggregate": lp.GroupBy(
            left,
            (),
            (AggCall("count", (expr,), INT, True), count),
            (Field("d", INT), Field("n", INT)),
        ),
        "distinct": lp.Distinct(alone, (name,)),
        "except all": lp.SetOp("except", True, alone, alone2, (name,)),
        "intersect": lp.SetOp("intersect", False, alone, alone2, (name,)),
        "union": lp.Distinct(lp.Union((alone, alone2), (name,)), (name,)),
        "sort": lp.Sort(shown, ((expr, True, True),), 3, 0, shown.schema),
        "joined again": p.join(shown, twin, "e"),
        "not in": lp.SemiJoin(left, right, True, ((expr, expr),), None, True, left.schema),
        "not in with more": lp.SemiJoin(
            left, right, True, ((expr, expr),), differ, True, left.schema
        ),
    }
    for kind in ("inner", "left", "right", "full"):
        found[f"{kind} key"] = lp.Join(left, right, kind, ((expr, expr),), None, both)
        found[f"{kind} condition"] = lp.Join(left, right, kind, (), differ, both)
    versions = lp.TableScan(TableDef("n", right.schema, (), False), right.schema, "n", 1)
    for kind in ("inner", "left"):
        found[f"{kind} key as of"] = lp.JoinNRR(left, versions, kind, ((expr, expr),), None, both)
        found[f"{kind} condition as of"] = lp.JoinNRR(left, versions, kind, (), differ, both)
    for anti in (False, True):
        found[f"exists key {anti}"] = lp.SemiJoin(
            left, right, anti, ((expr, expr),), None, False, left.schema
        )
        found[f"exists condition {anti}"] = lp.SemiJoin(
            left, right, anti, (), differ, False, left.schema
        )
    return found


@thinned(2)
@pytest.mark.parametrize(
    "name", [n for n in FUNCTIONS if n not in ("cast", "try_cast", *CLOSE, *STRUCTS)]
)
@QUICK
@given(data=st.data())
def test_every_function_in_every_place(name: str, data: st.DataObject) -> None:
    spec = FUNCTIONS[name]
    types = data.draw(st.sampled_from(signatures(name)))
    args = _arguments(data.draw, spec, types)
    if not types or not _sensible(name, args, types):
        return
    try:
        expr = call(name, args)
    except FunctionError:
        return
    schema = {f"c{i}": t for i, t in enumerate(types)}
    tuples = st.lists(st.tuples(*(odd_values(t) for t in types)), min_size=0, max_size=4)
    rows = {s: [Row(k % 3, k, v) for k, v in enumerate(data.draw(tuples))] for s in (LEFT, RIGHT)}
    for part in rows.values():
        part.sort(key=lambda r: (r.ts, r.arrival))
    left, right = (p.window(p.stream(s, **schema), "time", 100) for s in (LEFT, RIGHT))
    right = lp.Window(
        lp.StreamScan(right.child.stream, right.schema, RIGHT, 1), right.spec, right.schema
    )
    every = places(expr, left, right)
    for place in data.draw(st.permutations(sorted(every)))[:8]:
        agrees(every[place], rows, (place, name, expr, rows))


# ---------------------------------------------------------------- what is left to SQL


@pytest.mark.parametrize("name", sorted(CERTAIN))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_sql_evaluates_is_what_we_would(name: str, data: st.DataObject) -> None:
    types = data.draw(st.sampled_from(signatures(name)))
    expr = call(name, _arguments(data.draw, FUNCTIONS[name], types))
    rows = data.draw(st.lists(st.tuples(*(odd_values(t) for t in types)), min_size=1, max_size=8))
    for k in data.draw(st.sets(st.integers(0, len(types) - 1), max_size=len(types) - 1)):
        value = Lit(rows[0][k], types[k])
        expr = rewrite(expr, lambda c, k=k, value=value: value if c.index == k else c)  # type: ignore[misc]
    text = exact(expr, lambda i: f"c{i}", DUCKDB)
    if text is None:
        return
    table = pa.table(
        {f"c{i}": pa.array([r[i] for r in rows], t.arrow) for i, t in enumerate(types)}
    )
    want = compile_expr(expr)(
        list(table.combine_chunks().to_batches()[0].columns), len(rows), ErrorCounter("stop")
    )
    found: list[object] = []
    name_ = "v_" + "_".join(
        str(t).replace("(", "_").replace(",", "_").replace(")", "") for t in types
    )
    ADHOC.sql(
        f"SELECT {text} AS x FROM {name_}",
        {name_: table},
        lambda rows: found.extend(rows.column(0).to_pylist()),
        None,
    )
    assert canons(tuple(found)) == canons(tuple(want.to_pylist())), (text, rows)


def test_nothing_that_may_fail_is_left_to_sql():
    for name, spec in FUNCTIONS.items():
        for types in () if name == "cast" else signatures(name):
            args: list[Expr] = [
                Lit("a", STRING) if i in spec.constants else Col(i, t) for i, t in enumerate(types)
            ]
            try:
                expr = call(name, args)
            except FunctionError:
                continue
            for dialect in (DUCKDB, SPARK):
                assert not (can_fail(expr) and exact(expr, str, dialect)), name


@pytest.mark.parametrize(
    ("lit", "text"),
    [
        (Lit(None, INT), "CAST(NULL AS BIGINT)"),
        (Lit(-(2**63), INT), "CAST('-9223372036854775808' AS BIGINT)"),
        (Lit("it's", STRING), "'it''s'"),
        (Lit("a\0b", STRING), None),
        (Lit(float("-inf"), FLOAT), "CAST('-Infinity' AS DOUBLE)"),
        (Lit(Decimal("1E+2"), decimal(5, 0)), "CAST('100' AS DECIMAL(5,0))"),
        (Lit(b"\xff", BYTES), "from_hex('ff')"),
        (Lit(True, BOOL), "TRUE"),
    ],
)
def test_constants_are_spelled_with_their_types(lit: Lit, text: str | None) -> None:
    assert exact(lit, str, DUCKDB) == text


# ---------------------------------------------------------------- aggregates

PARAMS: dict[str, tuple[object, ...]] = {
    "phi": (0.0, 0.1, 0.5, 0.9, 1.0, 1 / 3),
    "k": (1, 2, 5),
    "sep": ("", ", "),
    "n": (1, 2, 30),
    "edges": ("[1, 2]", "[0]"),
}
ARGUMENTS = (BOOL, INT, FLOAT, DEC, WIDE, STRING, TIMESTAMP, INTERVAL)


def _calls(name: str) -> list[tuple[Type, ...]]:
    found = []
    params = tuple(PARAMS[what][0] for what in _spec(name).params)
    for types in (
        (),
        *((t,) for t in ARGUMENTS),
        *((t, u) for t in ARGUMENTS for u in (INT, FLOAT, STRING)),
    ):
        try:
            if resolve_aggregate(name, types, params=params).fn == name:
                found.append(types)
        except FunctionError:
            continue
    return found


def _spec(name: str):  # type: ignore[no-untyped-def]
    return next(a for a in AGGREGATES if a.name == name)


EXACT = [a.name for a in AGGREGATES if not a.sampled and a.name != PYTHON_AGGREGATE]


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_aggregate(name: str, data: st.DataObject) -> None:
    types = data.draw(st.sampled_from(_calls(name)))
    params = tuple(data.draw(st.sampled_from(PARAMS[what])) for what in _spec(name).params)
    distinct = bool(types) and _spec(name).distinct and data.draw(st.booleans())
    found = resolve_aggregate(name, types, distinct=distinct, params=params)
    args = [Col(i + 2, t) for i, t in enumerate(types)]
    cast = tuple(
        a if to is None else Call("cast", (a,), to) for a, to in zip(args, found.casts, strict=True)
    )
    filter_ = Call("gt", (Col(1, INT), Lit(0, INT)), BOOL) if data.draw(st.booleans()) else None
    agg = AggCall(name, cast, found.type, distinct, filter_, found.params)
    schema = {"g": INT, "h": INT, **{f"c{i}": t for i, t in enumerate(types)}}
    small = st.sampled_from([0, 1, None])
    drawn = data.draw(
        st.lists(st.tuples(small, small, *(odd_values(t) for t in types)), max_size=9)
    )
    # at once: SUM may leave its range in between
    rows = {LEFT: [Row(0, k, v) for k, v in enumerate(drawn)]}
    left = p.window(p.stream(LEFT, **schema), "time", 100)
    for keys in ((), (Col(0, INT),)):
        fields = (*(Field("g", INT) for _ in keys), Field("a", found.type))
        plan = lp.GroupBy(left, keys, (agg,), fields)
        try:
            want = Oracle(p.output(plan, "rstream"), rows, {}).answer(10)
        except SumOverflow:
            with pytest.raises(QueryError, match="DS706"):
                run(p.output(plan, "rstream"), rows, {}, 10)
            continue
        got = Counter(map(canons, values(run(p.output(plan, "rstream"), rows, {}, 10))))
        assert got == Counter(canons(f.values) for f in want), (agg, rows)


def test_an_aggregate_sees_rows_by_arrival_whatever_the_batches() -> None:
    left = p.window(p.stream(LEFT, x=INT, y=INT), "time", 100)
    rows = {LEFT: [Row(k // 4, k, (k % 5, k)) for k in range(40)]}
    calls = tuple(
        AggCall(
            fn,
            (Col(1, INT), Col(0, INT))[: len(CARDS[fn].forms)],
            INT,
        )
        for fn in ("first", "last", "argmax", "argmin", "rise_end")
    )
    plan = lp.GroupBy(left, (), calls, tuple(Field(c.fn, INT) for c in calls))
    for cut in (1, 7, 40):
        assert values(run(p.output(plan, "rstream"), rows, {}, 50, cut=cut)) == [(0, 39, 4, 0, 4)]


def test_one_connection_many_shapes() -> None:
    """Tables of the same relation and other types do not meet."""
    adhoc = OneShot()
    for type_, value in (
        (INT, 1),
        (STRING, "a"),
        (FLOAT, 0.5),
        (decimal(6, 2), Decimal("1.00")),
        (BOOL, True),
    ) * 2:
        left = p.window(p.stream(LEFT, x=type_), "time", 100)
        plan = lp.Distinct(p.join(left, left, "x"), left.schema * 2)
        given_ = {0: [batch(left.schema, [((value,), 1, 0), ((None,), 1, 1)])]}
        assert values(adhoc.run(plan, given_, 5, ErrorCounter())) == [(value, value)]
    adhoc.close()
