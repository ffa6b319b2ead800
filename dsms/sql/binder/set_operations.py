"""UNION, INTERSECT and EXCEPT of two bound queries."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder.calls import cast
from dsms.sql.binder.context import Bound, project
from dsms.sql.binder.typenames import default_type
from dsms.sql.codes import error
from dsms.sql.expr import Col
from dsms.sql.functions import common_type
from dsms.sql.logical import Distinct, Node, Project, SetOp, Union
from dsms.sql.types import Field, Schema


def combined(op: ast.SetOp, left: Bound, right: Bound) -> Bound:
    """The set operation over its operands, converted to common types."""
    shown = op.kind.value + (" ALL" if op.all else "")
    if len(left.names) != len(right.names):
        message = (
            f"{shown} needs the same number of columns on both sides: {len(left.names)} and "
            f"{len(right.names)}"
        )
        raise error("DS217", message, op, "select as many columns on the right as on the left")
    _check_internal(op, left, right, shown)
    schema = _common_schema(op, left, right, shown)
    sides = (_converted(left, schema), _converted(right, schema))
    return Bound(_set_node(op, sides, schema), left.names, left.internal or right.internal)


def _check_internal(op: ast.SetOp, left: Bound, right: Bound, shown: str) -> None:
    at = left.internal or right.internal
    if at is None or (op.kind is ast.SetOpKind.UNION and op.all):
        return
    if op.kind is ast.SetOpKind.UNION:
        hint = "write UNION ALL, or leave INTERNAL out"
        raise error(
            "DS314", "UNION removes duplicates, and appended results would keep them", at, hint
        )
    message = f"{shown} takes results back, and INTERNAL windows only append"
    raise error("DS315", message, at, "leave INTERNAL out")


def _common_schema(op: ast.SetOp, left: Bound, right: Bound, shown: str) -> Schema:
    fields = []
    for i, (a, b) in enumerate(zip(left.node.schema, right.node.schema, strict=True)):
        common = common_type(a.type, b.type)
        if common is None:
            message = (
                f"column {i + 1} ({left.names[i]}) of {shown} is {a.type} on the left and "
                f"{b.type} on the right"
            )
            raise error("DS208", message, op, "convert one side: CAST(x AS type)")
        fields.append(Field(left.names[i], default_type(common), None, a.nullable or b.nullable))
    return tuple(fields)


def _converted(bound: Bound, schema: Schema) -> Node:
    columns = [
        Col(i, f.type, n)
        for i, (f, n) in enumerate(zip(bound.node.schema, bound.names, strict=True))
    ]
    below = bound.node
    if isinstance(below, Project):  # one projection that converts too
        return project(
            below.child,
            [cast(e, f.type) for e, f in zip(below.exprs, schema, strict=True)],
            bound.names,
        )
    return project(
        below, [cast(c, f.type) for c, f in zip(columns, schema, strict=True)], bound.names
    )


def _set_node(op: ast.SetOp, sides: tuple[Node, Node], schema: Schema) -> Node:
    match op.kind:
        case ast.SetOpKind.UNION:
            first, second = sides
            inputs = (
                (*first.inputs, second)
                if isinstance(first, Union) and _is_merge(op.left)
                else sides
            )
            union = Union(inputs, schema)
            return union if op.all else Distinct(union, schema)
        case ast.SetOpKind.INTERSECT:
            return SetOp("intersect", op.all, *sides, schema)
        case _:
            return SetOp("except", op.all, *sides, schema)


def _is_merge(body: ast.Select | ast.SetOp | ast.Query) -> bool:
    """A UNION ALL of a UNION ALL is one merge."""
    return isinstance(body, ast.SetOp) and body.kind is ast.SetOpKind.UNION and body.all
