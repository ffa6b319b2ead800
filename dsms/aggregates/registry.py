"""Where an aggregate call is served: by the file of its family, which the name of its cards' file
names.

A family that can follow single rows has `follow(call, leaving)`, which makes a fresh state of
`parts.base.Aggregate`; each has `algebra(call)`, whose cells synopses keep (`parts.cells.Algebra`).
DISTINCT is the same for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from dsms.aggregates.cards import CARDS
from dsms.aggregates.parts.base import Aggregate, Leaving
from dsms.aggregates.parts.cells import Algebra
from dsms.aggregates.parts.counters import Counters
from dsms.aggregates.parts.distinct import CountTurns, Distinct
from dsms.aggregates.parts.texts import OwnTexts
from dsms.aggregates.parts.words import Coding, coding
from dsms.errors import InternalError, QueryError
from dsms.sql.expr import AggCall


@cache
def _family(fn: str) -> Any:
    """The module that serves an aggregate."""
    if fn not in CARDS:
        raise InternalError("DS905", f"no algebra answers {fn}; please report this")
    return import_module(f"dsms.aggregates.{CARDS[fn].family}")


def _of_different(call: AggCall) -> bool:
    """Whether only different values count, and that makes a difference."""
    return call.distinct and not CARDS[call.fn].blind


def follow(call: AggCall, leaving: Leaving) -> Aggregate:
    """A fresh state that follows single rows, which leave as `leaving` says.  QueryError DS331
    where there can be none."""
    if CARDS[call.fn].sampled:
        message = (
            f"{call.fn.upper()} is put together from sub-windows, and operators that follow "
            "each row have none"
        )
        hint = (
            "use the exact aggregate, or ask for what is a function of what the windows hold, and "
            "so can be computed from scratch (no -restore, INTERNAL or all that a KEY has)"
        )
        raise QueryError("DS331", message, hint=hint)
    if not _of_different(call):
        return _plain(call, leaving)
    return Distinct(CountTurns() if call.fn == "count" else _plain(call, leaving))


def _plain(call: AggCall, leaving: Leaving) -> Aggregate:
    found: Aggregate = _family(call.fn).follow(call, leaving)
    return found


def algebra(call: AggCall) -> Algebra:
    """The algebra of the call, with a dictionary of its own.

    Its FILTER is none of its business: the caller drops rows that do not pass."""
    family = _family(call.fn)
    if _of_different(call):
        counted = call.fn == "count" or CARDS[call.fn].ranked
        return Counters(call, None if counted else algebra(replace(call, distinct=False)))
    found: Algebra = family.algebra(call)
    return found


def answer_coding(call: AggCall, args: tuple[Coding, ...], serving: Aggregate) -> Coding:
    """What the words of an aggregate's answer mean, given those of its arguments and the state that
    answers."""
    if CARDS[call.fn].picks:
        return args[0]
    return serving.texts if isinstance(serving, OwnTexts) else coding(call.type, wide=True)
