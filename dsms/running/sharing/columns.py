"""Which columns of a feed answer an aggregate: one that holds the same data per sub-window does, whatever its name.

The cells of a SUM count its values, so AVG and COUNT over the same argument read them too (SS2, CS3: the sum and the
count are there, and need only be divided); quantiles read the same sorted values, TOPK and DISTINCT the same counters.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsms.sql.expr import AggCall
from dsms.sql.types import INT

ROWS = AggCall("count_star", (), INT)  # says which groups have rows at all

SUMS = ("sum", "avg")
SPREADS = ("var", "var_pop", "stddev", "stddev_pop")
QUANTILES = ("median", "quantile", "quantile_cont")
BOOLS = ("bool_and", "bool_or")
FAMILIES = (SUMS, SPREADS, QUANTILES, BOOLS, ("topk",))
RICH = ("topk", *SUMS, *SPREADS)  # of one query these are placed first, for others to read


def needed(aggs: tuple[AggCall, ...], grouped: bool) -> tuple[AggCall, ...]:
    """What is asked of the columns: each aggregate once, and the rows of groups."""
    return tuple(dict.fromkeys([*([ROWS] if grouped else []), *aggs]))


def same_data(call: AggCall, column: AggCall) -> bool:
    """Whether the cells of `column` hold, per sub-window, what `call` needs (SS1, SS2)."""
    if call == column:
        return True
    if (call.args, call.filter) != (column.args, column.filter) or not call.args:
        return False
    if call.distinct and call.fn not in ("min", "max", *BOOLS):
        ordered = column.fn == "topk" or (column.distinct and column.fn in QUANTILES)
        return ordered or (call.fn not in QUANTILES and column.distinct and column.fn not in ("min", "max", *BOOLS))
    if column.distinct:
        return False
    if call.fn == "count":
        return column.fn in SUMS + SPREADS
    return any(call.fn in family and column.fn in family for family in FAMILIES)


def sources(aggs: tuple[AggCall, ...], grouped: bool, have: Iterable[AggCall]) -> dict[AggCall, AggCall]:
    """For each aggregate the column that answers it: one of those there are, or a new one."""
    there = dict.fromkeys(have)
    out: dict[AggCall, AggCall] = {}
    for call in sorted(needed(aggs, grouped), key=lambda c: c.fn not in RICH):
        found = call if call in there else next((c for c in there if same_data(call, c)), call)
        there[found] = None
        out[call] = found
    return out
