"""Aggregates as SQL text, those alone that are exactly ours there.

COUNT, MIN, MAX, BOOL_AND, BOOL_OR, and SUM over whole numbers, which adds up wider than its result.
FLOAT sums and means must be rounded once, quantiles interpolate, FIRST and ARGMAX go by arrival,
wide DECIMALs may leave their range midway: those are computed by our own kernels
(`steps.GroupStep`).
"""

from __future__ import annotations

from dsms.aggregates.cards import CARDS
from dsms.oneshot.dialect import Dialect
from dsms.oneshot.scalars import Names, all_exact, exact
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind

SUM_OVERFLOW = "dsms: SUM overflow"
NARROW = 18  # digits of DECIMALs whose sums stay within 38
LEAST, MOST = -(2**63), 2**63 - 1


def exact_aggregate(call: AggCall, names: Names, dialect: Dialect) -> str | None:
    """The text of an aggregate, or None."""
    args = all_exact(call.args, names, dialect)
    only = "" if call.filter is None else exact(call.filter, names, dialect)
    if args is None or only is None or any(a.type.kind is Kind.NULL for a in call.args):
        return None
    tail = f" FILTER (WHERE {only})" if only else ""
    x = f"DISTINCT {args[0]}" if call.distinct and args else args[0] if args else ""
    match CARDS[call.fn].in_sql:
        case "same" if call.type.kind is not Kind.FLOAT:
            if not args:
                return f"count(*){tail}"
            return f"{call.fn}({args[0] if CARDS[call.fn].blind else x}){tail}"
        case "wide":
            return _sum(call, x, tail, dialect)
        case _:
            return None


def _sum(call: AggCall, x: str, tail: str, dialect: Dialect) -> str | None:
    kind, name = call.type.kind, dialect.type(call.type)
    if kind is Kind.DECIMAL and call.args[0].type.precision <= NARROW:
        return f"CAST(sum({x}){tail} AS {name})"
    if kind not in (Kind.INT, Kind.INTERVAL) or (call.distinct and dialect.name == "spark"):
        return None
    total = f"{dialect.wide_sum(x)}{tail}"
    fits = f"{total} BETWEEN {LEAST} AND {MOST}"
    return (
        f"CASE WHEN {total} IS NULL OR {fits} THEN CAST({total} AS {name}) ELSE "
        f"{dialect.fail(SUM_OVERFLOW)} END"
    )
