"""What EXPLAIN of a SELECT says of indices over windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsms.commands.index_reads import by_counts, by_keys
from dsms.commands.planning import Planner
from dsms.commands.select import optimized
from dsms.errors import UsageError
from dsms.oneshot.cut import Cut
from dsms.oneshot.reads import Read, reads
from dsms.reads.access import access, relation
from dsms.reads.leaves import instant
from dsms.reads.stream_rows import in_ring, stream_of, subwindows
from dsms.running.read_transaction import ReadTransaction
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp


def index_lines(runtime: Runtime, bound: lp.Output, planner: Planner) -> Iterator[str]:
    """Of each stream that a one-time query would read by an index: the column, and whose keys are
    looked up (of a join); how many of the sub-windows of its window have rows that matter, and how
    many rows these are now."""
    plan = optimized(planner, bound)
    needed, whole = reads(plan), Cut(plan, {})
    limit, at = runtime.settings.statement_bytes, instant(runtime, needed.values())
    streams = {
        k: stream_of(r.node)
        for k, r in needed.items()
        if isinstance(r.node, lp.StreamScan) and r.kind == "stream" and in_ring(runtime, r, at)
    }
    ways = access(runtime, plan, needed, needed, None, False)
    reading = ReadTransaction(whole, needed, streams, ways, limit)
    reading.picks = runtime.indices.picks(plan, streams, runtime.rings, asked=False)
    reading.keyed = by_keys(runtime, plan, whole, needed, streams, asked=False)
    yield from _counted(runtime, plan, needed, streams, at)
    for leaf, (pick, driver) in sorted(reading.by_index().items()):
        try:
            there = subwindows(runtime, needed[leaf], at)
        except UsageError:  # not kept, which the SELECT itself will say
            continue
        read = needed[leaf]
        counted = pick.counted(there, read.since(at), read.upto(at))
        if counted is None:
            continue
        column, touched, rows = counted
        name = runtime.inputs[pick.stream].definition.schema[column].name
        some = f"{rows} {'row' if rows == 1 else 'rows'}"
        found = f"{touched} of {len(there)} sub-windows, {some}"
        if pick.by_range:
            found = f"range, {some} of {touched} {'sub-window' if touched == 1 else 'sub-windows'}"
        keys = "" if driver is None else f" by keys of {_named(plan, driver)}"
        yield f"asked once: index {name}{keys}: {found}"


def _counted(
    runtime: Runtime,
    plan: lp.Node,
    needed: Mapping[int, Read],
    streams: Mapping[int, str],
    at: int,
) -> Iterator[str]:
    """Of each leaf that is given by counts of values how many sub-windows are merged, and how many
    rows are read."""
    for leaf, by in sorted(by_counts(runtime, plan, streams, asked=False)[1].items()):
        try:
            there = subwindows(runtime, needed[leaf], at)
        except UsageError:
            continue
        node = needed[leaf].node
        assert isinstance(node, lp.StreamScan)
        merged, rows = by.merged(needed[leaf], there, at)
        name = node.stream.schema[by.counts.column].name
        read = f"{merged} of {len(there)} sub-windows, {rows} {'row' if rows == 1 else 'rows'} read"
        yield f"asked once: counts of {name}: {read}"


def _named(plan: lp.Node, leaf: int) -> str:
    """What a leaf reads, as the query calls it."""
    return next(n.alias or relation(n) for n in lp.leaves_of(plan) if n.leaf == leaf)
