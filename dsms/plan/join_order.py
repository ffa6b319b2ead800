"""The order in which a MultiJoin looks into its windows (Golab 2006, §5.2.1, §5.3).

One global order stands for all: a row that came with input i is compared with the others in that
order, i left out (Table 5.2).  What it costs to look into a window depends on which windows have
been looked into before, not on their order among each other.  So the cheapest order, and the next,
are found over sets of windows, without going through all n! of them.

Two models of what that costs:

`nested`     comparisons per unit of time as in §5.3.1: C_j / b_j for each partial result so far
`pipelined`  our operator finds the rows of a key in each window once for a new row and then
             combines them: so a window costs once, and nothing if one before it had none
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dsms.plan.estimate import Estimate
from dsms.plan.physical import JoinOrder
from dsms.plan.statistics import column_of
from dsms.sql import logical as lp
from dsms.sql.expr import Expr

# a look into a window, and each row that is found there, as shares of an operation
# (`dsms.plan.cost`), measured with the kernel alone: about 20 to 30 ns and 10 of 100
LOOKED, LISTED = 0.2, 0.1


@dataclass(frozen=True, slots=True)
class JoinedWindow:
    """An input, in the symbols of Table 5.1.

    rate      λ, rows per unit of time;  size: C = λ·T, rows alive
    distinct  v, values of the common attribute;  buckets: b, of its hash table"""

    rate: float
    size: float
    distinct: float
    buckets: float = 1.0


@dataclass(frozen=True)
class Costs:
    """What it costs to look into windows; sets of windows are bit sets."""

    windows: Sequence[JoinedWindow]
    _known: dict[tuple[int, int], float] = field(default_factory=dict)

    def after(self, i: int, before: int) -> float:
        """What is left of a new row of input i behind the windows `before`."""
        key = i, before
        if key not in self._known:
            self._known[key] = self._after(i, before)
        return self._known[key]

    def _after(self, i: int, before: int) -> float:
        raise NotImplementedError

    def step(self, before: int, j: int) -> float:
        """Per unit of time, to look into window j from all others, those `before` having been
        looked into."""
        others = (i for i in range(len(self.windows)) if i != j)
        return sum(self.look(i, before & ~(1 << i), j) for i in others)

    def look(self, i: int, before: int, j: int) -> float:
        """... from new rows of input i alone."""
        raise NotImplementedError

    def total(self, order: Sequence[int]) -> float:
        """Of a global order."""
        before, cost = 0, 0.0
        for j in order:
            cost += self.step(before, j)
            before |= 1 << j
        return cost

    def best(self) -> JoinOrder:
        """The cheapest order and the next; of equals the one that keeps the inputs as they are."""
        n = len(self.windows)
        found: dict[int, list[tuple[float, tuple[int, ...]]]] = {0: [(0.0, ())]}
        for done in range(1, 1 << n):
            ways = [
                (cost + step, (*order, j))
                for j in range(n)
                if done >> j & 1
                for step in (self.step(done & ~(1 << j), j),)
                for cost, order in found[done & ~(1 << j)]
            ]
            found[done] = sorted(ways)[:2]
        (cost, first), (other, second) = found[(1 << n) - 1]
        return JoinOrder(first, cost, second, other)


class Nested(Costs):
    """X_i of §5.3.1: λ_i times, for each partial result so far, C_j / b_j comparisons."""

    def look(self, i: int, before: int, j: int) -> float:
        new, window = self.windows[i], self.windows[j]
        return new.rate * self.after(i, before) * window.size / window.buckets

    def _after(self, i: int, before: int) -> float:
        """Results that a row of i has with the windows `before`: each divides by the larger number
        of values, and the smaller one is left."""
        results, values = 1.0, self.windows[i].distinct
        for k, window in enumerate(self.windows):
            if before >> k & 1:
                results *= window.size / max(values, window.distinct)
                values = min(values, window.distinct)
        return results


class Pipelined(Costs):
    """Our operator: a row's key is looked for in each window once, until one has no row of it."""

    def look(self, i: int, before: int, j: int) -> float:
        new, window = self.windows[i], self.windows[j]
        found = window.size / max(new.distinct, window.distinct)
        return new.rate * self.after(i, before) * (LOOKED + LISTED * found)

    def _after(self, i: int, before: int) -> float:
        """Share of the rows of i that have partners in all windows `before`: the value is among
        theirs, and a row of it is there."""
        values, there = self.windows[i].distinct, 1.0
        least = values
        for k, window in enumerate(self.windows):
            if before >> k & 1:
                least = min(least, window.distinct)
                there *= self._filled[k]
        return least / values * there

    @cached_property
    def _filled(self) -> list[float]:
        """Share of each window's values of which it has a row."""
        return [-math.expm1(-w.size / w.distinct) for w in self.windows]


def order_of(node: lp.MultiJoin, sizes: Sequence[Estimate]) -> JoinOrder:
    """The cheapest order of its inputs."""
    return costs_of(node, sizes).best()


def costs_of(node: lp.MultiJoin, sizes: Sequence[Estimate]) -> Pipelined:
    """What each order of its inputs costs."""
    windows = [
        JoinedWindow(e.rate, e.size, _values([m for same in node.keys if (m := same[k])], e))
        for k, e in enumerate(sizes)
    ]
    return Pipelined(windows)


def _values(exprs: Sequence[Expr], rows: Estimate) -> float:
    """Different combinations of their values, at least one and at most as many as rows."""
    values = math.prod(column_of(e, rows.columns).distinct for e in exprs)
    return values if len(exprs) == 1 else max(1.0, min(values, rows.size))


def probing(order: Sequence[int], i: int) -> tuple[int, ...]:
    """The order that new rows of input i follow (Table 5.2)."""
    return tuple(j for j in order if j != i)
