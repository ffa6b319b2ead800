"""The rows of each leaf of a plan that is run once, as of an instant: of rings, tables, answers of
queries and appended results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dsms.api import Cancel
from dsms.errors import UsageError
from dsms.oneshot.reads import Read
from dsms.plan.windows import by_calendar
from dsms.reads.archives import archived_clock
from dsms.reads.history import history_from, history_rows, told_upto
from dsms.reads.partial import partial_from
from dsms.reads.stream_rows import complete_from, floors, stream_of, stream_rows
from dsms.reads.views import answered, view, view_from
from dsms.reads.watch import watching
from dsms.running.behind import rows_behind
from dsms.running.first_answers import arrive
from dsms.running.prepare import prepare
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.catalog import QueryDef
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT
from dsms.state.batch import Batch


def instant(runtime: Runtime, needed: Iterable[Read]) -> int:
    """The instant as of which the plan answers: the clock of the streams that it reads, or, if that
    is earlier, that of the answer of a query it reads; FOREVER where nothing has a clock."""
    streams, found = set(), []
    for read in needed:
        scans = [n for n in lp.leaves_of(read.node) if isinstance(n, lp.StreamScan)]
        streams |= {stream_of(n) for n in scans if n.live}
        found += [archived_clock(runtime, n) for n in scans if n.archive is not None]
        for part in _parts(read):
            query = _query(runtime, part)
            if query is not None:
                is_history = part.kind == "history"
                found.append(told_upto(runtime, query) if is_history else answered(query))
    if streams:
        found.append(runtime.clock_of(sorted(streams)))
    return min(found, default=FOREVER)


def waiting(runtime: Runtime, needed: Iterable[Read], at: int) -> int | None:
    """Accepted rows of the streams that the plan reads, or a query that it reads, which wait behind
    the clock; None if it reads no stream.  `at`: as of which it answers."""
    own, of_queries = set[str](), set[str]()
    for read in needed:
        scans = [n for n in lp.leaves_of(read.node) if isinstance(n, lp.StreamScan)]
        own |= {stream_of(n) for n in scans if _is_stream(runtime, n)}
        queries = (_query(runtime, part) for part in _parts(read))
        of_queries.update(*(query.reads for query in queries if query is not None))
    if not own and not of_queries:
        return None
    clock = runtime.clock_of(sorted(own | of_queries))
    return rows_behind(runtime, sorted(own | of_queries), clock if of_queries else at)


def _is_stream(runtime: Runtime, scan: lp.StreamScan) -> bool:
    """Whether a leaf reads a stream of this engine: not the archive of a query, or of a stream that
    was dropped."""
    return stream_of(scan) in runtime.inputs


def lacking(
    runtime: Runtime, plan: lp.Node, needed: Iterable[Read], at: int
) -> Iterator[tuple[int, Read]]:
    """The leaves of streams, of what queries have told, and of their answers, of which not all rows
    are held that the plan needs as of `at`, and the instants from which on they are."""
    floor = floors(runtime, plan)
    for read in needed:
        for part in _parts(read):
            query, since = _query(runtime, part), tuple[int | None, ...]()
            if part.kind == "history" and query is not None:
                since = (history_from(query, part, at, _floor(floor, part)),)
            elif part.kind == "stream":
                appended = read.kind == "appended"
                since = (complete_from(runtime, part, at, _floor(floor, part), appended),)
            elif query is not None:
                since = view_from(runtime, query, at), partial_from(runtime, query, at)
            yield from ((known, part) for known in since if known is not None)


def _floor(floor: Mapping[int, int], read: Read) -> int:
    """The instant up to which rows of a leaf of a stream can't be used."""
    assert isinstance(read.node, lp.StreamScan)
    return floor.get(read.node.leaf, ALWAYS)


def _parts(read: Read) -> list[Read]:
    """What is read for a leaf: what a block has appended rests on all that ever came, of streams
    and of what queries have told."""
    if read.kind != "appended":
        return [read]
    scans = (n for n in lp.leaves_of(read.node) if isinstance(n, lp.StreamScan))
    return [Read("history" if not n.live and n.history else "stream", n) for n in scans]


def batches(
    runtime: Runtime, plan: lp.Node, read: Read, at: int, cancel: Cancel | None
) -> list[Batch]:
    """The rows of one leaf of the plan as of `at`, as far as they are held.  Raises DS407 where
    none are kept."""
    match read.kind:
        case "stream":
            return stream_rows(runtime, read, at, _floor(floors(runtime, plan), read))
        case "appended":
            return list(_appended(runtime, read, at, cancel))
        case "history" if (query := _query(runtime, read)) is not None:
            return history_rows(query, read, at, _floor(floors(runtime, plan), read))
        case _ if (query := _query(runtime, read)) is not None:
            return [_answer(runtime, query, at)]
        case kind:
            return [
                runtime.table(read.node).versions(  # type: ignore[arg-type]
                    max(at, MIN_INSTANT - 1) if kind == "table" else None
                )
            ]


# ---------------------------------------------------------------- appended results


def _appended(runtime: Runtime, read: Read, at: int, cancel: Cancel | None) -> Iterator[Batch]:
    """Everything that a block over INTERNAL windows, or Istream, has appended, by the operators
    that persistent queries run.  SLIDE has no meaning here: what enters between boundaries has
    entered."""
    node = _without_slides(read.node)
    output = lp.Output(node, "rstream", True, False, None, node.schema)
    running = prepare(runtime, QueryDef("", ""), runtime.plan(output, ()))
    pipeline = running.pipeline
    for part in _parts(read):
        assert isinstance(part.node, lp.StreamScan)
        query = _query(runtime, part)
        told = None if query is None else history_rows(query, part, at)
        for rows in stream_rows(runtime, part, at) if told is None else told:
            pipeline.sources[part.node.leaf].push(rows)
    with watching(running, runtime.settings.statement_bytes, cancel):
        reached = ALWAYS
        yield from _living(pipeline.pieces(ALWAYS), at)
        while reached < at:
            reached = pipeline.next_cut(at)
            yield from _living(pipeline.pieces(reached), at)


def _without_slides(node: lp.Node) -> lp.Node:
    """Raises DS416 for what only a registered query can follow."""
    if isinstance(node, lp.TableScan):
        message = (
            f"what has entered and left {node.table.name} before is not kept, and Istream "
            "in FROM needs it all"
        )
        hint = (
            "register the query, and read its answer; or leave Istream out (what a query has told "
            "is read with a window: FROM q [RANGE 1 DAY])"
        )
        raise UsageError("DS416", message, hint=hint)
    if isinstance(node, lp.Window) and node.spec.slide is not None:
        if by_calendar(node.spec):
            message = (
                "a window that follows the calendar moves at its boundaries, and a query "
                "that runs once has none"
            )
            hint = (
                "register the query, and read its answer; or give the length of the window in hours"
            )
            raise UsageError("DS416", message, hint=hint)
        node = replace(node, spec=replace(node.spec, slide=None))
    return lp.with_children(node, tuple(map(_without_slides, lp.children(node))))


def _living(pieces: Iterator[tuple[Batch, int]], at: int) -> Iterator[Batch]:
    for rows, _ in pieces:
        if len(rows):
            yield rows if rows.exp is None else rows.take(np.flatnonzero(rows.exp > at))


# ---------------------------------------------------------------- answers of queries


def _query(runtime: Runtime, read: Read) -> Registered | None:
    """The query whose answer, or whose history, a leaf reads; None if it is a table's or a
    stream's."""
    if read.kind == "history":
        assert isinstance(read.node, lp.StreamScan)
        return runtime.dispatch.told(stream_of(read.node))
    if not isinstance(read.node, lp.TableScan):
        return None
    key = read.node.table.home
    arrive(runtime, key)
    return None if key in runtime.tables else runtime.dispatch.told(key)


def _answer(runtime: Runtime, query: Registered, at: int) -> Batch:
    if query.output.kind != "rstream":
        raise UsageError(
            "DS410",
            f"query {query.name} reports what "
            f"{'leaves' if query.output.kind == 'dstream' else 'enters'} its answer and keeps no "
            "answer that could be read",
            hint="register it as SELECT Rstream(...), or run its SELECT instead",
        )
    rows = view(runtime, query, at)
    n = 0 if rows is None else rows.num_rows
    cols = (
        tuple(rows.columns)
        if rows is not None
        else tuple(pa.array([], f.type.arrow) for f in query.output.schema)
    )
    return Batch(np.full(n, ALWAYS, np.int64), None, None, (np.arange(n, dtype=np.int64),), cols)
