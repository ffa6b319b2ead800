"""Streams that may shed: the column that says what each of their rows stands for."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.codes import error
from dsms.sql.types import FLOAT, Field, Schema

SHEDDING = ("shed", "shed_delay")
WEIGHT = "shed_weight"


def weighted(statement: ast.CreateStream, schema: Schema) -> tuple[Schema, int | None]:
    """The columns of a stream with that of the weight behind them, and its place; None where the
    statement says nothing of `shed`.  Raises DS360 where it can't be."""
    said = {o.name.text.casefold(): o for o in statement.options}
    if "shed" not in said:
        if "shed_delay" in said:
            message = "shed_delay is of streams that may shed"
            raise error("DS360", message, said["shed_delay"], "add shed = random, or leave it out")
        return schema, None
    if statement.key:
        message = "a stream with KEY can't shed: each of its rows takes the place of another"
        raise error("DS360", message, said["shed"], "leave shed out, or KEY")
    if any(f.name.casefold() == WEIGHT for f in schema):
        message = f"a stream that may shed has a column {WEIGHT} of its own"
        raise error("DS360", message, said["shed"], "call yours something else")
    return (*schema, Field(WEIGHT, FLOAT, None, False)), len(schema)
