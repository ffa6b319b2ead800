"""What comes to joins at work: rates, sizes and values of their inputs.

All of it is at hand: rows are counted where they leave an input, the join keeps those that are
alive, and of these a sample tells how alike the keys are.  If two rows of the sample have one key
with probability p, it counts as 1 / p values: of uniform keys that is how many there are, and where
some are common it is what joins feel of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from dsms.plan.chooser import Chooser
from dsms.plan.estimate import Estimate
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.plan.statistics import Statistics
from dsms.running.exchanging import JoinInput
from dsms.sql.types import FOREVER

SAMPLE = 2048  # rows
SURE = 256  # pairs of alike rows of which a figure is made that is good for comparisons
ALIKE = 1.5  # figures within that ratio count as the same
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """Of an input: rows/s, rows alive now, values of key columns by position."""

    rate: float
    size: float
    values: Mapping[int, float]

    def alike(self, other: Figures, lasting: bool) -> bool:
        """Whether what changed is not worth a search; how many rows are alive counts where that
        does not follow from the rate.  Of few rows it can't be told how many values there are if
        these are many."""
        pairs = [(self.rate, other.rate)]
        pairs += [(self.size, other.size)] if lasting else []
        sure = min(self.size, other.size, SAMPLE) ** 2 / SURE
        known = ((v, other.values.get(k, v)) for k, v in self.values.items())
        pairs += [(min(a, sure), min(b, sure)) for a, b in known]
        return all(_near(a, b) for a, b in pairs)

    def estimate(self, phys: Phys) -> Estimate:
        """What to expect of the input, which is that part of a plan.  Where rows live for a while
        so many will be alive as come in that while, once the window is full."""
        _, usual = Chooser(Statistics(), PlanOptions()).build(phys.node)
        lasting = lasts(usual)
        columns = list(usual.columns)
        for k, found in self.values.items():
            columns[k] = replace(columns[k], distinct=max(1.0, found))
        size = max(1.0, self.size if lasting else self.rate * usual.span)
        return replace(usual, rate=max(1e-6, self.rate), size=size, columns=tuple(columns))

    def plain(self) -> list[Any]:
        """In terms of JSON."""
        return [self.rate, self.size, sorted(self.values.items())]

    @staticmethod
    def of(plain: Iterable[Any]) -> Figures:
        """From such terms."""
        rate, size, values = plain
        return Figures(rate, size, dict(values))


def lasts(rows: Estimate) -> bool:
    """Whether rows are alive for no time that is known beforehand."""
    return math.isinf(rows.span) or rows.premature > 0


def _near(a: float, b: float) -> bool:
    return max(a, b) <= ALIKE * max(min(a, b), 1e-9)


def figures(one: JoinInput, columns: Iterable[int], rows: int, micros: int, clock: int) -> Figures:
    """Of an input, of which so many rows came in the last so many µs up to the clock."""
    alive, store = one.living(clock), one.rows.store
    slots = evenly(alive, SAMPLE)
    values = {k: _values(store.cols[k].gather(slots)) for k in columns}
    return Figures(rows * SECOND / max(1, micros), float(len(alive)), values)


def evenly(slots: np.ndarray, most: int) -> np.ndarray:
    """At most so many of them."""
    if len(slots) <= most:
        return slots
    return slots[np.linspace(0, len(slots) - 1, most).astype(np.int64)]


def _values(column: Any) -> float:
    """How many values count, as the sample has them: all pairs over those that are alike."""
    n = len(column)
    counts = pc.value_counts(column).field("counts").to_numpy().astype(np.float64)
    alike = float((counts * (counts - 1)).sum())
    pairs = float(n) * max(n - 1, 1)
    return max(1.0, pairs / alike if alike else pairs)


def longest(inputs: Iterable[JoinInput]) -> int | None:
    """µs for which a row of the inputs is alive at most, of those that say so beforehand; None: of
    none."""
    found = []
    for one in inputs:
        store, slots = one.rows.store, np.arange(len(one.rows.store))[-1:]
        if len(slots) and store.exp.view[slots[0]] < FOREVER:
            found.append(int(store.exp.view[slots[0]] - store.ts.view[slots[0]]))
    return max(found, default=None)
