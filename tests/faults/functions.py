"""Expressions by the million, in a process of their own; whatever ends it, or is answered in two
ways, is told.

    python -m tests.faults.functions --count 100000 [--first 0]

An expression is evaluated over a table of 32 rows of edge values: 625,000 of them are 20 million
evaluations.
"""

from __future__ import annotations

import argparse

from tests.faults.arrow import Death, run
from tests.faults.function_draws import expression

CHILD = "tests.faults.function_child"
STRETCH = 5000  # expressions over one table, in one process


def faults(first: int, count: int) -> list[Death]:
    """What ended the process that was at work on expressions `first` to `first + count - 1`."""
    found, number = [], first
    while number < first + count:
        size = min(STRETCH, first + count - number)
        death, _ = run(number, size, CHILD)
        if death is None:
            number += size
            continue
        found.append(death)
        number = max(death.number, number) + 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100_000)
    args = parser.parse_args()
    for first in range(args.first, args.first + args.count, STRETCH):
        for death in faults(first, min(STRETCH, args.first + args.count - first)):
            print(
                f"{death.number}: {death.how}: {expression(death.number)}\n{death.said}", flush=True
            )
        print(f"up to {first + STRETCH}", flush=True)


if __name__ == "__main__":
    main()
