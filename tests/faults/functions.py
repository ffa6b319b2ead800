"""Expressions by the million, in a process of their own; whatever ends it, or is answered in two
ways, is told.

    python -m tests.faults.functions --count 100000 [--first 0]

An expression is evaluated over a table of 1,024 rows of edge values, in three ways.  An evaluation
counts where text and values are others than all before, and all ways agree: a hundred of an
expression that is not refused (`function_child` has the rules).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass, field

from tests.faults.arrow import Death, run
from tests.faults.function_child import BATCH

CHILD = "tests.faults.function_child"
STRETCH = 5000  # expressions over one table, in one process


@dataclass(slots=True)
class Told:
    """How expressions ended, by code, and evaluations, by the checksum of an expression's text."""

    ends: Counter[str] = field(default_factory=Counter)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, last: str) -> None:
        """What a child says in the end."""
        ends, counts = json.loads(last)
        self.ends.update(ends)
        self.counts |= counts


def faults(first: int, count: int, told: Told) -> list[Death]:
    """What ended the process that was at work on expressions `first` to `first + count - 1`: the
    number is that of the first of some that it was at work on."""
    found, number = [], first
    while number < first + count:
        size = min(STRETCH, first + count - number)
        death, last = run(number, size, CHILD)
        if death is None:
            told.add(last)
            number += size
            continue
        found.append(death)
        number = max(death.number, number) + BATCH
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100_000)
    args = parser.parse_args()
    told = Told()
    for first in range(args.first, args.first + args.count, STRETCH):
        for death in faults(first, min(STRETCH, args.first + args.count - first), told):
            print(f"{death.number} and {BATCH - 1} more: {death.how}\n{death.said}", flush=True)
        print(
            f"up to {first + STRETCH}: {sum(told.counts.values())} evaluations of "
            f"{len(told.counts)} expressions",
            flush=True,
        )
    print(*(f"{end}={n}" for end, n in sorted(told.ends.items())))


if __name__ == "__main__":
    main()
