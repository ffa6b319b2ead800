"""Continuous queries that read the answers of others.

What runs the query that is read becomes a part (`dsms.running.part`) whose rows go to that query's
own sink and to its readers.  A reader begins with the answer as it stands, and goes on with what
comes out of the part: so it has all of it, whatever streams still hold.  Rows of that answer are
there since they entered; groups before every instant.

A query that keeps no answer (Istream, Dstream, a selection over a stream) has none to begin with;
its readers run its text by themselves, over what is held, as does who reads one that has a SLIDE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dsms.operators.expressions import can_fail
from dsms.plan.answers import AtWork, none_at_work
from dsms.plan.netting import announces
from dsms.plan.parts import expressions_of, keys_of, node_at
from dsms.plan.physical import Phys
from dsms.running.dispatch import Dispatch
from dsms.running.part import PartFeed
from dsms.running.pipeline import Path, Pipeline, Reporting
from dsms.running.query import RunningQuery
from dsms.running.shared_parts import SharedParts
from dsms.running.splitting import give_way, located
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch

ROOT: Path = (0,)  # below the output of a plan


@dataclass(slots=True)
class Answers:
    """Which queries have answers that others may read, and how these get them."""

    dispatch: Dispatch
    parts: SharedParts
    on: bool = True

    @classmethod
    def over(cls, dispatch: Dispatch, parts: SharedParts, on: bool, catalog: Catalog) -> Answers:
        """Of queries that are there already."""
        known = catalog.queries.keys() & dispatch.queries.keys()
        catalog.plans = {key: dispatch.queries[key].output for key in known}
        return cls(dispatch, parts, on)

    def plans(self, shared: bool) -> AtWork:
        """What a query may be planned over."""
        return self.at_work if shared else none_at_work

    def known(self, key: str, catalog: Catalog) -> None:
        """Others know of a registered query now, and may read it."""
        query = self.dispatch.queries[key]
        catalog.queries[key], catalog.plans[key] = query.definition, query.output

    def at_work(self, key: str) -> Phys | None:
        """The plan of a query whose operators may work for its readers, too.  Any thread may ask:
        what is looked at stays as it is, or is looked at again when the reader begins."""
        query = self.dispatch.queries.get(key)
        return query.phys if isinstance(query, RunningQuery) and self._gives(query) else None

    def _gives(self, query: RunningQuery) -> bool:
        if not self.on or query.early or query.grouped or query.beginning or query.failure:
            return False
        if not query.streams or query.starts is None or not _keeps(query):
            return False
        if any(stage.errors is None for stage in query.pipeline.stages if not query.shares):
            return False
        # its clock stops at the last instant of its streams before the failing row
        return query.errors.mode != "stop" or not any(map(can_fail, expressions_of(query.output)))

    def attach(
        self, key: str, reader: RunningQuery, catch_up: Callable[[RunningQuery], None]
    ) -> list[RunningQuery]:
        """A query that has not begun reads the answers of others from what runs these; which.

        catch_up  lets a query answer as far as it may"""
        read = []
        for path, node in list(_answers(reader.phys)):
            query = self.dispatch.told(Catalog.key(node.query))
            if not isinstance(query, RunningQuery) or not self._gives(query):
                continue
            catch_up(query)
            below = (*path, 0)
            if query.failure is not None or not _alike(query, node_at(reader.phys, below)):
                continue
            if self._attach(key, reader, below, query):
                read.append(query)
        return read

    def _attach(self, key: str, reader: RunningQuery, path: Path, query: RunningQuery) -> bool:
        """False where its answer is not known, or not as far as what runs it."""
        rows = answer_rows(query)
        if rows is None:
            return False
        part = self.parts.part_of(query, ROOT)
        if part.clock != query.clock or part.flow is not None or query.flow is not None:
            return False
        self.dispatch.anew(key)
        give_way(reader, path, part, ())
        reader.shares = True
        self.dispatch.find_parts()
        feed = part.feeds[-1]
        if len(rows):
            feed.push(_entered(rows, announces(query.output.child)))
        return True


def _keeps(query: RunningQuery) -> bool:
    """Whether its answer can be read: from its sink, or from GROUP BY."""
    return query.sink.kept is not None or announces(query.output.child)


def answer_rows(query: RunningQuery) -> Batch | None:
    """The answer with the lifetimes and ids of its rows."""
    if query.sink.kept is not None:
        return query.sink.rows()
    unit, _ = located(query, ROOT)
    return _groups(unit.pipeline)


def _groups(pipeline: Pipeline) -> Batch | None:
    """What GROUP BY stands by, through the selections and projections above it, wherever it
    runs."""
    bottom = pipeline.stages[-1]
    above = []
    while len(bottom.inputs) == 1 and not isinstance(bottom.operator, Reporting):
        above.append(bottom.operator)
        bottom = pipeline.stages[bottom.inputs[0]]
    feed = bottom.operator
    if not isinstance(feed, PartFeed):
        return pipeline.answer()
    rows = None if feed.waiting or feed.least else _groups(feed.part.pipeline)
    for operator in reversed(above):
        rows = None if rows is None else operator.step((rows,), pipeline.upto or 0)
    return rows


def _entered(rows: Batch, groups: bool) -> Batch:
    """As rows that a reader begins with.  Of groups it is not known since when they are there."""
    if groups:
        return replace(rows, ts=np.full(len(rows), ALWAYS, np.int64), sign=None)
    return rows.take(np.argsort(rows.ts, kind="stable"))


def _alike(query: RunningQuery, phys: Phys) -> bool:
    """Whether the query runs what the reader was planned over."""
    return keys_of(query.phys)[ROOT] == keys_of(phys)[()]


def _answers(phys: Phys, path: Path = ()) -> Iterator[tuple[Path, lp.Answer]]:
    """Where the plan reads answers itself."""
    if isinstance(phys.node, lp.Answer):
        yield path, phys.node
        return
    for k, child in enumerate(phys.children):
        yield from _answers(child, (*path, k))
