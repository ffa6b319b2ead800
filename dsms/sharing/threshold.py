"""HAVING COUNT(*) > v, COUNT(*) < v, MAX(x) > v and the like: the condition of a query by which a
collective index finds the groups of its answer (Arasu and Widom 2004, §4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isfinite
from typing import Literal

from dsms.aggregates.cards import CARDS
from dsms.operators.expressions import can_fail
from dsms.sharing.request import Wanted
from dsms.sql import logical as lp
from dsms.sql.catalog import Option
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit, conjuncts
from dsms.sql.types import Kind, Type
from dsms.synopses.collective import MOST

MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge", "eq": "eq"}
ULPS = Decimal(2) ** -50  # what a number changes by, at most, when it becomes a double
NUMBERS = (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.INTERVAL, Kind.TIMESTAMP)
WHOLE = (Kind.INT, Kind.INTERVAL, Kind.DECIMAL)
# an index for any value has levels for counts up to here at once, and up to there whatever came
AT_ONCE, UNSEEN = 1 << 10, 1 << 24
# with these options a query is not answered from synopses of other conditions
APART = frozenset(("own", "collective"))
Wish = Literal["auto", "collective", "none"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Only groups of which `call` is above `least` (>= 0, in units of its last decimal) are in the
    answer; of a MAX (MIN): those whose value is at least that (whose value with its sign
    changed); `below`: those of which there are fewer than `least` rows.  `condition`: that says
    so, and no more."""

    call: AggCall
    least: float  # of counts and sums an int
    below: bool = False
    condition: Expr | None = None


@dataclass(slots=True)
class Seeking:
    """How a member finds its groups: `threshold`, once that is `known`, and by the index as it is
    wished.  `any_value`: look-ups say the threshold, `most` the highest of counts so far.
    `within`: the share of the threshold by which groups may miss it (0: none may)."""

    wish: Wish = "auto"
    within: float = 0.0
    known: bool = False
    threshold: Threshold | None = field(default=None)
    any_value: bool = False
    most: int = 0

    def know(self, found: Threshold | None) -> None:
        """By that the groups are found now."""
        if found is not None and self.any_value and extreme(found.call):
            found = None  # whose bounds an index knows ahead
        if found is not None and (self.any_value or found.below):
            self.most = max(self.most, rounded_up(int(found.least)))
        self.known, self.threshold = True, found

    @property
    def alone(self) -> bool:
        """Whether its index is the member's own, and knows at each boundary no more than came
        before: what it says depends on that."""
        return self.within > 0 or (self.threshold is not None and self.threshold.below)

    @property
    def levels(self) -> int:
        """Of each size, so that groups miss the threshold by no more than they may."""
        return 2 if not self.within else levels_within(self.within)

    def span(self, largest: int) -> tuple[float, ...]:
        """Thresholds that an index of the member's must serve as well as one made for them;
        `largest`: no sum is larger."""
        if self.threshold is None:
            return ()
        if self.any_value or self.threshold.below:
            return (0, min(self.most, largest))
        return (self.threshold.least,)


def rounded_up(number: int) -> int:
    """The next power of four, from `AT_ONCE` on: so an index grows a few times, if at all."""
    return max(AT_ONCE, min(4 ** (number.bit_length() // 2 + 1), MOST - 1))


def apart(options: Mapping[str, Option]) -> bool:
    """Whether a query with these options is not answered from synopses of other conditions."""
    return options.get("synopsis") in APART or "approximate" in options


def levels_within(within: float) -> int:
    """Levels of each size with which a look-up errs by that share of its threshold at most: levels
    by 2 / (p + 2), units by 1 / 4 p."""
    levels = 1
    while 2 / (levels + 2) + 1 / (4 * levels) > within:
        levels += 1
    return levels


def seeking(options: Mapping[str, Option]) -> Seeking:
    """How a query with these options finds its groups."""
    if "approximate" in options:
        return Seeking("collective", float(options["approximate"]))
    match options.get("synopsis"):
        case "collective":
            return Seeking("collective")
        case None | "auto" | "own":
            return Seeking("auto")
    return Seeking("none")


def threshold(
    wanted: Wanted,
    above: tuple[lp.Select | lp.Project, ...],
    within: float = 0.0,
    below: bool = False,
) -> Threshold | None:
    """The condition of the query that leaves the fewest groups; None where every group must be
    looked at.  `within`: one of which the index's own answer may be taken; `below`: also those of
    small groups, of which there are many as a rule."""
    if not wanted.keys:
        return None
    having: list[Expr] = []
    for node in above:
        if not isinstance(node, lp.Select):
            break
        having += conjuncts(node.predicate)
    if any(map(can_fail, having)):
        return None  # each group counts that fails
    found = [t for c in having if (t := _bound(c, len(wanted.keys), wanted.aggs)) is not None]
    if within:
        found = [t for t in found if not extreme(t.call) and t.condition and not wanted.until]
    if wanted.until or not below:
        found = [t for t in found if not t.below]
    found.sort(key=lambda t: (not t.below, not extreme(t.call), t.least))
    return found[-1] if found else None


def _bound(condition: Expr, keys: int, aggs: tuple[AggCall, ...]) -> Threshold | None:
    """agg > constant, however it is written."""
    for op, left, right in _comparisons(condition):
        match left, right:
            case Col(index), Lit(value=int() | float() | Decimal() as value):
                rounded = False
            case Call("cast", (Col(index),), Type(kind=Kind.FLOAT)), Lit(value=float() as value):
                rounded = True
            case _:
                continue
        if index < keys or isinstance(value, bool) or not isfinite(value):
            continue
        call = aggs[index - keys]
        if extreme(call) and (found := _extreme_bound(call, op, value)) is not None:
            return found
        if countable(call) and (found := _sum_bound(call, op, value, rounded)) is not None:
            return found if op == "eq" else replace(found, condition=condition)
        if rows_alone(call) and (found := _below(call, op, value)) is not None:
            return found
    return None


def _below(call: AggCall, op: str, value: float | Decimal) -> Threshold | None:
    """COUNT(*) < value: of whose groups each has a row."""
    if op not in ("lt", "le"):
        return None
    rounding = ROUND_CEILING if op == "lt" else ROUND_FLOOR
    least = int(Decimal(value).to_integral_value(rounding)) + (op == "le")
    return Threshold(call, least, below=True) if 0 < least < UNSEEN else None


def _sum_bound(call: AggCall, op: str, value: float | Decimal, rounded: bool) -> Threshold | None:
    least = _least(op, Decimal(value).scaleb(call.type.scale), rounded)
    return None if least is None or not 0 <= least < MOST else Threshold(call, least)


def _extreme_bound(call: AggCall, op: str, value: float | Decimal) -> Threshold | None:
    """Values and bounds are compared as doubles, to which rounding is monotone; of decimals, whose
    conversion need not be, a little below."""
    if op != "eq" and (op in ("gt", "ge")) != (call.fn == "max"):
        return None
    signed = float(value) if call.fn == "max" else -float(value)
    slack = abs(signed) * float(ULPS) if call.type.kind is Kind.DECIMAL else 0.0
    return Threshold(call, signed - slack)


def _comparisons(condition: Expr) -> Iterator[tuple[str, Expr, Expr]]:
    match condition:
        case Call(fn, (left, right)) if fn in MIRRORED:
            yield fn, left, right
            yield MIRRORED[fn], right, left


def _least(op: str, value: Decimal, rounded: bool) -> int | None:
    """What a sum is above that fulfils the comparison; None where it has no lower bound.
    `rounded`: to a double, before it is compared."""
    if op not in ("gt", "ge", "eq"):
        return None
    if rounded:
        return int((value - abs(value) * ULPS).to_integral_value(ROUND_FLOOR)) - 1
    if op == "gt":
        return int(value.to_integral_value(ROUND_FLOOR))
    return int(value.to_integral_value(ROUND_CEILING)) - 1


def countable(call: AggCall) -> bool:
    """Whether it counts, or adds up whole numbers."""
    if call.distinct:
        return False
    return counts(call) or sums(call)


def counts(call: AggCall) -> bool:
    """Whether it is a COUNT."""
    return CARDS[call.fn].family == "counts"


def rows_alone(call: AggCall) -> bool:
    """Whether it counts rows, all of them."""
    return counts(call) and not call.args and call.filter is None


def extreme(call: AggCall) -> bool:
    """Whether it is the MAX or MIN of numbers."""
    return call.fn in ("max", "min") and call.type.kind in NUMBERS


def sums(call: AggCall) -> bool:
    """Whether it adds up whole numbers (and fails where these are too many)."""
    return call.fn == "sum" and call.args[0].type.kind in WHOLE
