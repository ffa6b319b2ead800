"""Plans that change whenever a test likes: joins at work get random shapes at random instants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import pytest

from dsms.commands.replanning import Replanner
from dsms.commands.shared_joins import running_of
from dsms.plan.parts import node_at
from dsms.plan.rejoin import Shape, Unfit, inputs, number, places
from dsms.running.exchanging import Exchange, Split
from dsms.running.measuring import Figures
from dsms.running.part import Part
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql.types import ALWAYS


@dataclass(slots=True)
class Changes:
    """made    changes so far;  refused: why not, of the others"""

    made: int
    refused: list[str]


def shape(random: Random, numbers: list[int], flat: float = 0.4) -> Shape:
    """Any shape over those inputs, whether they can have it or not."""
    if len(numbers) == 1:
        return numbers[0]
    numbers = random.sample(numbers, len(numbers))
    if len(numbers) > 2 and random.random() < flat:
        cuts = sorted(random.sample(range(1, len(numbers)), random.randint(2, len(numbers) - 1)))
        edges = zip([0, *cuts], [*cuts, len(numbers)], strict=True)
        parts = sorted((sorted(numbers[a:b]) for a, b in edges), key=lambda part: part[0])
        order = random.sample(range(len(parts)), len(parts))
        return ["multi", [shape(random, part, flat) for part in parts], order]
    cut = random.randint(1, len(numbers) - 1)
    return ["join", shape(random, numbers[:cut], flat), shape(random, numbers[cut:], flat)]


@contextmanager
def forced(seed: int, chance: float = 0.5) -> Iterator[Changes]:
    """Engines meanwhile change plans by chance, and by nothing else."""
    random, found = Random(seed), Changes(0, [])

    def look(self: Replanner, runtime: Runtime) -> None:
        if runtime.replaying:
            return
        for query in list(runtime.queries.values()):
            if random.random() < chance and changeable(query):
                try:
                    change(self, runtime, query, random)
                    found.made += 1
                except Unfit as problem:
                    found.refused.append(str(problem))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replanner, "look", look)
        yield found


def changeable(query: Registered) -> bool:
    """Whether it runs, has joins, and nothing of it is under way."""
    running = running_of(query)
    return (
        running is not None
        and query.failure is None
        and running.failure is None
        and running.flow is None
        and not query.beginning
        and running.clock > ALWAYS
        and next(places(running.phys), None) is not None
    )


def change(self: Replanner, runtime: Runtime, query: Registered, random: Random) -> None:
    """Some of its joins get some shape.  Raises Unfit where they can't have it."""
    running = running_of(query)
    assert running is not None
    path = random.choice(list(places(running.phys)))
    there = [number(phys.node) for _, phys in inputs(node_at(running.phys, path))]
    measured = {k: Figures(random.choice((0.1, 1, 9)), random.choice((1, 30)), {}) for k in there}
    self.change(runtime, query, path, shape(random, sorted(there)), measured, "for a test")


def kinds_of_changes(patch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """Counts changes from here on, by whose joins they are, and whose lower ones."""
    found, take_place = Counter[tuple[str, str]](), Exchange.take_place

    def counted(self: Exchange, split: Split) -> list[Part]:
        below = {one.home is self.unit: bool(one.least) for one in self.old}
        lower = "own" if False not in below else "late" if below[False] else "of a part"
        found["part" if isinstance(self.unit, Part) else "query", lower] += 1
        return take_place(self, split)

    patch.setattr(Exchange, "take_place", counted)
    return found
