"""What leaves a stream's ring goes to its archive."""

from __future__ import annotations

from dsms.archiving.archiving import Archiving
from dsms.archiving.waiting import Leaving, kept_until
from dsms.intake.stream import StreamInput
from dsms.state.batch import Batch
from dsms.state.ring import Ring


def gather(archiving: Archiving, ring: Ring, entry: StreamInput, again: bool = False) -> None:
    """Take over the rows that no query needs any more, and drop those that have landed.

    `again`: all this has happened before, and the archive may be ahead; a query that comes begins
    with what was held then, so the ring lets go of it only where that is written down."""
    rows, edge = ring.leaving(archiving.taken, entry.ended)
    for batch in rows:
        archiving.take(leaving(batch, archiving.lifetime))
    archiving.settle(edge, entry.ended)
    if not again:
        ring.drop(archiving.free)


def leaving(rows: Batch, lifetime: int | None) -> Leaving:
    """A stream's rows as the archive keeps them."""
    return Leaving(rows.ts, rows.ts, kept_until(rows.ts, lifetime), rows.ids[0], rows.cols)


def everything(archiving: Archiving, ring: Ring, entry: StreamInput) -> None:
    """The stream is dropped: whatever it holds goes to the archive."""
    entry.end()
    for batch in entry.release().complete:
        ring.add(batch)
    ring.needs.clear()
    rows, edge = ring.leaving(archiving.taken, ended=True)
    for batch in rows:
        archiving.take(leaving(batch, archiving.lifetime))
    archiving.edge = max(archiving.edge, edge)
    archiving.flush()
