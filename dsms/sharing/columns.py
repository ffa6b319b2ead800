"""Which columns of a feed answer an aggregate: one that holds the same data per sub-window does,
whatever its name.

The cells of a SUM count its values, so AVG and COUNT over the same argument read them too (SS2,
CS3: the sum and the count are there, and need only be divided); quantiles read the same sorted
values, TOPK and DISTINCT the same counters.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsms.aggregates.cards import CARDS
from dsms.sql.expr import AggCall
from dsms.sql.types import INT

ROWS = AggCall("count_star", (), INT)  # says which groups have rows at all


def needed(aggs: tuple[AggCall, ...], grouped: bool) -> tuple[AggCall, ...]:
    """What is asked of the columns: each aggregate once, and the rows of groups."""
    return tuple(dict.fromkeys([*([ROWS] if grouped else []), *aggs]))


def same_data(call: AggCall, column: AggCall) -> bool:
    """Whether the cells of `column` hold, per sub-window, what `call` needs (SS1, SS2)."""
    if call == column:
        return True
    if (call.args, call.filter) != (column.args, column.filter) or not call.args:
        return False
    mine, theirs = CARDS[call.fn], CARDS[column.fn]
    if call.distinct and not mine.blind:
        ordered = theirs.tallied or (column.distinct and theirs.ranked)
        return ordered or (not mine.ranked and column.distinct and not theirs.blind)
    if column.distinct:
        return False
    if call.fn == "count":
        return theirs.counting
    return mine.shared and mine.family == theirs.family


def _rich(call: AggCall) -> bool:
    """Of one query these are placed first, for others to read."""
    return CARDS[call.fn].counting or CARDS[call.fn].tallied


def sources(
    aggs: tuple[AggCall, ...], grouped: bool, have: Iterable[AggCall]
) -> dict[AggCall, AggCall]:
    """For each aggregate the column that answers it: one of those there are, or a new one."""
    there = dict.fromkeys(have)
    out: dict[AggCall, AggCall] = {}
    for call in sorted(needed(aggs, grouped), key=lambda c: not _rich(c)):
        found = call if call in there else next((c for c in there if same_data(call, c)), call)
        there[found] = None
        out[call] = found
    return out
