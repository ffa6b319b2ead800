"""Aggregates from their definitions, over the rows of one group, the oldest first by (ts,
arrival)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from dsms.sql.expr import AggCall
from dsms.sql.types import Kind, Type, list_of
from tests.oracle import own
from tests.oracle.casts import to_text
from tests.oracle.functions import hash_of
from tests.oracle.histograms import histogram
from tests.oracle.lists import packed, unpacked
from tests.oracle.numbers import half_away
from tests.oracle.scalar import evaluate
from tests.oracle.values import (
    Value,
    canon,
    canons,
    compare,
    fits_int,
    order_key,
    sort_key,
)

Args = Sequence[tuple[Value, ...]]


class SumOverflow(ArithmeticError):
    """SUM's result does not fit its type: the query stops with an error."""


def aggregate(call: AggCall, rows: Sequence[tuple[Value, ...]]) -> Value:
    """The aggregate's answer over `rows` (values of the child's schema)."""
    if call.filter is not None:
        rows = [r for r in rows if evaluate(call.filter, r) is True]
    args = [tuple(evaluate(a, r) for a in call.args) for r in rows]
    if call.fn == "count_star":
        return len(args)
    args = [a for a in args if a[0] is not None]
    if call.distinct:
        args = list({canons(a): a for a in reversed(args)}.values())[::-1]
    return _AGGREGATES[call.fn](args, call)


def _fraction(value: Value) -> Fraction:
    return Fraction(value)


def _special(values: Sequence[Value]) -> float | None:
    """What the non-finite ones among floats make of a sum; None if all are finite."""
    odd = {canon(v) for v in values if isinstance(v, float) and not math.isfinite(v)}
    if not odd:
        return None
    return odd.pop() if odd in ({math.inf}, {-math.inf}) else math.nan


def _to_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def to_type(value: Fraction, type_: Type) -> Value:
    """An exact number as FLOAT, as DECIMAL (rounded half away from zero), or as a whole number
    (half to even)."""
    match type_.kind:
        case Kind.FLOAT:
            return _to_float(value)
        case Kind.DECIMAL:
            with localcontext() as context:
                context.prec = 120
                return Decimal(half_away(value * 10**type_.scale)).scaleb(-type_.scale)
        case _:
            return round(value)


def _sum(args: Args, call: AggCall) -> Value:
    values = [a[0] for a in args]
    if not values:
        return None
    special = _special(values)
    if special is not None:
        return special
    total = sum((_fraction(v) for v in values), Fraction(0))
    if call.type.kind in (Kind.INT, Kind.INTERVAL) and not fits_int(int(total)):
        raise SumOverflow("SUM(INT)")
    if (
        call.type.kind is Kind.DECIMAL
        and abs(total) * 10**call.type.scale >= 10**call.type.precision
    ):
        raise SumOverflow("SUM(DECIMAL)")
    return to_type(total, call.type)


def _count(args: Args, call: AggCall) -> Value:
    return len(args)


def _avg(args: Args, call: AggCall) -> Value:
    values = [a[0] for a in args]
    if not values:
        return None
    special = _special(values)
    if special is not None:
        return special
    return to_type(sum((_fraction(v) for v in values), Fraction(0)) / len(values), call.type)


def _geomean(args: Args, call: AggCall) -> Value:
    """EXP of the mean of the logarithms, which there are of numbers above 0 only."""
    values = [a[0] for a in args]
    if not values or not all(v > 0 for v in values):  # nor NaN
        return None
    mean = _avg([(math.log(v),) for v in values], call)
    return math.exp(mean)


def _extreme(sign: int) -> Callable[[Args, AggCall], Value]:
    def pick(args: Args, call: AggCall) -> Value:
        best = None
        for (value,) in args:
            if best is None or sign * compare(value, best) > 0:
                best = value
        return best

    return pick


def _spread(sample: bool, root: bool) -> Callable[[Args, AggCall], Value]:
    """Variance of the sample (n - 1) or of the population (n), and its root."""

    def spread(args: Args, call: AggCall) -> Value:
        values = [a[0] for a in args]
        below = len(values) - 1 if sample else len(values)
        if below <= 0:
            return None
        if _special(values) is not None:
            return math.nan
        exact = [_fraction(v) for v in values]
        mean = sum(exact, Fraction(0)) / len(exact)
        variance = _to_float(sum(((v - mean) ** 2 for v in exact), Fraction(0)) / below)
        return math.sqrt(variance) if root else variance

    return spread


def _moments(args: Args) -> tuple[int, list[tuple[Fraction, Fraction]], bool]:
    """(how many pairs without a NULL, the pairs exactly, whether one is not finite)."""
    pairs = [(y, x) for y, x in args if x is not None]
    odd = any(_odd(v) for pair in pairs for v in pair)
    return len(pairs), [] if odd else [(_fraction(y), _fraction(x)) for y, x in pairs], odd


def _centred(pairs: list[tuple[Fraction, Fraction]], a: int, b: int) -> Fraction:
    """The sum of products of distances from the means, exactly."""
    zero = Fraction(0)
    mean = [sum((p[k] for p in pairs), zero) / len(pairs) for k in (0, 1)]
    return sum(((p[a] - mean[a]) * (p[b] - mean[b]) for p in pairs), zero)


def _covar(sample: bool) -> Callable[[Args, AggCall], Value]:
    def covar(args: Args, call: AggCall) -> Value:
        n, pairs, odd = _moments(args)
        below = n - 1 if sample else n
        if below <= 0:
            return None
        return math.nan if odd else _to_float(_centred(pairs, 0, 1) / below)

    return covar


def _digits(value: Fraction) -> tuple[float, int]:
    """(the double nearest to value / 2^e, e), for an even e so that it is near 1."""
    e = (value.numerator.bit_length() - value.denominator.bit_length()) // 2 * 2
    return float(value / Fraction(2) ** e), e


def _ldexp(value: float, e: int) -> float:
    try:
        return math.ldexp(value, e)
    except OverflowError:
        return math.copysign(math.inf, value)


def _quotient(over: Fraction, under: Fraction) -> float:
    (a, e), (b, f) = _digits(over), _digits(under)
    return _ldexp(a / b, e - f)


def _line(answer: str) -> Callable[[Args, AggCall], Value]:
    """Of the line of least squares: its slope, where it crosses x = 0, and how well it fits.  Each
    number is rounded to 53 bits and then divided."""

    def line(args: Args, call: AggCall) -> Value:
        n, pairs, odd = _moments(args)
        if n == 0 or odd:
            return math.nan if odd else None
        yx, xx, yy = (_centred(pairs, *ab) * n for ab in ((0, 1), (1, 1), (0, 0)))
        if xx == 0 or (answer == "corr" and yy == 0):
            return None
        if answer == "corr":
            (a, e), (b, f), (c, g) = map(_digits, (yx, xx, yy))
            return max(-1.0, min(1.0, _ldexp(a / math.sqrt(b * c), e - (f + g) // 2)))
        if answer == "slope":
            return _quotient(yx, xx)
        y, x = (sum((p[k] for p in pairs), Fraction(0)) for k in (0, 1))
        return _quotient((y * xx - x * yx) / n, xx)

    return line


def _interpolate(values: list[Value], share: Fraction, type_: Type) -> Value:
    """The value at `share` of the way from the first to the last, on the straight line between its
    neighbours."""
    place = share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    a, b = values[low], values[high]
    if place == low or canon(a) == canon(b):
        return to_type(_fraction(a), type_) if not _odd(a) else a
    if _odd(a) or _odd(b):
        return float(a) + (float(b) - float(a)) * float(place - low)
    exact = _fraction(a) + (_fraction(b) - _fraction(a)) * (place - low)
    return _to_float(exact) if type_.kind is Kind.FLOAT else math.floor(exact)


def _odd(value: Value) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _median(args: Args, call: AggCall) -> Value:
    values = sorted((a[0] for a in args), key=sort_key)
    return _interpolate(values, Fraction(1, 2), call.type) if values else None


def _quantile_cont(args: Args, call: AggCall) -> Value:
    values = sorted((a[0] for a in args), key=sort_key)
    return _interpolate(values, _share(call), call.type) if values else None


def _quantile(args: Args, call: AggCall) -> Value:
    """The smallest value whose cumulative share is at least φ."""
    values = sorted((a[0] for a in args), key=sort_key)
    share = _share(call)
    for number, value in enumerate(values, 1):
        if Fraction(number, len(values)) >= share:
            return value
    return values[-1] if values else None


def _share(call: AggCall) -> Fraction:
    return Fraction(str(call.params[0]))  # 0.1 as written, not as the nearest double


def _first(args: Args, call: AggCall) -> Value:
    return args[0][0] if args else None


def _last(args: Args, call: AggCall) -> Value:
    return args[-1][0] if args else None


def _arg(sign: int) -> Callable[[Args, AggCall], Value]:
    """ARGMAX(x, by), ARGMIN(x, by): x of the row with the extreme `by`, the earliest of equal ones;
    NULLs ignored."""

    def pick(args: Args, call: AggCall) -> Value:
        best: tuple[Value, ...] | None = None
        for row in args:
            if row[1] is not None and (best is None or sign * compare(row[1], best[1]) > 0):
                best = row
        return None if best is None else best[0]

    return pick


def _topk(args: Args, call: AggCall) -> str | None:
    """The k most frequent values as text [a, b]; of equally frequent ones the smaller first."""
    counts: dict[Value, tuple[int, Value]] = {}
    for (value,) in args:
        value = value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0
        counts[canon(value)] = (counts.get(canon(value), (0, value))[0] + 1, value)
    ordered = sorted(counts.values(), key=lambda c: (-c[0], sort_key(c[1])))
    texts = [to_text(value, call.args[0].type) for _, value in ordered[: int(str(call.params[0]))]]
    return f"[{', '.join(texts)}]" if texts else None


def _counts(args: Args) -> dict[Value, int]:
    counts: dict[Value, int] = {}
    for (value,) in args:
        counts[canon(value)] = counts.get(canon(value), 0) + 1
    return counts


def _mode(args: Args, call: AggCall) -> Value:
    counts = _counts(args)
    values = sorted((a[0] for a in args), key=sort_key)  # of equally frequent ones the first
    return max(values, key=lambda v: counts[canon(v)], default=None)


def _entropy(args: Args, call: AggCall) -> Value:
    """log2 n less the mean of c log2 c over the counts c, each such term rounded."""
    counts = _counts(args).values()
    if len(counts) < 2:
        return 0.0 if counts else None
    terms = sum((Fraction(c * math.log2(c)) for c in counts), Fraction(0))
    return max(0.0, math.log2(len(args)) - _to_float(terms / len(args)))


def _string_agg(args: Args, call: AggCall) -> Value:
    return str(call.params[0]).join(a[0] for a in _ordered(args, call)) if args else None


def _array_agg(args: Args, call: AggCall) -> Value:
    most = call.params[0]
    assert isinstance(most, int)
    return packed([a[0] for a in _ordered(args, call)][:most], call.type) if args else None


def _ordered(args: Args, call: AggCall) -> Args:
    """By ORDER BY inside of the call: arguments behind the first, and how each goes."""
    for k in range(len(call.args) - 1, 0, -1):
        how = str(call.params[k - len(call.args)])
        down, first = how.startswith("desc"), how.endswith("first")
        args = sorted(args, key=lambda a, k=k, d=down, f=first: order_key(a[k], d, f))  # type: ignore[misc]
    return args


def _buckets(args: Args, call: AggCall) -> Value:
    edges = unpacked(str(call.params[0]), list_of(call.args[0].type))
    counts = [0] * (len(edges) + 1)
    for (x,) in args:
        counts[sum(compare(x, edge) >= 0 for edge in edges)] += 1
    return packed(counts, call.type) if args else None


def _sample(args: Args, call: AggCall) -> Value:
    k = call.params[0]
    assert isinstance(k, int)
    drawn = sorted(
        (a for a in args if a[1] is not None),
        key=lambda a: (hash_of(a[1]), packed([a[0]], call.type)),
    )
    return packed([x for x, _ in drawn[:k]], call.type) if drawn else None


def _bool(fold: Callable[[list[bool]], bool]) -> Callable[[Args, AggCall], Value]:
    return lambda args, call: fold([a[0] for a in args]) if args else None


def _longest(args: Args, sign: int) -> list[tuple[Value, ...]]:
    """The longest run of rows whose last values do not fall (sign -1: rise), the earliest such."""
    runs: list[list[tuple[Value, ...]]] = []
    for row in args:
        if row[-1] is None:
            continue
        if runs and sign * compare(row[-1], runs[-1][-1][-1]) >= 0:
            runs[-1].append(row)
        else:
            runs.append([row])
    return max(runs, key=len, default=[])


def _run(sign: int, answer: Callable[[Args], Value]) -> Callable[[Args, AggCall], Value]:
    def find(args: Args, call: AggCall) -> Value:
        run = _longest(args, sign)
        return answer(run) if run else None

    return find


_AGGREGATES: dict[str, Callable[[Args, AggCall], Value]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "geomean": _geomean,
    "min": _extreme(-1),
    "max": _extreme(1),
    "var": _spread(True, False),
    "var_pop": _spread(False, False),
    "stddev": _spread(True, True),
    "stddev_pop": _spread(False, True),
    "covar_pop": _covar(False),
    "covar_samp": _covar(True),
    "corr": _line("corr"),
    "regr_slope": _line("slope"),
    "regr_intercept": _line("intercept"),
    "median": _median,
    "quantile": _quantile,
    "quantile_cont": _quantile_cont,
    "first": _first,
    "last": _last,
    "argmax": _arg(1),
    "argmin": _arg(-1),
    "longest_rise": _run(1, len),
    "longest_fall": _run(-1, len),
    "rise_start": _run(1, lambda run: run[0][0]),
    "rise_end": _run(1, lambda run: run[-1][0]),
    "fall_start": _run(-1, lambda run: run[0][0]),
    "fall_end": _run(-1, lambda run: run[-1][0]),
    "topk": _topk,
    "string_agg": _string_agg,
    "array_agg": _array_agg,
    "histogram": _buckets,
    "sample": _sample,
    "mode": _mode,
    "entropy": _entropy,
    "approx_histogram": histogram,
    "approx_intersect": histogram,
    "bool_and": _bool(all),
    "bool_or": _bool(any),
    "python_aggregate": own.aggregate,
}
