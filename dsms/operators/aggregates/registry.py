"""Which class serves an aggregate call, given how rows leave.

An argument's form: `word` (in order, or a code with ranks), `code` (order does not matter), `wide` (a number of up to
two words), `valid` (only whether it is NULL).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from dsms.errors import QueryError
from dsms.operators.aggregates.base import Aggregate
from dsms.operators.aggregates.counts import AllOrAny, Count
from dsms.operators.aggregates.distinct import CountTurns, Distinct
from dsms.operators.aggregates.extremes import BestDeque, BestHeap, BestKept, EndHeap
from dsms.operators.aggregates.moments import Spread
from dsms.operators.aggregates.order import EndKept, EndOfList
from dsms.operators.aggregates.quantiles import Ranked, share
from dsms.operators.aggregates.sums import Doubles, Whole
from dsms.operators.aggregates.topk import TopK
from dsms.operators.aggregates.words import NARROW, Coding, coding
from dsms.sql.expr import AggCall
from dsms.sql.types import INT, Kind, Type

Leaving = Literal["never", "in order", "anyhow"]
Form = Literal["word", "code", "wide", "valid"]

_EXTREMES = {"min": False, "max": True, "argmin": False, "argmax": True}


def form(call: AggCall, k: int) -> Form:
    """What an aggregate needs to know of its argument k."""
    match call.fn:
        case "count" | "count_star":
            return "code" if call.distinct else "valid"
        case "sum" | "avg":
            return "wide"
        case "first" | "last":
            return "code"
        case "argmin" | "argmax" if k == 0:
            return "code"
        case _:
            return "word"


def arg_coding(call: AggCall, k: int) -> Coding:
    """How argument k is kept."""
    match form(call, k):
        case "valid":
            return Coding(INT)
        case how:
            return coding(call.args[k].type, wide=how == "wide", ordered=how == "word")


def _wide(type_: Type) -> bool:
    return type_.kind is Kind.DECIMAL and type_.precision > NARROW


def aggregate(call: AggCall, leaving: Leaving, by_age: bool = False) -> Aggregate:
    """A fresh state for the call; `by_age`: rows do not come in the order of their ages."""
    if by_age and call.fn in ("first", "last"):
        return EndHeap(call.fn == "last")
    if call.distinct and call.fn not in ("min", "max", "bool_and", "bool_or"):
        return Distinct(CountTurns() if call.fn == "count" else _plain(call, leaving))
    return _plain(call, leaving)


def _plain(call: AggCall, leaving: Leaving) -> Aggregate:
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
        case "var" | "var_pop" | "stddev" | "stddev_pop":
            return Spread(sample=not call.fn.endswith("pop"), root=call.fn.startswith("stddev"))
        case "min" | "max" | "argmin" | "argmax":
            return extreme(_EXTREMES[call.fn], leaving)
        case "first" | "last":
            return (EndKept if leaving == "never" else EndOfList)(call.fn == "last")
        case "median":
            return Ranked(Fraction(1, 2), True, call.type)
        case "quantile" | "quantile_cont":
            return Ranked(share(call.params[0]), call.fn == "quantile_cont", call.type)
        case "topk":
            return TopK(int(str(call.params[0])), call.args[0].type)
    message = f"{call.fn.upper()} is put together from sub-windows, and operators that follow each row have none"
    hint = "use the exact aggregate, or WITH (path = ws): then each answer is computed from scratch (not with -restore)"
    raise QueryError("DS331", message, hint=hint)


def extreme(down: bool, leaving: Leaving) -> Aggregate:
    """The least (`down`: the greatest) of a group."""
    kinds = {"never": BestKept, "in order": BestDeque, "anyhow": BestHeap}
    return kinds[leaving](down)


def answer_coding(call: AggCall, args: tuple[Coding, ...], serving: Aggregate) -> Coding:
    """What the words of an aggregate's answer mean, given those of its arguments and the state that answers."""
    if isinstance(serving, TopK):
        return serving.texts
    if call.fn in ("min", "max", "first", "last", "argmin", "argmax", "quantile"):
        return args[0]
    return coding(call.type, wide=True)
