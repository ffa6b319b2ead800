"""One value in a tree of lists and dicts -> another value, in its place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

INTEGERS = (0, 1, -1, 2, 3, 7, 8, 31, 32, 64, 127, 128, 255, 256, 1000, 65_535, 2**24, 2**31 - 1,
            2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))  # a long list  # fmt: skip
FLOATS = (0.0, -0.0, 1.5, 1e308, 5e-324, float("nan"), float("inf"), float("-inf"))
Place = tuple[Any, Any]  # what it stands in, and where in it


def places(tree: Any) -> list[Place]:
    """Where values stand, at any depth."""
    out: list[Place] = []
    todo = [tree]
    while todo:
        within = todo.pop()
        for key in within if isinstance(within, dict) else range(len(within)):
            out.append((within, key))
            if isinstance(within[key], (list, dict)):
                todo.append(within[key])
    return out


def integer(rng: Random, before: int) -> int:
    """Another one: near it, or at an edge."""
    if rng.random() < 0.4:
        return before + rng.choice((-8, -4, -2, -1, 1, 2, 4, 8))
    return rng.choice(INTEGERS)


def changed(rng: Random, tree: Any, other: Callable[[Random, Any], Any]) -> None:
    """One to four values of a tree, which is changed: another one, gone, twice, or from
    elsewhere."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        found = places(tree)
        if not found:
            return
        within, key = rng.choice(found)
        match rng.randrange(8):
            case 0:
                del within[key]
            case 1 if isinstance(within, list):
                within[key:key] = [within[key]] * rng.choice((1, 1, 2, 40))
            case 2:
                there, place = rng.choice(found)
                within[key] = copy.deepcopy(there[place])  # it may stand in itself
            case _:
                within[key] = other(rng, within[key])
