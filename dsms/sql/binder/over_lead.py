"""LEAD: of each row the value of the one that comes n rows later, while that is in the window.

LAG says of each row which one it follows, and that is settled when it comes.  So a row finds the
one that follows it by an outer join with the same rows: until that comes it is padded, and then
taken back and told with the value.

A row is known by its timestamp and its number among the rows of its instant; where no column has
the timestamp, by its number in the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsms.sql.binder.asof import time_unit
from dsms.sql.binder.context import Context
from dsms.sql.binder.copies import again
from dsms.sql.binder.groups import padded
from dsms.sql.expr import AggCall, Call, Col, Expr
from dsms.sql.logical import Frame, Join, Node, Over, Project
from dsms.sql.types import BOOL, INT, Field
from dsms.sql.window import UNBOUNDED

NUMBER = "$number"


@dataclass(frozen=True, slots=True)
class Marked:
    """Append-only rows with a column more, and the columns that tell them apart."""

    node: Node
    marks: tuple[Col, ...]

    def before(self, back: int) -> tuple[AggCall, ...]:
        """Calls that say by which marks the row `back` rows before is known."""
        return tuple(
            AggCall("lag", (mark,), mark.type, params=(back,), name=f"$before {mark.name}")
            for mark in self.marks
        )


def marked(child: Node) -> Marked:
    """The rows, numbered."""
    width, fields = len(child.schema), child.schema
    time = next((k for k in range(width) if time_unit(child, k) is not None), None)
    number = Col(width, INT, NUMBER)
    if time is None:
        frame = Frame((), (AggCall("row_number", (), INT, name=NUMBER),))
        marks: tuple[Col, ...] = (number,)
    else:
        frame = Frame((), (AggCall("count_star", (), INT, name=NUMBER),), span=0)
        marks = (Col(time, fields[time].type, fields[time].name), number)
    schema = (*fields, Field(NUMBER, INT))
    return Marked(Over(child, UNBOUNDED, None, (frame,), schema), marks)


def followed(
    ctx: Context,
    rows: Node,
    made: Node,
    marks: Sequence[Col],
    before: Sequence[int],
    calls: Sequence[AggCall],
) -> tuple[Node, list[Expr]]:
    """`made`, which begins with the columns of `rows`, with the values of these LEADs behind, and
    what reads each.  `before`: the columns of `rows` with the marks of the row that each one
    follows."""
    width, first = len(made.schema), len(before)
    named = [rows.schema[at] for at in before]
    exprs = [Col(at, f.type, f.name) for at, f in zip(before, named, strict=True)]
    values = [call.args[0] for call in calls]
    schema = (*named, *(Field(call.name, call.type) for call in calls))
    right = Project(again(ctx, rows), (*exprs, *values), schema)
    keys = tuple(
        (m, replace(e, index=k)) for k, (m, e) in enumerate(zip(marks, exprs, strict=True))
    )
    node = Join(made, right, "left", keys, None, made.schema + padded(schema, True))
    found = [Col(width + first + k, call.type, call.name) for k, call in enumerate(calls)]
    mark = Col(width, named[0].type, named[0].name)
    return node, [_or_default(value, mark, call) for value, call in zip(found, calls, strict=True)]


def _or_default(value: Col, mark: Col, call: AggCall) -> Expr:
    """The value, or what stands where no row follows, which has no mark."""
    if len(call.args) < 2:
        return value
    return Call("case", (Call("is_null", (mark,), BOOL), call.args[1], value), call.type)
