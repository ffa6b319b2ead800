"""Which punctuations a query has a use for, as EXPLAIN QUERY says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsms.intake.promises import Promises
from dsms.plan.promises import reached
from dsms.running.promised import Inputs, Unit, leaves_over, taker, working
from dsms.running.registered import Registered
from dsms.running.splitting import located
from dsms.sql.types import FOREVER


def promise_lines(running: Registered, inputs: Inputs) -> Iterator[str]:
    """Of each stream that has promised something: whether that lets the query keep less."""
    unit, _ = working(running)
    for stream in running.reads:
        promises = inputs[stream].promises
        if promises is None or not promises.count:
            continue
        name = inputs[stream].definition.name
        if unit is not None and _has_use(unit, stream, promises):
            yield f"lets go of what punctuations of {name} make needless"
        else:
            yield f"punctuations of {name} make nothing that it keeps needless"


def _has_use(unit: Unit, stream: str, promises: Promises) -> bool:
    """Whether any operator could go by any of them, if other streams promise the same."""
    for some in promises.sets.values():
        kinds = set((some.upto.view == FOREVER).tolist())
        for leaf in leaves_over(unit.phys, stream, ()):
            for at in reached(unit.phys, leaf, some.columns, 1, lambda *_: np.ones(1, np.bool_)):
                home, place = located(unit, at.path)
                found = {stage.path: stage.operator for stage in home.pipeline.stages}
                if any(taker(found.get(place), at, good) is not None for good in kinds):
                    return True
    return False
