"""Whole scenarios in simulated time: a server with its engine, its writers and readers, and what
the disk, the clocks, the network and its process do to them, all from one seed.

    python -m tests.faults simulation --seed 0 --count 1000 [--seconds T]
    python -m tests.faults simulation --seed 42 --count 1 --faults 0,3     with these faults alone

What must hold: each acknowledged row of a `sync` stream is there once; `interval` and `none` lose
only what their durability allows; a frame is there whole or not at all, and not if it was refused;
result rows have numbers without gaps, and are those of an engine with the same rows to which
nothing happened; nothing fails without a code.  A seed that fails is told with as few of its faults
as it takes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.faults.sim.play import Outcome, play
from tests.faults.sim.scenario import Fault, Scenario, scenario

ENOUGH = 20  # findings


@dataclass(frozen=True, slots=True)
class Finding:
    """A scenario that fails, how it fails, and the numbers of the faults that it takes."""

    seed: int
    how: str
    faults: tuple[int, ...]

    def __str__(self) -> str:
        given = scenario(self.seed).faults
        schedule = "".join(f"\n    {number}: {given[number]}" for number in self.faults)
        command = (
            f"--seed {self.seed} --count 1 --faults {','.join(map(str, self.faults)) or 'none'}"
        )
        return f"{self.how}{schedule}\n    python -m tests.faults simulation {command}"


@dataclass(slots=True)
class Told:
    """`faults`: how many of each kind there were."""

    scenarios: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    deaths: int = 0
    rows: int = 0
    refused: int = 0
    lost: int = 0
    met: int = 0
    findings: list[Finding] = field(default_factory=list)

    def add(self, given: Scenario, found: Outcome) -> None:
        self.scenarios += 1
        self.faults.update(fault.kind for fault in given.faults)
        self.deaths += len(found.deaths)
        self.rows += found.rows
        self.refused += found.refused
        self.lost += found.lost
        self.met += found.met


def run(
    seed: int,
    count: int,
    seconds: float | None = None,
    say: Callable[[str], object] = lambda text: None,
    now: Callable[[], float] = time.monotonic,
) -> Told:
    """The scenarios of seeds from `seed` on."""
    told, until = Told(), None if seconds is None else now() + seconds
    for number in range(seed, seed + count):
        given = scenario(number)
        try:
            told.add(given, play(given))
        except Exception as problem:
            told.scenarios += 1
            finding = Finding(number, how(problem), fewest(given))
            told.findings.append(finding)
            say(str(finding))
        if len(told.findings) >= ENOUGH or (until is not None and now() > until):
            break
    return told


def fewest(given: Scenario) -> tuple[int, ...]:
    """The numbers of faults without which it does not fail: each is left out in turn."""
    kept = list(range(len(given.faults)))
    for number in list(kept):
        fewer = [k for k in kept if k != number]
        if fails(given, fewer) is not None:
            kept = fewer
    return tuple(kept)


def fails(given: Scenario, numbers: list[int] | tuple[int, ...]) -> str | None:
    """How it fails with those of its faults, if it does."""
    faults: tuple[Fault, ...] = tuple(given.faults[number] for number in numbers)
    try:
        play(given, faults)
    except Exception as problem:
        return how(problem)
    return None


def how(problem: BaseException) -> str:
    if isinstance(problem, BaseExceptionGroup):
        return how(problem.exceptions[0])
    return f"{type(problem).__name__}: {problem}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, help="stop then, whatever is left of --count")
    parser.add_argument("--faults", help="numbers of the faults that come, or none; of one seed")
    args = parser.parse_args()
    if args.faults is not None:
        numbers = [int(n) for n in args.faults.split(",")] if args.faults != "none" else []
        found = fails(scenario(args.seed), numbers)
        print(found or "it does not fail")
        return int(found is not None)
    told = run(args.seed, args.count, args.seconds, lambda text: print(text, flush=True))
    print(
        f"{told.scenarios} scenarios, {told.faults.total()} faults {dict(told.faults)}, "
        f"{told.deaths} deaths, {told.met} operations and connections spoiled; {told.rows} rows, "
        f"{told.refused} frames refused, {told.lost} lost as their durability allows; "
        f"{len(told.findings)} findings"
    )
    return 1 if told.findings else 0


if __name__ == "__main__":
    sys.exit(main())
