"""What a new query can have of the past: rows that a ring still holds, and from when on its answers are whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch
from dsms.state.ring import Ring


@dataclass(frozen=True, slots=True)
class Past:
    """What a window of stream leaf `leaf` reaches: the rows with ts > clock - `length` (None: all), or the last
    `rows` of them."""

    leaf: int
    stream: str
    length: int | None
    rows: int | None = None


def pasts(node: lp.Node) -> Iterator[Past]:
    """One per stream leaf below the node."""
    if isinstance(node, lp.StreamScan):
        yield Past(node.leaf, node.stream.name.casefold(), None)
        return
    if isinstance(node, lp.Window):
        spec = node.spec
        for leaf in _scans(node.child):
            name = leaf.stream.name.casefold()
            match spec.kind:
                case "time":
                    yield Past(leaf.leaf, name, spec.length)
                case "now":
                    yield Past(leaf.leaf, name, 1)
                case "rows" if isinstance(node.child, lp.StreamScan):
                    yield Past(leaf.leaf, name, None, spec.length)
                case _:
                    yield Past(leaf.leaf, name, None)
        return
    for child in lp.children(node):
        yield from pasts(child)


def _scans(node: lp.Node) -> Iterator[lp.StreamScan]:
    if isinstance(node, lp.StreamScan):
        yield node
    for child in lp.children(node):
        yield from _scans(child)


def rows_of(past: Past, ring: Ring | None, clock: int) -> list[Batch]:
    """What the ring holds of it; rows later than `clock` too, since the stream has handed them on already."""
    if ring is None or clock <= ALWAYS:
        return [] if ring is None else ring.rows(ALWAYS)
    if past.rows is not None:
        return ring.last(past.rows, clock) + ring.rows(clock)
    return ring.rows(ALWAYS if past.length is None else clock - past.length)


def whole_from(every: list[Past], rings: Mapping[str, Ring], fronts: Mapping[str, int], clock: int) -> int:
    """The instant from which on the answers miss nothing; ALWAYS if they never do, FOREVER if they always will.

    `fronts`: per stream the instant up to which rows were handed on before now."""
    worst = ALWAYS
    for past in every:
        ring = rings.get(past.stream)
        gone = fronts[past.stream] if ring is None else ring.reach  # rows up to here can't be had
        if gone <= ALWAYS or (past.rows is not None and ring is not None and _counted(past.rows, ring, clock)):
            continue
        if past.length is None:
            return FOREVER
        if clock - past.length < gone:
            worst = max(worst, gone + past.length)
    return worst


def _counted(rows: int, ring: Ring, clock: int) -> bool:
    return sum(len(b) for b in ring.last(rows, clock)) >= rows
