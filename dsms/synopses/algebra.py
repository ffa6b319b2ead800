"""Which algebra serves an aggregate call."""

from __future__ import annotations

from dsms.errors import InternalError
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind
from dsms.synopses.cells import Algebra
from dsms.synopses.counters import counters
from dsms.synopses.ends import end
from dsms.synopses.extremes import extreme
from dsms.synopses.quantile import quantile
from dsms.synopses.sums import Bools, Count, Doubles, Whole


def algebra(call: AggCall) -> Algebra:
    """The algebra of the call, with a dictionary of its own.

    Its FILTER is none of its business: the caller drops rows that do not pass."""
    match call.fn:
        case _ if call.distinct and call.fn not in ("min", "max", "bool_and", "bool_or"):
            return counters(call)
        case "count" | "count_star":
            return Count()
        case "sum" | "avg" | "var" | "var_pop" | "stddev" | "stddev_pop":
            return _numbers(call)
        case "bool_and" | "bool_or":
            return Bools(call.fn == "bool_or")
        case "min" | "max" | "argmin" | "argmax":
            return extreme(call)
        case "first" | "last":
            return end(call)
        case "median" | "quantile" | "quantile_cont":
            return quantile(call) or counters(call)
        case "topk":
            return counters(call)
        case "approx_count_distinct" | "approx_quantile" | "approx_topk":
            from dsms.synopses.sketches import sketch

            return sketch(call)
        case "frequent":
            from dsms.synopses.frequent import frequent

            return frequent(call)
    raise InternalError("DS905", f"no algebra answers {call.fn}; please report this")


def _numbers(call: AggCall) -> Algebra:
    arg = call.args[0].type
    match call.fn:
        case "var" | "var_pop":
            return Doubles("var", sample=call.fn == "var")
        case "stddev" | "stddev_pop":
            return Doubles("stddev", sample=call.fn == "stddev")
    if arg.kind is Kind.FLOAT:
        return Doubles("avg" if call.fn == "avg" else "sum")
    return Whole(arg, call.type, call.fn == "avg")
