"""FIRST and LAST as algebras (`picks`): the value of the earliest or latest row by (ts, arrival) that has one."""

from __future__ import annotations

from dsms.operators.aggregates.registry import arg_coding
from dsms.sql.expr import AggCall
from dsms.synopses.coded import Words
from dsms.synopses.picks import FIRST, LAST, Picks


def end(call: AggCall) -> Picks:
    """The algebra of such a call."""
    return Picks(LAST if call.fn == "last" else FIRST, Words(arg_coding(call, 0)))
