"""What a query that takes the place of another one has of its state.

Where their plans have a part in common that ends in a GROUP BY, the operators of the old query work
for the new one, too, as those of any shared part do (`shared_parts`); and since a GROUP BY stands
by its rows, what lies above it begins with these.  So it misses nothing that the old one did not
miss, however little is kept of its windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from dsms.operators.expressions import can_fail
from dsms.plan.parts import expressions_of, keys_of, node_at, streams_of
from dsms.plan.physical import Phys
from dsms.running.part import Part
from dsms.running.pipeline import Path, Reporting
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.shared_parts import SharedParts
from dsms.running.splitting import give_way, located
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch

Kept = Callable[[lp.Node], bool]
MANY = 1 << 14  # rows that are handed over in a few milliseconds
AT_ONCE = 4096  # rows of one instant
_BY_ROWS = (
    lp.Output | lp.Select | lp.Project | lp.Sort | lp.Join | lp.MultiJoin | lp.SemiJoin | lp.SetOp
)


@dataclass(slots=True)
class Inherited:
    """first  by stream leaf of the new plan below such a part, the arrival number of the first row
    that the part was given
    partial_until, full_at  see `Registered`"""

    first: dict[int, int] = field(default_factory=dict)
    partial_until: int = ALWAYS
    full_at: tuple[tuple[str, int], ...] = ()


def inherit(
    parts: SharedParts, old: Registered, new: RunningQuery, clock: int, kept: Kept
) -> Inherited:
    """Let the new query, not yet fed, stand on parts of the old one, which stands at its clock.

    clock  where the new one is to begin
    kept   whether all rows are held on which the part below a place of the new plan rests: then
           many groups, which can only be handed over in one go, are rather built anew in pieces"""
    found = Inherited()
    if not isinstance(old, RunningQuery) or not _stands(old, clock):
        return found
    if old.errors.room != new.errors.room or old.errors.mode != new.errors.mode:
        return found
    for path, place in _common(old.phys, new.phys, new.errors.mode == "stop"):
        unit, at = located(old, place)
        stage = next(s for s in unit.pipeline.stages if s.path == at)
        stands = unit.clock == clock and unit.flow is None
        if not isinstance(stage.operator, Reporting) or not stands:
            continue
        if stage.operator.standing() > MANY and kept(node_at(new.phys, path).node):
            continue
        part = unit if isinstance(unit, Part) and not at else parts.split(unit, at)
        rows = _rows(stage.operator.current(), clock)
        give_way(new, path, part, ())
        new.shares = True
        next(f for f in part.feeds if f.path == path and f.errors is new.errors).push(rows)
        theirs = streams_of(part.phys.node)
        mine = streams_of(node_at(new.phys, path).node)
        found.first |= {m: part.starts[t] for m, t in zip(mine, theirs, strict=True)}
        found.partial_until = max(found.partial_until, old.partial_until)
        found.full_at = old.full_at
    view = new.shares and new.output.kind == "rstream" and new.sink.kept is None
    if view and new.pipeline.answer() is None:
        new.keep_answer(None)
    return found


def _stands(old: RunningQuery, clock: int) -> bool:
    plain = not old.early and old.feed is None and old.archived is None and not old.beginning
    there = old.failure is None and old.flow is None and old.starts is not None
    return plain and there and old.clock == clock > ALWAYS


def _common(old: Phys, new: Phys, stops: bool) -> Iterator[tuple[Path, Path]]:
    """The largest such parts: where they are in the new plan, and in the old one."""
    known = {key: path for path, key in keys_of(old).items()}
    taken: list[Path] = []
    for path, key in sorted(keys_of(new).items(), key=lambda item: len(item[0])):
        node = node_at(new, path).node
        if key not in known or not isinstance(node, lp.GroupBy):
            continue
        if any(path[: len(t)] == t for t in taken) or not _goes_by_rows_alone(new, path):
            continue
        if stops and any(map(can_fail, expressions_of(node))):
            continue
        taken.append(path)
        yield path, known[key]


def _goes_by_rows_alone(phys: Phys, path: Path) -> bool:
    """Whether for nothing above that place it matters when its rows came."""
    return all(isinstance(node_at(phys, path[:k]).node, _BY_ROWS) for k in range(len(path)))


def _rows(standing: Batch, clock: int) -> Batch:
    """As arrivals up to that instant, few of each: it is between instants that steps are cut."""
    n = len(standing)
    ts = clock - np.arange(n)[::-1] // AT_ONCE
    return Batch(ts.astype(np.int64), None, None, standing.ids, standing.cols)
