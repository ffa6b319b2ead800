"""MIN, MAX, ARGMIN, ARGMAX as algebras (`picks`): the row with the least or greatest value, the earliest among equals.

Values are compared as words, in the order of SQL (NaN above all numbers, strings by code point); strings and wide
DECIMALs through the ranks of a dictionary.  Sets may overlap for MIN and MAX, not where other values are told.
"""

from __future__ import annotations

from dsms.operators.aggregates.registry import arg_coding
from dsms.sql.expr import AggCall
from dsms.synopses.coded import Words
from dsms.synopses.picks import GREATEST, LEAST, Picks


def extreme(call: AggCall) -> Picks:
    """The algebra of such a call."""
    rule = GREATEST if call.fn in ("max", "argmax") else LEAST
    told = Words(arg_coding(call, 0))
    if len(call.args) == 1:
        return Picks(rule, told, duplicate_insensitive=True)
    return Picks(rule, told, Words(arg_coding(call, 1)))
