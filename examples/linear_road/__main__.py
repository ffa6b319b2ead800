"""Tolls that follow the traffic: the Linear Road benchmark in one script of derived streams.

    python -m examples.linear_road [--xways N] [--cars N] [--seconds N]

Cars report where they are, `road.cql` finds jams, accidents and tolls, and all of it is recomputed
report by report.  Exit code 0 only if every toll and accident came out the same.
"""

from __future__ import annotations

import argparse
import sys

from examples.linear_road.play import Played, compared, played
from examples.linear_road.traffic import SECOND, Traffic


def main(argv: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.linear_road", description=str(__doc__).splitlines()[0]
    )
    parser.add_argument("--xways", type=int, default=1, help="expressways (default 1)")
    parser.add_argument("--cars", type=int, default=8000, help="cars on each (default 8000)")
    parser.add_argument("--seconds", type=int, default=480, help="of traffic (default 480)")
    asked = parser.parse_args(argv)
    traffic = list(Traffic(asked.xways, asked.cars).seconds(asked.seconds))
    found = played(traffic)
    print(f"{sum(map(len, traffic)):,} reports of {asked.seconds} s")
    _shown(found)
    wrong = compared(traffic, found)
    print(wrong or "each toll and each accident is as recomputed")
    return int(bool(wrong))


def _shown(found: Played) -> None:
    for minute in range(found.tolls[-1][0] // (60 * SECOND) + 1 if found.tolls else 0):
        tolls = [t for t in found.tolls if t[0] // (60 * SECOND) == minute]
        accidents = [a for a in found.accidents if a[0] // (60 * SECOND) == minute]
        dear = [t[-1] for t in tolls if t[-1]]
        print(
            f"minute {minute}: {len(tolls)} cars entered a segment, {len(dear)} paid "
            f"{sum(dear):,} in all; {len(accidents)} accidents"
        )


if __name__ == "__main__":
    sys.exit(main())
