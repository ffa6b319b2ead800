"""Which class serves an aggregate call, given how rows leave.

An argument's form: `word` (in order, or a code with ranks), `wide` (number of up to two words), `valid` (only whether
it is NULL).
"""

from __future__ import annotations

from typing import Literal

from dsms.operators.aggregates.base import Aggregate
from dsms.operators.aggregates.counts import AllOrAny, Count
from dsms.operators.aggregates.extremes import BestDeque, BestHeap, BestKept
from dsms.operators.aggregates.sums import Doubles, Whole
from dsms.operators.aggregates.words import NARROW, Coding, coding
from dsms.sql.expr import AggCall
from dsms.sql.types import INT, Kind, Type

Leaving = Literal["never", "in order", "anyhow"]
Form = Literal["word", "wide", "valid"]

_EXTREMES = {"min": False, "max": True, "argmin": False, "argmax": True}


def form(call: AggCall) -> Form:
    """What an aggregate needs to know of its arguments."""
    if call.fn in ("count", "count_star") and not call.distinct:
        return "valid"
    return "wide" if call.fn in ("sum", "avg") else "word"


def arg_coding(call: AggCall, k: int) -> Coding:
    """How argument k is kept."""
    if form(call) == "valid":
        return Coding(INT)
    return coding(call.args[k].type, wide=form(call) == "wide")


def _wide(type_: Type) -> bool:
    return type_.kind is Kind.DECIMAL and type_.precision > NARROW


def aggregate(call: AggCall, leaving: Leaving) -> Aggregate:
    """A fresh state for the call."""
    match call.fn:
        case "count" | "count_star":
            return Count()
        case "bool_and" | "bool_or":
            return AllOrAny(int(call.fn == "bool_or"))
        case "sum" | "avg":
            arg = call.args[0].type
            if arg.kind is Kind.FLOAT:
                return Doubles(call.fn == "avg")
            return Whole(arg, call.type, call.fn == "avg", _wide(arg))
        case "min" | "max" | "argmin" | "argmax":
            kinds = {"never": BestKept, "in order": BestDeque, "anyhow": BestHeap}
            return kinds[leaving](_EXTREMES[call.fn])
    raise AssertionError(f"no aggregate {call.fn}")


def answer_coding(call: AggCall, args: tuple[Coding, ...]) -> Coding:
    """What the words of an aggregate's answer mean."""
    if call.fn in ("min", "max", "first", "last", "argmin", "argmax", "quantile"):
        return args[0]
    return coding(call.type, wide=True)
