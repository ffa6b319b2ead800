"""Watches whether the edges of running plans keep what their labels promise (`dsms.plan.patterns`).

MON  rows never leave           WKS  they leave in the order they come
WK   their deaths are foretold  STR  deaths may be announced
Under the strategy `nt` every death is announced and none is foretold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dsms.plan.physical import Pattern, Phys
from dsms.running import assemble
from dsms.running.pipeline import Stage
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch


@contextmanager
def watched() -> Iterator[None]:
    """Plans that are assembled meanwhile; fails if an edge of one breaks its label."""
    labels: dict[int, tuple[Stage, Phys]] = {}
    last: dict[int, int] = {}  # the latest death that was foretold
    broken: list[str] = []
    add, run = assemble._add, Stage.run

    def adding(phys: Phys, path: Any, builder: Any, stages: list[Stage]) -> int:
        k = add(phys, path, builder, stages)
        labels[id(stages[k])] = stages[k], phys
        return k

    def running(stage: Stage, *args: Any) -> Iterator[tuple[Batch, int]]:
        for rows, upto in run(stage, *args):
            if len(rows) and id(stage) in labels:
                phys = labels[id(stage)][1]
                broken.extend(_broken(phys, rows, last.get(id(stage), ALWAYS)))
                last[id(stage)] = int(rows.exps()[-1])
            yield rows, upto

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "_add", adding)
        patch.setattr(Stage, "run", running)
        yield
    assert not broken, "; ".join(dict.fromkeys(broken))


def _broken(phys: Phys, rows: Batch, last: int) -> Iterator[str]:
    """What is wrong with rows of that edge, behind others of which the last dies at `last`."""
    what = f"{type(phys.node).__name__} {phys.variant}, {phys.pattern.name} under {phys.strategy}"
    if (rows.ts[1:] < rows.ts[:-1]).any():
        yield f"{what}: not in order of instants"
    if phys.strict:
        return
    exp = rows.exps()
    if rows.sign is not None and (rows.sign < 0).any():
        yield f"{what}: deaths are announced"
    if (exp <= rows.ts).any():
        yield f"{what}: rows are dead when they are born"
    if phys.pattern is Pattern.MON and (exp < FOREVER).any():
        yield f"{what}: deaths are foretold"
    if phys.pattern is Pattern.WKS and (exp[0] < last or (exp[1:] < exp[:-1]).any()):
        yield f"{what}: rows leave in another order than they came"
