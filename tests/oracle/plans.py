"""Logical plans built by hand, for trying the oracle without parser and binder."""

from __future__ import annotations

from typing import Any

from dsms.sql import logical as lp
from dsms.sql.catalog import StreamDef, TableDef
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit
from dsms.sql.types import BOOL, FLOAT, INT, STRING, Field, Schema, Type
from dsms.sql.window import Landmark, Now, Partitioned, Rows, Slide, Time, Unbounded


def stream(name: str, **columns: Type) -> lp.StreamScan:
    schema = tuple(Field(c, t, name) for c, t in columns.items())
    return lp.StreamScan(StreamDef(name, schema), schema, name)


def table(name: str, retroactive: bool = True, **columns: Type) -> lp.TableScan:
    schema = tuple(Field(c, t, name) for c, t in columns.items())
    return lp.TableScan(TableDef(name, schema, (0,), retroactive), schema, name)


KINDS = {
    "time": Time,
    "now": Now,
    "rows": Rows,
    "partitioned": Partitioned,
    "unbounded": Unbounded,
    "landmark": Landmark,
}


def window(
    child: lp.Node, kind: str, *extent: Any, slide: int | None = None, **more: Any
) -> lp.Window:
    by_rows = kind in ("rows", "partitioned")
    made = KINDS[kind](*extent, slide=None if slide is None else Slide(slide, by_rows), **more)
    return lp.Window(child, made, child.schema)


def col(node: lp.Node, name: str) -> Col:
    at = [f.name for f in node.schema].index(name)
    return Col(at, node.schema[at].type, name)


def lit(value: object) -> Lit:
    return Lit(value, {bool: BOOL, int: INT, float: FLOAT, str: STRING}[type(value)])


def select(child: lp.Node, fn: str, column: str, value: object) -> lp.Select:
    return lp.Select(child, Call(fn, (col(child, column), lit(value)), BOOL), child.schema)


def project(child: lp.Node, *names: str) -> lp.Project:
    exprs = tuple(col(child, n) for n in names)
    return lp.Project(
        child, exprs, tuple(Field(n, e.type) for n, e in zip(names, exprs, strict=True))
    )


def join(
    left: lp.Node, right: lp.Node, *on: str, kind: Any = "inner", residual: Expr | None = None
) -> lp.Join:
    keys = tuple((col(left, n), col(right, n)) for n in on)
    return lp.Join(left, right, kind, keys, residual, left.schema + right.schema)


def join_nrr(child: lp.Node, right: lp.TableScan, *on: str, kind: Any = "inner") -> lp.JoinNRR:
    keys = tuple((col(child, n), col(right, n)) for n in on)
    return lp.JoinNRR(child, right, kind, keys, None, child.schema + right.schema)


def asof(
    left: lp.Node, right: lp.Node, *on: str, kind: Any = "inner", after: Any = None
) -> lp.AsofJoin:
    keys = tuple((col(left, n), col(right, n)) for n in on)
    return lp.AsofJoin(left, right, kind, keys, after, None, left.schema + right.schema)


def match(
    *inputs: lp.Node, on: str, kinds: Any = None, conditions: Any = None, span: int = 60_000_000
) -> lp.Match:
    kinds = kinds or ("one",) * len(inputs)
    names = tuple("abcdef"[: len(inputs)])
    keys = (tuple(col(node, on) for node in inputs),)
    schema = tuple(f for n, k in zip(inputs, kinds, strict=True) if k == "one" for f in n.schema)
    given = conditions or (None,) * len(inputs)
    return lp.Match(inputs, kinds, names, keys, given, (), span, schema)


def semi(
    left: lp.Node, right: lp.Node, *on: str, anti: bool = False, null_aware: bool = False
) -> lp.SemiJoin:
    keys = tuple((col(left, n), col(right, n)) for n in on)
    return lp.SemiJoin(left, right, anti, keys, None, null_aware, left.schema)


def set_op(op: Any, left: lp.Node, right: lp.Node, all_: bool = False) -> lp.SetOp:
    return lp.SetOp(op, all_, left, right, left.schema)


def union(*inputs: lp.Node) -> lp.Union:
    return lp.Union(inputs, inputs[0].schema)


def distinct(child: lp.Node) -> lp.Distinct:
    return lp.Distinct(child, child.schema)


def agg(child: lp.Node, fn: str, *names: str, type: Type | None = None, **more: Any) -> AggCall:
    args = tuple(col(child, n) for n in names)
    result = type or (INT if fn == "count" else args[0].type)
    return AggCall(fn, args, result, name=fn, **more)


def group(child: lp.Node, keys: tuple[str, ...], *aggs: AggCall) -> lp.GroupBy:
    exprs = tuple(col(child, k) for k in keys)
    schema: Schema = tuple(Field(k, e.type) for k, e in zip(keys, exprs, strict=True))
    return lp.GroupBy(child, exprs, aggs, schema + tuple(Field(a.name, a.type) for a in aggs))


def over(child: lp.Node, keys: tuple[str, ...], *calls: AggCall, spec: Any = None) -> lp.Over:
    by = tuple(col(child, k) for k in keys)
    schema = child.schema + tuple(Field(c.name, c.type) for c in calls)
    return lp.Over(child, spec or Unbounded(), None, (lp.Frame(by, calls),), schema)


def append(child: lp.Node, mixed: bool = False) -> lp.Append:
    return lp.Append(child, mixed, child.schema)


def output(child: lp.Node, kind: Any = None) -> lp.Output:
    return lp.Output(child, kind or "istream", kind is not None, False, None, child.schema)
