"""Linear Road (Arasu et al., VLDB 2004): how many expressways one machine follows.

The script of `examples/linear_road`: derived streams for the minutes of segments, cars that enter
segments, accidents and tolls.  Tolls and accidents of a smaller traffic are recomputed report by
report first.  Traffic is as dense as at the end of the paper's three hours from the beginning on:
51,000 cars, 1,700 reports a second on each expressway.

A second of traffic is a frame and a heartbeat.  Its CPU time says how long it would keep one core;
`latest` is how long after its second an answer comes if frames arrive second by second and wait for
each other.  L is the largest number of expressways for which that is within the paper's 5 seconds.
"""

from __future__ import annotations

from itertools import accumulate

from examples.linear_road.play import compared, played
from examples.linear_road.traffic import Traffic
from tests.benchmarks.harness import Options, Section, Table, same, shown

CARS = 51_000
IN_TIME = 5.0  # seconds


def section(options: Options) -> Section:
    """The rating."""
    cars, seconds = options.pick((8_000, 480), (4_000, 300), (300, 200))
    traffic = list(Traffic(1, cars).seconds(seconds))
    same("tolls and accidents", compared(traffic, played(traffic)), "")
    rows, best = [], 0
    for xways in options.pick((1, 4, 8, 16, 32, 48, 64), (1, 8, 32), (1,)):
        line, fine = _line(xways, options.pick(600, 120, 70), options.pick(CARS, CARS, 300))
        rows.append(line)
        if not fine:
            break
        best = xways
    header = ("expressways", "reports/s", "taken, reports/s", "longest second", "latest, s")
    table = Table("Expressways", header, tuple(rows), (f"L = {best}, of those tried.",))
    return Section("Linear Road", __doc__ or "", [table])


def _line(xways: int, seconds: int, cars: int) -> tuple[tuple[str, ...], bool]:
    found = played(Traffic(xways, cars).seconds(seconds), kept=False)
    waits = list(accumulate(found.costs, lambda late, cost: max(0.0, late - 1.0) + cost))
    reports = xways * cars * (seconds // 30)
    line = (
        str(xways),
        shown(reports / seconds),
        shown(reports / sum(found.costs)),
        f"{max(found.costs):.2f} s",
        f"{max(waits):.2f}",
    )
    return line, max(waits) <= IN_TIME
