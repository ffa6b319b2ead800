"""Pipelines cut in two: what lies below a place becomes a part that others may use, or gives way to
a part that is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsms.operators.expressions import ErrorCounter
from dsms.operators.passing import Through
from dsms.plan.parts import node_at, streams_of, tables_of
from dsms.plan.physical import Phys
from dsms.running.part import Part, PartFeed, count_for_all, feeds_of, let_go
from dsms.running.pipeline import Path, Pipeline, Stage
from dsms.running.query import RunningQuery
from dsms.running.sources import StreamSource

Unit = RunningQuery | Part


def located(unit: Unit, path: Path) -> tuple[Unit, Path]:
    """Whose operators are those at that place of a plan, and where they stand there."""
    while (feed := _feed_above(unit.pipeline, path)) is not None:
        unit, path = feed.part, path[len(feed.path) :]
    return unit, path


def stage_at(unit: Unit, path: Path) -> Stage:
    """What runs that place of a plan."""
    unit, path = located(unit, path)
    return next(s for s in unit.pipeline.stages if s.path == path)


def feeds_down(unit: Unit, path: Path) -> Iterator[tuple[PartFeed, Path]]:
    """The feeds on the way down to that place of a plan, each with its place there."""
    above: Path = ()
    while (feed := _feed_above(unit.pipeline, path[len(above) :])) is not None:
        above = (*above, *feed.path)
        yield feed, above
        unit = feed.part


def places_of(unit: Unit, part: Part) -> Iterator[Path]:
    """Where a part stands in a plan."""
    for feed in feeds_of(unit.pipeline):
        if feed.part is part:
            yield feed.path
        for below in places_of(feed.part, part):
            yield (*feed.path, *below)


def _feed_above(pipeline: Pipeline, path: Path) -> PartFeed | None:
    return next((f for f in feeds_of(pipeline) if path[: len(f.path)] == f.path), None)


def split_off(unit: Unit, path: Path, name: str) -> Part:
    """What lies at that place and below becomes a part, which feeds the unit."""
    phys = node_at(unit.phys, path)
    assert unit.starts is not None
    starts = {leaf: unit.starts[leaf] for leaf in streams_of(phys.node)}
    lower, sources = _taken_out(unit, path)
    old = unit.pipeline
    pipeline = Pipeline(lower, sources, old.timer, upto=old.upto, rows=old.rows, most=old.most)
    pipeline.paced = old.paced
    part = Part(
        name,
        phys,
        pipeline,
        ErrorCounter(unit.errors.mode, room=unit.errors.room),
        streams_of(phys.node),
        tables_of(phys.node),
        starts,
        unit.since,
        unit.partial_until,
        bool(unit.full_at) if isinstance(unit, RunningQuery) else unit.counted,
        unit.clock,
        unit.begun,
    )
    for stage in lower:
        stage.path = stage.path[len(path) :]
        if stage.errors is not None:
            stage.errors.to = [part.errors]
    for feed in feeds_of(pipeline):
        feed.path, feed.errors = feed.path[len(path) :], part.errors
        count_for_all(feed.part)
    feed_by(unit, path, part, ())
    return part


def give_way(unit: Unit, path: Path, part: Part, least: Sequence[tuple[int, int]]) -> list[Part]:
    """A part that is there takes the place of what lies at `path` and below; which parts fed that.

    `least`: see `PartFeed`"""
    _, sources = _taken_out(unit, path)
    gone = [s for s in sources.values() if isinstance(s, PartFeed)]
    for feed in gone:
        let_go(feed)
    feed_by(unit, path, part, least)
    return [feed.part for feed in gone]


def feed_by(unit: Unit, path: Path, part: Part, least: Sequence[tuple[int, int]]) -> None:
    """The stage at `path`, which was left out, takes up what the part makes."""
    stages = unit.pipeline.stages
    at = next(k for k, s in enumerate(stages) if s.path == path)
    stages[at] = Stage(path, new_feed(unit, path, node_at(unit.phys, path), part, least), ())


def new_feed(
    unit: Unit, path: Path, phys: Phys, part: Part, least: Sequence[tuple[int, int]]
) -> PartFeed:
    """What the unit takes up of the part, for a stage at `path` that stands for `phys`."""
    feed = PartFeed(
        phys.node.schema,
        part=part,
        path=path,
        errors=unit.errors,
        width=phys.width,
        least=tuple(least),
    )
    sources = unit.pipeline.sources
    sources[min([0, *sources]) - 1] = feed
    part.feeds.append(feed)
    count_for_all(part)
    return feed


def _taken_out(unit: Unit, path: Path) -> tuple[list[Stage], dict[int, StreamSource]]:
    """Take out the stages at and below `path` with their sources; an empty stage stays at its
    place."""
    stages, queues = unit.pipeline.stages, unit.pipeline.sources
    top = next(k for k, s in enumerate(stages) if s.path == path)
    first = next(k for k, s in enumerate(stages) if s.path[: len(path)] == path)
    lower, count = stages[first : top + 1], top - first
    for stage in lower:
        stage.inputs = tuple(k - first for k in stage.inputs)
    for stage in stages[top + 1 :]:
        stage.inputs = tuple(k if k < first else k - count for k in stage.inputs)
    stages[first : top + 1] = [Stage(path, Through(), ())]
    own = streams_of(node_at(unit.phys, path).node)
    sources = {
        k: queue
        for k, queue in queues.items()
        if (queue.path[: len(path)] == path if isinstance(queue, PartFeed) else k in own)
    }
    for k in sources:
        del queues[k]
    return lower, sources
