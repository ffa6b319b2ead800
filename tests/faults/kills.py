"""Kills at every write: of the engine, of jobs on archives, of what `dsms subscribe` writes; and
some of real processes.

    python -m tests.faults kills --count 1000 [--seed S] [--seconds T]
                                 [--servers N] [--sinks N] [--jobs N]

The `count` are drawn from all points at which a process may die over simulated files: before or
after each operation, by a kill or with the power.  --servers: kills of a server under load;
--sinks: of `dsms subscribe`; --jobs: of Spark jobs, the whole of it, its Java or its Python.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.faults import archive_points, engine_points, sink_points

SHARES = {"engine": 0.6, "archive": 0.25, "sink": 0.15}  # of the count
ENOUGH = 20  # findings


class Dying(Protocol):
    """All points at which something may die, and what must hold when it did."""

    @property
    def points(self) -> list[Any]: ...

    def suffer(self, point: Any) -> None: ...


class Archives:
    """Every kind of job on an archive."""

    def __init__(self, folder: Path, kinds: Iterable[str] = archive_points.KINDS) -> None:
        self._kinds = {kind: archive_points.Deaths(folder / kind, kind) for kind in kinds}

    @property
    def points(self) -> list[tuple[str, int, bool]]:
        """(job, operation, whether it is done)"""
        return [
            (kind, at, after)
            for kind, deaths in self._kinds.items()
            for after in (False, True)
            for at in range(1 + 2 * after, deaths.count + 1)
        ]

    def suffer(self, point: tuple[str, int, bool]) -> None:
        kind, at, after = point
        self._kinds[kind].suffer(at, after)


@dataclass(slots=True)
class Told:
    kills: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def everything(folder: Path) -> dict[str, Dying]:
    """All that may die."""
    return {
        "engine": engine_points.Crashes(folder / "engine"),
        "archive": Archives(folder / "archive"),
        "sink": sink_points.Cuts(folder),
    }


def run(
    rooms: dict[str, Dying],
    count: int,
    seed: int,
    seconds: float | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Told:
    """So many kills, drawn from all there are; each point at most once."""
    told, until = Told(), None if seconds is None else now() + seconds
    for room, point in drawn(rooms, count, Random(seed)):
        try:
            rooms[room].suffer(point)
        except Exception as problem:
            told.findings.append(f"{room} {point}: {type(problem).__name__}: {problem}")
        told.kills[room] += 1
        if len(told.findings) >= ENOUGH or (until is not None and now() > until):
            break
    return told


def drawn(rooms: dict[str, Dying], count: int, random: Random) -> Iterator[tuple[str, Any]]:
    """Points of all rooms; where one has fewer than its share, the others have more."""
    left = {room: random.sample(dying.points, len(dying.points)) for room, dying in rooms.items()}
    taken = [room for room, share in SHARES.items() for _ in range(round(count * share))][:count]
    random.shuffle(taken)
    spare = sum(map(len, left.values()))
    for room in taken + list(SHARES) * spare:
        if count == 0:
            return
        if left[room]:
            count -= 1
            yield room, left[room].pop()
        if not any(left.values()):
            return


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="stop then, whatever is left of --count")
    parser.add_argument("--servers", type=int, default=0, help="real kills of a server")
    parser.add_argument("--sinks", type=int, default=0, help="... of dsms subscribe")
    parser.add_argument("--jobs", type=int, default=0, help="... of Spark jobs")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = run(everything(Path(folder)), args.count, args.seed, args.seconds)
        print(*told.findings, sep="\n", flush=True)
        print(f"{told.kills.total()} simulated kills:", dict(told.kills), flush=True)
        _real(args, Path(folder))
    return 1 if told.findings else 0


def _real(args: argparse.Namespace, folder: Path) -> None:
    if args.servers:
        from tests.faults.kill import Plan, ordeal

        made = ordeal(Plan(max(60, 4 * args.servers), 50), args.servers, args.seed)
        print(f"{made.done} kills of a server, {made.in_recovery} while it came back", flush=True)
    if args.sinks:
        from tests.faults.sink_kills import killed_again_and_again

        print(f"{killed_again_and_again(args.sinks, args.seed, folder)} kills of dsms subscribe",
              flush=True)  # a line  # fmt: skip
    if args.jobs:
        from tests.faults.spark_kills import killed_at_work

        for number in range(args.jobs):
            print(killed_at_work(number, args.seed, folder / f"job {number}"), flush=True)


if __name__ == "__main__":
    sys.exit(main())
