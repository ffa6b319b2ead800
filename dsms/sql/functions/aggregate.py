"""Aggregates: exact meaning and result type of each.

NULLs are ignored, and over no values the answer is NULL (COUNT: 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsms.sql.functions.core import MAX_DIGITS, FunctionError, Match, Overload, Types, casts, choose, overload
from dsms.sql.functions.rules import texts
from dsms.sql.types import FLOAT, STRING, Kind, Type, decimal

Params = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate.

    `params` names its trailing constant arguments, which travel in `AggCall.params`; the last of them may be left out
    and are then `defaults`.  `sampled`: it is put together from summaries of sub-windows and can't follow single rows.
    """

    name: str
    doc: str
    overloads: tuple[Overload, ...]
    aliases: tuple[str, ...] = ()
    distinct: bool = True  # whether DISTINCT may stand before the argument
    params: tuple[str, ...] = ()
    defaults: tuple[object, ...] = ()
    sampled: bool = False

    def signatures(self) -> tuple[str, ...]:
        return tuple(f"{self.name}{o.text}" for o in self.overloads)


@dataclass(frozen=True, slots=True)
class ResolvedAgg:
    """The aggregate, the cast each argument needs (None: none), its type, and its constants, checked."""

    fn: str
    casts: tuple[Type | None, ...]
    type: Type
    params: Params = ()


def _decimal(result: Callable[[Type], Type]) -> Callable[[Types], Match | None]:
    def match(args: Types) -> Match | None:
        return Match(args, result(args[0])) if len(args) == 1 and args[0].kind is Kind.DECIMAL else None

    return match


_SUM_DECIMAL = Overload("(DECIMAL(p,s)) -> DECIMAL(38,s)", _decimal(lambda a: decimal(MAX_DIGITS, a.scale)))
_AVG_DECIMAL = Overload("(DECIMAL) -> FLOAT", _decimal(lambda a: FLOAT))


def _first_of_two(args: Types) -> Match | None:
    """The first argument's type, whatever the second (which only orders)."""
    return Match(args, args[0]) if len(args) == 2 else None


_BY = Overload("(any value, any by) -> value's type", _first_of_two)
_TOPK = Overload("(any) -> STRING", lambda args: Match(args, STRING) if len(args) == 1 else None)
_COUNT = overload("T -> INT")
_RANKED = texts("INT -> INT", "FLOAT -> FLOAT", "TIMESTAMP -> TIMESTAMP", "INTERVAL -> INTERVAL")
_MIDDLE = texts("FLOAT -> FLOAT", "TIMESTAMP -> TIMESTAMP", "INTERVAL -> INTERVAL")

AGGREGATES = (
    Aggregate("count_star", "COUNT(*): number of rows.", texts("-> INT"), distinct=False),
    Aggregate("count", "Number of values that are not NULL; COUNT(DISTINCT x): of different ones.", (_COUNT,)),
    Aggregate(
        "sum",
        "Sum, exact for INT, DECIMAL and INTERVAL; a result outside the type is an error (running totals may leave "
        "it).  "
        "FLOAT: as close as compensated summation gets; NaN and infinities count while they are in.",
        texts("INT -> INT", _SUM_DECIMAL, "FLOAT -> FLOAT", "INTERVAL -> INTERVAL"),
    ),
    Aggregate(
        "avg",
        "Mean: the exact sum divided, as FLOAT (DECIMAL too); never overflows.  INTERVAL: to the microsecond, ties "
        "to even.",
        texts("INT -> FLOAT", _AVG_DECIMAL, "FLOAT -> FLOAT", "INTERVAL -> INTERVAL"),
        aliases=("mean",),
    ),
    Aggregate("min", "Smallest value (NaN is above all numbers).", texts("T -> T")),
    Aggregate("max", "Largest value (NaN is above all numbers).", texts("T -> T")),
    Aggregate("var", "Variance of the sample (n - 1); NULL for fewer than two values.", texts("FLOAT -> FLOAT"),
              aliases=("variance", "var_samp")),
    Aggregate("var_pop", "Variance of the population (n).", texts("FLOAT -> FLOAT")),
    Aggregate("stddev", "Square root of var.", texts("FLOAT -> FLOAT"), aliases=("stddev_samp", "std")),
    Aggregate("stddev_pop", "Square root of var_pop.", texts("FLOAT -> FLOAT")),
    Aggregate(
        "median",
        "Middle value; between the two middle ones the midpoint (TIMESTAMP, INTERVAL: floored to the microsecond).",
        _MIDDLE,
    ),
    Aggregate(
        "quantile",
        "quantile(x, phi): the smallest value v such that at least the share phi of the values is <= v (phi = 0: the "
        "minimum).",
        texts("T -> T"),
        params=("phi",),
        aliases=("quantile_disc", "percentile_disc"),
    ),
    Aggregate(
        "quantile_cont",
        "quantile_cont(x, phi): with n sorted values and h = (n - 1) * phi, the value at h, linear between its "
        "neighbours "
        "(TIMESTAMP, INTERVAL: floored to the microsecond).",
        _MIDDLE,
        params=("phi",),
        aliases=("percentile_cont",),
    ),
    Aggregate("first", "Value of the earliest row by (ts, arrival) whose value is not NULL.", texts("T -> T"),
              distinct=False, aliases=("first_value", "any_value")),
    Aggregate("last", "Value of the latest row by (ts, arrival) whose value is not NULL.", texts("T -> T"),
              distinct=False, aliases=("last_value",)),
    Aggregate(
        "argmax",
        "argmax(value, by): value of the row with the largest `by`, of the earliest such by (ts, arrival); rows "
        "where either "
        "is NULL do not take part.",
        (_BY,),
        distinct=False,
        aliases=("arg_max", "max_by"),
    ),
    Aggregate("argmin", "argmin(value, by): as argmax, with the smallest `by`.", (_BY,), distinct=False,
              aliases=("arg_min", "min_by")),
    Aggregate(
        "topk",
        "topk(x, k): the k most frequent values, the smaller value first among equally frequent ones, each cast to "
        "STRING, as "
        "the text [a, b, c].",
        (_TOPK,),
        distinct=False,
        params=("k",),
    ),
    Aggregate(
        "approx_count_distinct",
        "approx_count_distinct(x [, lg_k]): number of different values, from CPC sketches of 2^lg_k rows (4 <= lg_k <= "
        "21, unsaid 11); standard error 0.6931 / sqrt(2^lg_k), so 1.5 % unsaid.",
        (_COUNT,),
        distinct=False,
        params=("lg_k",),
        defaults=(11,),
        sampled=True,
    ),
    Aggregate(
        "approx_quantile",
        "approx_quantile(x, phi [, size]): a value whose rank is near that of quantile(x, phi), from KLL sketches (8 "
        "<= size <= 65535, unsaid 200); with 99 % confidence the rank is off by 2.296 / size^0.9723 at most, 1.33 % "
        "unsaid.",
        _RANKED,
        distinct=False,
        params=("phi", "size"),
        defaults=(200,),
        sampled=True,
    ),
    Aggregate(
        "approx_topk",
        "approx_topk(x, k): as topk, from frequent-items sketches of m >= 64 * k counters: each value that occurs more "
        "than 3.5 / m of all times is counted; counts are off by that much at most.",
        (_TOPK,),
        distinct=False,
        params=("k",),
        sampled=True,
    ),
    Aggregate(
        "frequent",
        "frequent(x, k): values that are certain to be frequent, from the k most frequent of each sub-window, as JSON "
        "with the threshold that their counts exceed (Golab 2006, Algorithm 6).",
        (_TOPK,),
        distinct=False,
        params=("k",),
        sampled=True,
    ),
    Aggregate("bool_and", "True if no value is false.", texts("BOOL -> BOOL"), aliases=("every",)),
    Aggregate("bool_or", "True if a value is true.", texts("BOOL -> BOOL"), aliases=("some",)),
)  # fmt: skip

_WHOLE = {"k": (1, 1_000_000), "lg_k": (4, 21), "size": (8, 65_535)}  # constants that are whole numbers

_BY_NAME = {n: a for a in AGGREGATES for n in (a.name, *a.aliases)}


def is_aggregate(name: str) -> bool:
    """Whether an aggregate has that name, in any case."""
    return name.casefold() in _BY_NAME


def aggregate_names(aliases: bool = False) -> list[str]:
    """Names of the aggregates."""
    return list(_BY_NAME) if aliases else [a.name for a in AGGREGATES]


def aggregate(name: str) -> Aggregate:
    """The aggregate of that name or alias, in any case."""
    found = _BY_NAME.get(name.casefold())
    if found is None:
        raise FunctionError("unknown", f"there is no aggregate `{name}`", tuple(aggregate_names()))
    return found


def aggregate_params(name: str) -> tuple[str, ...]:
    """Names of the trailing constant arguments, which the binder moves to `AggCall.params`."""
    return aggregate(name).params


def resolve_aggregate(
    name: str, args: Sequence[Type], *, distinct: bool = False, params: Sequence[object] = ()
) -> ResolvedAgg:
    """The aggregate for arguments of these types (without the constant ones); COUNT without arguments is COUNT(*).

    Raises FunctionError.
    """
    spec = aggregate(name)
    if spec.name == "count" and not args:
        spec = aggregate("count_star")
    if distinct and not spec.distinct:
        raise FunctionError("distinct", f"{spec.name} does not take DISTINCT", spec.signatures())
    checked = _checked(spec, params)
    found = choose(spec.name, spec.overloads, args, spec.signatures())
    return ResolvedAgg(spec.name, casts(args, found.targets), found.type, checked)


def _checked(spec: Aggregate, params: Sequence[object]) -> Params:
    params = (*params, *spec.defaults[max(len(spec.defaults) - (len(spec.params) - len(params)), 0) :])
    if len(params) != len(spec.params):
        wants = " and ".join(spec.params) or "no constant"
        raise FunctionError("constant", f"{spec.name} takes {wants} after its argument", spec.signatures())
    return tuple(_check(spec, what, value) for what, value in zip(spec.params, params, strict=True))


def _check(spec: Aggregate, what: str, value: object) -> object:
    if what in _WHOLE:
        least, most = _WHOLE[what]
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        message = f"{spec.name} needs a number {what} from {least} to {most}, not {_shown(value)}"
        raise FunctionError("constant", message, position=1 + spec.params.index(what))
    try:
        share = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        share = math.nan
    if 0 <= share <= 1:
        return share
    raise FunctionError("constant", f"{spec.name} needs a constant share from 0 to 1, not {_shown(value)}", position=1)


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value)
