"""Plans made comparable: without names, aliases and the numbering of leaves, and without nodes that
change nothing."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from dsms.plan.text import describe
from dsms.plan.windows import partition
from dsms.sql import ast
from dsms.sql.expr import AggCall, Col, rewrite
from dsms.sql.logical import (
    Append,
    AsofJoin,
    GroupBy,
    Join,
    JoinNRR,
    Match,
    Node,
    Output,
    Over,
    Project,
    Select,
    SemiJoin,
    SetOp,
    Sort,
    StreamScan,
    TableScan,
    TopN,
    Window,
    children,
    with_children,
)
from dsms.sql.printer import to_sql
from dsms.sql.types import Field
from dsms.sql.unbind import unbind, unbind_aggregate, window_syntax
from dsms.sql.window import UNBOUNDED, WindowSpec

_NOT_COMPARED = {"name": "", "qualifier": None, "alias": "", "nullable": True, "leaf": 0}


def nameless(value: Any) -> Any:
    """The plan without names: structure, types, expressions and windows remain."""
    if isinstance(value, tuple):
        return tuple(nameless(v) for v in value)
    if isinstance(value, Field | Col | AggCall) or (
        is_dataclass(value) and hasattr(value, "schema")
    ):
        changed = {
            f.name: _NOT_COMPARED.get(f.name, nameless(getattr(value, f.name)))
            for f in fields(value)
        }
        return replace(value, **changed)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: nameless(getattr(value, f.name)) for f in fields(value)})
    return value


def plain(node: Node) -> Node:
    """The plan without projections to all columns in order, of a projection of columns the one
    projection, and without windows that hold everything."""
    node = with_children(node, tuple(plain(c) for c in children(node))) if children(node) else node
    if isinstance(node, Project) and isinstance(node.child, Project):
        below = node.child.exprs
        if all(isinstance(e, Col) for e in below):
            taken = tuple(rewrite(e, lambda c: below[c.index]) for e in node.exprs)
            return plain(replace(node, child=node.child.child, exprs=taken))
    if isinstance(node, Project):
        same = [isinstance(e, Col) and e.index == i for i, e in enumerate(node.exprs)]
        if all(same) and len(same) == len(node.child.schema):
            return node.child
    if isinstance(node, Window) and node.spec == UNBOUNDED:
        return node.child
    return node


def comparable(plan: Output) -> Any:
    """Equal for plans that say the same."""
    return nameless(plain(plan))


# ---------------------------------------------------------------- plans to read


def drawn(node: Node, depth: int = 0) -> str:
    """The plan as an indented tree with its expressions, for tests that show what the binder
    makes."""
    below = [drawn(c, depth + 1) for c in children(node)]
    return "\n".join(["  " * depth + _line(node), *below])


def _line(node: Node) -> str:
    inside = [c for child in children(node) for c in child.schema]
    match node:
        case Output():
            slide = f" slide {node.slide.every}" if node.slide else ""
            shown = (
                f"{node.kind}{' restore' if node.restore else ''}" if node.explicit else "default"
            )
            return f"Output {shown}{slide}: {', '.join(f'{f.name} {f.type}' for f in node.schema)}"
        case StreamScan():
            return f"Stream {node.stream.name}"
        case TableScan():
            return f"Table {node.table.name}"
        case Window():
            return f"Window {window(node.spec)}"
        case Select():
            return f"Select {text(node.predicate, inside)}"
        case Project():
            return f"Project {texts(node.exprs, inside)}"
        case JoinNRR():
            return (
                f"JoinNRR {node.kind} "
                f"{node.table.table.name}{_on(node, inside, list(node.table.schema))}"
            )
        case AsofJoin():
            said = f"{node.kind} after {node.after} span {node.span}"
            keys = Join(node.left, node.right, "inner", node.keys, None, node.schema)
            return f"AsofJoin {said}{_on(keys, list(node.left.schema), list(node.right.schema))}"
        case Match():
            steps = [
                f"{kind} {name} if {'true' if c is None else text(c, inside)}"
                for kind, name, c in zip(node.kinds, node.names, node.conditions, strict=True)
            ]
            keys_ = [
                [text(e, list(i.schema)) for e, i in zip(same, node.inputs, strict=True)]
                for same in node.keys
            ]
            over = [(k, agg(call, list(node.inputs[k].schema))) for k, call in node.aggs]
            return f"Match {'; '.join(steps)} per {keys_} over {over} span {node.span}"
        case Join() | SemiJoin():
            kind = node.kind if isinstance(node, Join) else "anti" if node.anti else "semi"
            aware = " null-aware" if isinstance(node, SemiJoin) and node.null_aware else ""
            return (
                f"{type(node).__name__} "
                f"{kind}{aware}{_on(node, list(node.left.schema), list(node.right.schema))}"
            )
        case Over():
            return f"Over {', '.join(agg(a, inside) for f in node.frames for a in f.calls)}"
        case GroupBy():
            keys = f" by {texts(node.keys, inside)}" if node.keys else ""
            return f"GroupBy{keys}: {', '.join(agg(a, inside) for a in node.aggs)}"
        case SetOp():
            return f"{node.op}{' all' if node.all else ''}"
        case Append():
            return f"Append{' mixed' if node.mixed else ' entries' if node.entries else ''}"
        case Sort():
            return f"Sort {_keys(node, inside)} limit {node.limit} offset {node.offset}"
        case TopN():
            by = ", ".join(text(e, inside) for e in node.by)
            return f"First {node.limit} per ({by}) by {_keys(node, inside)}"
        case _:
            return type(node).__name__


def _keys(node: Sort | TopN, inside: list[Field]) -> str:
    shown = [
        (text(e, inside), " desc" if d else "", " nulls first" if n else "")
        for e, d, n in node.keys
    ]
    return ", ".join("".join(parts) for parts in shown)


def _on(node: Any, left: list[Field], right: list[Field]) -> str:
    keys = [f"{text(a, left)} = {text(b, right)}" for a, b in node.keys]
    rest = [f"if {text(node.residual, left + right)}"] if node.residual is not None else []
    return "".join(f" {p}" for p in [*([f"on {', '.join(keys)}"] if keys else []), *rest])


def _columns(schema: list[Field]) -> list[ast.Expr]:
    owner = [None if f.qualifier is None else ast.Ident(f.qualifier) for f in schema]
    return [ast.ColumnRef(ast.Ident(f.name), o) for f, o in zip(schema, owner, strict=True)]


def text(expr: Any, schema: list[Field]) -> str:
    return to_sql(unbind(expr, _columns(schema)))


def texts(exprs: Any, schema: list[Field]) -> str:
    return ", ".join(text(e, schema) for e in exprs)


def agg(call: AggCall, schema: list[Field]) -> str:
    return to_sql(unbind_aggregate(call, _columns(schema)))


def window(spec: WindowSpec) -> str:
    names = [ast.ColumnRef(ast.Ident(f"#{i}")) for i in range(max(partition(spec), default=-1) + 1)]
    return to_sql(window_syntax(spec, names))


def shape(node: Node) -> str:
    """The tree in one line: `Join s.a = t.a (Window RANGE 10 s (Stream s), ...)`."""
    below = ", ".join(shape(c) for c in children(node))
    return describe(node) + (f" ({below})" if below else "")
