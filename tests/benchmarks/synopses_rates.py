"""Figs 10 and 11 of 004: how fast three synopses take updates and look-ups, against the length of
windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import Algebra, CellRows
from dsms.aggregates.registry import algebra
from dsms.sql.expr import AggCall, Col
from dsms.sql.types import INT
from dsms.synopses.cells import Synopsis
from dsms.synopses.interval import Interval
from dsms.synopses.running import Running
from tests.benchmarks import synopses_kernels as kernels
from tests.benchmarks.harness import Options, Plot, Table, ratio, same, shown

SHARE = 0.9
TOGETHER = 1000  # tuples of a batch, spans of a probe
RING = 1 << 17  # the longest window of Fig 11
NAMES = ("R-INT, SUM", "B-INT, MAX", "B-INT-QNT, QUANTILE")
Answer = Callable[[np.ndarray], int]


def quantile(values: np.ndarray) -> int:
    """The smallest value that at least SHARE of them do not exceed."""
    return int(np.sort(values)[max(0, int(np.ceil(SHARE * len(values))) - 1)])


TRUE: dict[str, Answer] = {
    NAMES[0]: lambda v: int(v.sum()),
    NAMES[1]: lambda v: int(v.max()),
    NAMES[2]: quantile,
}


@dataclass
class Kept:
    """A synopsis of dsms with a sub-window a tuple."""

    how: Algebra
    synopsis: Synopsis

    @classmethod
    def of(cls, name: str) -> Kept:
        """By the name of the figure."""
        column = (Col(0, INT),)
        match name.split(", ")[1]:
            case "SUM":
                how = algebra(AggCall("sum", column, INT))
                return cls(how, Running(how))
            case "MAX":
                how = algebra(AggCall("max", column, INT))
        if "QNT" in name:
            how = algebra(AggCall("quantile", column, INT, params=(SHARE,)))
        return cls(how, Interval(how))

    def update(self, values: np.ndarray, longest: int) -> None:
        """Take values in, TOGETHER at a time."""
        order = np.arange(TOGETHER)
        for start in range(0, len(values), TOGETHER):
            part = pa.array(values[start : start + TOGETHER])
            n = len(part)
            state = self.how.lift(CellRows(order[:n], order[:n], order[:n], (part,)), n)
            self.synopsis.append(state, n)
            self.synopsis.trim(self.synopsis.next - longest)

    def lookup(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Answer spans, TOGETHER at a time."""
        parts = []
        for start in range(0, len(low), TOGETHER):
            state = self.synopsis.probe(
                low[start : start + TOGETHER], high[start : start + TOGETHER]
            )
            parts.append(np.asarray(self.how.lower(state)))
        return np.concatenate(parts)


class Looped:
    """The same in loops tuple by tuple; `longest` is a power of two."""

    def __init__(self, name: str, longest: int) -> None:
        levels = longest.bit_length()
        self.name = name
        self.state = np.zeros(2 * longest if name == NAMES[0] else (levels, longest), np.int64)
        self.before = np.arange(levels * longest + 1) if name == NAMES[2] else None

    def update(self, values: np.ndarray) -> None:
        kernel = dict(
            zip(
                NAMES,
                (kernels.running_updates, kernels.interval_updates, kernels.quantile_updates),
                strict=True,
            )
        )[self.name]
        kernel(values, self.state)

    def lookup(self, low: np.ndarray, high: np.ndarray) -> int:
        """A checksum."""
        if self.name == NAMES[0]:
            return kernels.running_lookups(self.state, low, high)
        if self.name == NAMES[1]:
            return kernels.interval_lookups(self.state, low, high)
        return kernels.quantile_lookups(self.state, self.before, low, high, SHARE)


def checksum(answers: Sequence[int]) -> int:
    """What a loop tells of these answers: 64 bits, wrapping."""
    total = 0
    for answer in answers:
        total = (total * 31 + int(answer)) & ((1 << 64) - 1)
    return total - (1 << 64) if total >> 63 else total


def updates(options: Options) -> list[Table | Plot]:
    """Fig 10."""
    from tests.benchmarks.synopses import rate

    sizes = options.pick(
        [1 << k for k in (8, 10, 12, 14, 16, 17, 18)], [1 << 8, 1 << 12, 1 << 16], [64, 256]
    )
    count = options.pick(1 << 19, 1 << 16, 1 << 9)
    values = np.random.default_rng(10).integers(0, 1 << 40, count)
    found: dict[str, list[float]] = {
        f"{name}{where}": [] for where in (" (loop)", "") for name in NAMES
    }
    for size in sizes:
        for name in NAMES:
            looped, warm = Looped(name, size), values[: 2 * size]
            looped.update(warm)
            found[f"{name} (loop)"].append(rate(count, options, looped.update, values))
            kept = Kept.of(name)
            kept.update(warm, size)
            found[name].append(rate(count, options, kept.update, values, size))
    notes = tuple(_growth(name, found[name], sizes, "N_max") for name in found)
    return _parts("10", "updates a second against the longest window", "N_max", sizes, found, notes)


def lookups(options: Options) -> list[Table | Plot]:
    """Fig 11."""
    from tests.benchmarks.synopses import rate

    ring = options.pick(RING, RING, 1 << 9)
    widths = options.pick([1, 10, 100, 1000, 10_000, 100_000], [10, 1000, 100_000], [1, 10, 300])
    count, rng = options.pick(20_000, 5_000, 100), np.random.default_rng(11)
    values = rng.integers(0, 1 << 40, 2 * ring)
    found: dict[str, list[float]] = {
        f"{name}{where}": [] for where in (" (loop)", "") for name in NAMES
    }
    for name in NAMES:
        looped, kept = Looped(name, ring), Kept.of(name)
        looped.update(values)
        kept.update(values, ring)
        for width in widths:
            low = rng.integers(ring, 2 * ring - width + 1, count)
            _check(name, looped, kept, values, low, low + width)
            found[f"{name} (loop)"].append(rate(count, options, looped.lookup, low, low + width))
            found[name].append(rate(count, options, kept.lookup, low, low + width))
    notes = tuple(_growth(name, found[name], widths, "W") for name in found)
    return _parts(
        "11", f"look-ups a second against the width, N_max = {ring}", "W", widths, found, notes
    )


def _check(
    name: str, looped: Looped, kept: Kept, values: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Some answers from the values, all answers of loop and synopsis against each other."""
    answers = kept.lookup(low, high)
    for k in range(0, len(low), max(1, len(low) // 20)):
        same(
            f"{name} over {low[k]} .. {high[k]}",
            int(answers[k]),
            TRUE[name](values[low[k] : high[k]]),
        )
    same(f"{name}: loop and synopsis", int(looped.lookup(low, high)), checksum(answers.tolist()))


def _growth(name: str, found: list[float], sizes: Sequence[int], what: str) -> str:
    grown = sizes[-1] // sizes[0]
    cost = found[0] / found[-1]
    return f"{name}: {what} grows {grown}-fold, the cost of one {ratio(cost)}"


def _parts(
    figure: str,
    title: str,
    x: str,
    sizes: Sequence[int],
    found: dict[str, list[float]],
    notes: tuple[str, ...],
) -> list[Table | Plot]:
    rows = tuple(
        (str(size), *(shown(found[name][i]) for name in found)) for i, size in enumerate(sizes)
    )
    table = Table(f"Fig {figure}: {title}", (x, *found), rows, notes)
    lines = {name: ([float(s) for s in sizes], y) for name, y in found.items()}
    return [table, Plot(f"synopses-{figure}.png", title, x, "per s", lines)]
