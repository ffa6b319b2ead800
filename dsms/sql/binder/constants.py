"""Constants: what a literal means, and what a value of each type may be compared with."""

from __future__ import annotations

from decimal import Decimal

from dsms.sql import ast
from dsms.sql.binder.typenames import TYPE_NAMES
from dsms.sql.expr import Lit
from dsms.sql.types import BOOL, BYTES, FLOAT, INT, INTERVAL, NULL, STRING, TIMESTAMP, Kind
from dsms.sql.unbind import digits

# behind a value: a condition, as hints write one
COMPARED = {
    Kind.INT: "<> 0",
    Kind.FLOAT: "<> 0.0",
    Kind.DECIMAL: "<> 0",
    Kind.STRING: "<> ''",
    Kind.BYTES: "<> X''",
    Kind.TIMESTAMP: "> TIMESTAMP '2020-01-01'",
    Kind.INTERVAL: "> INTERVAL '1' HOUR",
    Kind.DATE: "> DATE '2020-01-01'",
    Kind.TIME: "> TIME '12:00:00'",
    Kind.UUID: "IS NOT NULL",
    Kind.LIST: "<> []",
    Kind.STRUCT: "IS NOT NULL",
}


def literal(node: ast.Expr) -> Lit:
    """The constant that a literal means."""
    match node:
        case ast.IntLit(value=value):
            return Lit(value, INT)
        case ast.FloatLit(value=value):
            return Lit(value, FLOAT)
        case ast.DecimalLit(text=text):
            return Lit(Decimal(text), digits(text))
        case ast.StringLit(value=value):
            return Lit(value, STRING)
        case ast.BytesLit(value=value):
            return Lit(value, BYTES)
        case ast.BoolLit(value=value):
            return Lit(value, BOOL)
        case ast.IntervalLit(duration=duration):
            return Lit(duration.micros, INTERVAL)
        case ast.TimestampLit(micros=micros):
            return Lit(micros, TIMESTAMP)
        case ast.TypedLit(type=sql, value=value):
            return Lit(value, TYPE_NAMES[sql])
        case ast.NullLit():
            return Lit(None, NULL)
    raise AssertionError(node)
