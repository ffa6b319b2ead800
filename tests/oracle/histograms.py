"""APPROX_HISTOGRAM and APPROX_INTERSECT from their definition: on the finest level on which no more
than g ranges have values, the ranges that have some, and how many."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from dsms.sql.expr import AggCall
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT, Kind, Type
from tests.oracle.casts import to_text
from tests.oracle.values import Value

Number = int | float

COUNTED = "counts are exact; every value is in one range, from its first edge to below its second"
COMMON = (
    "values that both sides have are in these ranges, whose counts are exact; a range may have "
    "values of both sides and none in common"
)


def histogram(args: Sequence[tuple[Value, ...]], call: AggCall) -> str | None:
    """The answer, as JSON; with a side beside each value, of the ranges that both sides have."""
    g, scale = int(str(call.params[0])), "log" if "log" in call.params else "linear"
    kind = call.args[0].type
    args = [a for a in args if None not in a]
    sides = [[a[0] for a in args]]
    if len(call.args) == 2:
        sides = [[x for x, side in args if side is wanted] for wanted in (True, False)]
    if not args:
        return None
    counts, level = _counted([[x for x in side if math.isfinite(x)] for side in sides], g, scale)  # type: ignore[arg-type]
    odd = [Counter(str(x) for x in side if not math.isfinite(x)) for side in sides]  # type: ignore[arg-type]
    ranges = [
        [*(_json(e, kind) for e in _edges(i, level, scale, kind)), *(c[i] for c in counts)]
        for i in sorted(set().union(*counts))
    ]
    others = [[name, *(c[name] for c in odd)] for name in ("-inf", "inf", "nan")]
    kept = [[e for e in entries if all(e[-len(sides) :])] for entries in (ranges, others)]
    told = {"ranges": kept[0], "others": kept[1]}
    return json.dumps({**told, "guarantee": COUNTED if len(sides) == 1 else COMMON})


def _counted(sides: list[list[Number]], g: int, scale: str) -> tuple[list[Counter[int]], int]:
    values = [x for side in sides for x in side]
    level = _finest(values, scale)
    while len({_place(x, level, scale) for x in values}) > g:
        level += 1
    return [Counter(_place(x, level, scale) for x in side) for side in sides], level


def _finest(values: list[Number], scale: str) -> int:
    if scale == "log" or not any(isinstance(x, float) for x in values):
        return 0
    return max(-1074, *(math.frexp(x)[1] - 53 if x else -1074 for x in values))


def _place(x: Number, level: int, scale: str) -> int:
    if scale == "linear":
        return math.floor(Fraction(x) / Fraction(2) ** level)
    return _word(x) >> level


def _word(x: Number) -> int:
    """The bits of the largest FLOAT that is not above x, with its sign."""
    near = float(x)
    if Fraction(near) > x:
        near = math.nextafter(near, -math.inf)
    (size,) = struct.unpack("<q", struct.pack("<d", abs(near)))
    return int(-size if near < 0 else size)


def _edges(place: int, level: int, scale: str, kind: Type) -> list[Number]:
    edges: list[Number | Fraction] = []
    for i in (place, place + 1):
        edges.append(i * Fraction(2) ** level if scale == "linear" else _float(i << level))
    if kind.kind is Kind.FLOAT:
        return [_rounded(e) for e in edges]
    whole = [int(math.copysign(2**63, e)) if _endless(e) else math.ceil(e) for e in edges]
    low, high = (max(-(2**63), min(2**63, e)) for e in whole)
    match kind.kind:
        case Kind.TIMESTAMP:
            return [max(low, MIN_INSTANT), min(high, MAX_INSTANT)]
        case Kind.INTERVAL:
            return [low, min(high, 2**63 - 1)]
    return [low, high]


def _endless(edge: Number | Fraction) -> bool:
    return isinstance(edge, float) and math.isinf(edge)


def _float(word: int) -> float:
    """What a word stands for; infinity where there is no such number."""
    (size,) = struct.unpack("<d", struct.pack("<q", min(abs(word), 0x7FF0 << 48)))
    return float(math.copysign(size, word))


def _rounded(edge: Number | Fraction) -> float:
    try:
        return float(edge) + 0.0
    except OverflowError:
        return math.inf if edge > 0 else -math.inf


def _json(edge: Number, kind: Type) -> object:
    plain = kind.kind is Kind.INT or (kind.kind is Kind.FLOAT and math.isfinite(edge))
    return edge if plain else to_text(edge, kind)
