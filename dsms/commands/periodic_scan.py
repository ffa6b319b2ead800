"""A query with SLIDE that is answered by scanning its windows: what is kept for it, and how it is
read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsms.api import Cancel
from dsms.commands.periodic_counted import come, governing
from dsms.commands.periodic_registration import Registration
from dsms.oneshot.cut import Cut, cut
from dsms.oneshot.reads import Read, reads
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.counted import Numbers
from dsms.periodic.query import PeriodicQuery
from dsms.periodic.scan import Scan, Sliced, need_of
from dsms.reads.leaves import batches, lacking
from dsms.reads.stream_rows import gone, last_of, stream_of
from dsms.running.beginning import look_back
from dsms.running.past import pasts
from dsms.running.read_transaction import Access, ReadTransaction
from dsms.running.runtime import Handle, Runtime
from dsms.running.transactions import Transactions
from dsms.sql import logical as lp
from dsms.sql.multi_joins import binary
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.state.ring import SubWindow


def scanned(new: Registration) -> PeriodicQuery:
    """The rings keep what its windows reach from now on, and what they hold already is its past."""
    runtime, plan, errors = new.runtime, new.plan, new.errors()
    root, slide = binary(plan.inner.node), new.bound.slide
    assert isinstance(root, lp.Output) and slide is not None
    needed, (streams, tables) = reads(root.child), _leaves(root)
    span = 0 if plan.counted else slide.every
    past = list(pasts(plan.core.child))
    clock = runtime.clock_of(sorted(set(streams.values())))
    stream = streams[governing(root, new.bound)] if plan.counted else ""
    counted = tuple(leaf for leaf, name in streams.items() if name == stream)
    prepared = runtime.adhoc.prepare(root.child, identity=True)
    fetch = Fetcher(runtime.handle)
    scan = Scan(prepared, needed, fetch, errors, runtime.rings, counted, stream)
    query = new.query(scan, errors, streams, tables)
    query.registered_at(clock)
    query.clock = clock
    if plan.counted:
        rows = come(runtime, stream, clock)
        query.numbers = scan.numbers = Numbers(rows.next)
        query.registered = query.clock = rows.next
        for batch in rows.later:
            query.numbers.see(batch)
    else:
        scan.sliced = _sliced(runtime, root.child, needed)
    for leaf, read in needed.items():
        if leaf in streams:
            need = need_of(read, span, query.looked)
            runtime.keep(streams[leaf], f"query {new.definition.name} ({leaf})", need)
    look_back(runtime, query, past, clock)
    return query


def _leaves(root: lp.Node) -> tuple[dict[int, str], tuple[str, ...]]:
    """The streams that are read, by leaf, and the tables."""
    leaves = list(lp.leaves_of(root))
    streams = {n.leaf: n.stream.home for n in leaves if isinstance(n, lp.StreamScan)}
    return streams, tuple(n.table.home for n in leaves if isinstance(n, lp.TableScan))


def _sliced(runtime: Runtime, plan: lp.Node, needed: dict[int, Read]) -> Sliced:
    """The scan as a transaction of less priority than one-time queries have."""
    parts = cut(plan)
    streams = {k: stream_of(r.node) for k, r in needed.items() if isinstance(r.node, lp.StreamScan)}
    reader = ScanReader(runtime.handle, parts, needed, streams)
    return Sliced(runtime.adhoc.prepare(parts.rest, identity=True), reader)


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Gets what a scan reads.  (No closure: it is part of checkpoints.)"""

    here: Handle

    def __call__(self, read: Read, at: int, cancel: Cancel | None) -> list[Batch]:
        return there(self.here.runtime, read, at, cancel)


@dataclass(frozen=True, slots=True)
class ScanReader:
    """See `dsms.periodic.scan.Reader`."""

    here: Handle
    parts: Cut
    needed: dict[int, Read]
    streams: dict[int, str]

    @property
    def transactions(self) -> Transactions:
        return self.here.runtime.transactions

    def begin(self, instant: Callable[[], int], errors: ErrorCounter) -> ReadTransaction:
        runtime = self.here.runtime
        access = Access(
            instant,
            lambda read, at: subwindows_there(runtime, read, at),
            lambda read, at: there(runtime, read, at, None),
            lambda: None,
        )
        limit = runtime.settings.statement_bytes
        reading = ReadTransaction(self.parts, self.needed, self.streams, access, limit, -1, errors)
        self.transactions.begin(reading)
        return reading


def subwindows_there(runtime: Runtime, read: Read, at: int) -> list[SubWindow]:
    """Those that there are of a leaf."""
    assert isinstance(read.node, lp.StreamScan)
    ring = runtime.rings[stream_of(read.node)]
    since, upto = read.since(at), read.upto(at)
    if read.rows is not None:
        return last_of(list(ring.subwindows(ALWAYS, upto)), read.rows, upto)
    return list(ring.subwindows(since, upto))


def there(runtime: Runtime, read: Read, at: int, cancel: Cancel | None) -> list[Batch]:
    """What there is of a leaf: of a stream the part that its ring holds (`partial_until` tells
    until when)."""
    if not isinstance(read.node, lp.StreamScan):
        for _, part in lacking(runtime, read.node, [read], at):
            raise gone(runtime, part)
        return batches(runtime, read.node, read, at, cancel)
    ring, since = runtime.rings[read.node.stream.home], read.since(at)
    if read.rows is not None and since == ALWAYS:
        return ring.last(read.rows, read.upto(at))
    return ring.rows(since, read.upto(at))
