"""Computed columns of streams: made of the given ones, for all rows of a frame at once.

What is written down of rows are the given columns; the others are made again from them.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from dsms.intake.convert import Converted, checked
from dsms.intake.operations import with_operations
from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.operators.expressions.compile import Evaluator
from dsms.sql.catalog import StreamDef
from dsms.sql.expr import Expr


@lru_cache(maxsize=256)
def _compiled(expr: Expr) -> Evaluator:
    return compile_expr(expr)


def completed(rows: Converted, stream: StreamDef, room: int) -> Converted:
    """Rows of the columns that are given, with those that are computed.

    A value that fails is NULL.  A row with NULL in a NOT NULL column, an instant outside the years
    or an unknown operation is refused.  `room`: bytes of text that an expression may make
    (DS630)."""
    if stream.computed:
        rows = _computed(rows, stream, room)
    return with_operations(rows, stream) if stream.key else rows


def _computed(rows: Converted, stream: StreamDef, room: int) -> Converted:
    count, errors = len(rows), ErrorCounter.of_query(room)
    made = {i: _compiled(expr)(rows.columns, count, errors) for i, expr in stream.computed}
    given = iter(rows.columns)
    columns: list[pa.Array] = [
        made[i].cast(f.type.arrow) if i in made else next(given)
        for i, f in enumerate(stream.schema)
    ]
    return checked(columns, rows.sent, rows.kept, list(rows.refusals), stream.schema)
