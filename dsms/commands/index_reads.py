"""Which leaves of a one-time query may be read by the keys of others, or by counts of values."""

from __future__ import annotations

from collections.abc import Mapping

from dsms.oneshot.cut import Cut
from dsms.oneshot.reads import Read
from dsms.oneshot.tally import asked as asks
from dsms.oneshot.tally import tallied
from dsms.running.key_picks import DRIVING, KeyPick, keyed
from dsms.running.runtime import Runtime
from dsms.running.tallies import TallyRead
from dsms.sql import logical as lp
from dsms.state.counts import WindowCounts
from dsms.state.ring import Ring


def by_keys(
    runtime: Runtime,
    plan: lp.Node,
    parts: Cut,
    needed: Mapping[int, Read],
    streams: Mapping[int, str],
    asked: bool = True,
) -> dict[int, list[KeyPick]]:
    """By leaf number how rows of streams may be found by keys of other leaves that are streams,
    answers of queries or small tables.

    streams  whose rings are read, by leaf;  asked: what is of use counts as asked for"""
    if not streams or len(needed) < 2:
        return {}
    drivers = [leaf for leaf, read in needed.items() if _drives(runtime, read)]
    return keyed(runtime.indices, plan, parts.ops, streams, drivers, runtime.rings, asked)


def _drives(runtime: Runtime, read: Read) -> bool:
    match read.node:
        case lp.StreamScan():
            return True
        case lp.TableScan():
            key = read.node.table.home
            return key not in runtime.tables or len(runtime.tables[key]) <= DRIVING
        case _:
            return False


def by_counts(
    runtime: Runtime, plan: lp.Node, streams: Mapping[int, str], asked: bool = True
) -> tuple[lp.Node, dict[int, TallyRead]]:
    """The plan over leaves that are given by values and counts, and these leaves.

    streams  whose rings are read, by leaf;  asked: that counts as asked for"""
    found: dict[int, WindowCounts] = {}
    for leaf, column in asks(plan).items() if runtime.settings.window_index else ():
        stream = streams.get(leaf, "")
        ring = runtime.rings.get(stream)
        if ring is not None:
            counts = _counts(runtime, stream, ring, column, asked)
            if counts is not None:
                found[leaf] = counts
    made = tallied(plan, {leaf: frozenset((c.column,)) for leaf, c in found.items()})
    giver = runtime.indices.giver
    return made.rest, {
        leaf: TallyRead(t, found[leaf], giver(streams[leaf])) for leaf, t in made.tallies.items()
    }


def _counts(
    runtime: Runtime, stream: str, ring: Ring, column: int, asked: bool
) -> WindowCounts | None:
    if asked:
        return runtime.indices.count(stream, ring, column)
    counts = runtime.indices.counts_of(stream).get(column)
    return counts if counts is not None and counts.complete(ring) else None
