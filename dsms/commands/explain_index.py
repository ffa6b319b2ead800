"""What EXPLAIN of a SELECT says of indices over windows."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.commands.planning import Planner
from dsms.commands.select import optimized
from dsms.errors import UsageError
from dsms.oneshot.reads import reads
from dsms.reads.leaves import instant
from dsms.reads.stream_rows import in_ring, stream_of, subwindows
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp


def index_lines(runtime: Runtime, bound: lp.Output, planner: Planner) -> Iterator[str]:
    """Of each stream that a one-time query would read by an index: the column, how many of the
    sub-windows of its window have rows that matter, and how many rows these are now."""
    plan = optimized(planner, bound)
    needed = reads(plan)
    streams = {k: stream_of(r.node) for k, r in needed.items() if isinstance(r.node, lp.StreamScan)}
    picks = runtime.indices.picks(plan, streams, runtime.rings, asked=False)
    at = instant(runtime, needed.values())
    for leaf, pick in sorted(picks.items()):
        if not in_ring(runtime, needed[leaf], at):
            continue
        try:
            there = subwindows(runtime, needed[leaf], at)
        except UsageError:  # not kept, which the SELECT itself will say
            continue
        read = needed[leaf]
        column, touched, rows = pick.counted(there, read.since(at), read.upto(at))
        name = runtime.inputs[pick.stream].definition.schema[column].name
        found = f"{touched} of {len(there)} sub-windows, {rows} {'row' if rows == 1 else 'rows'}"
        yield f"asked once: index {name}: {found}"
