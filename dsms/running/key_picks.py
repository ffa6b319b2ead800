"""Joins of one-time queries through indices: the rows of a stream that have a key of few others
(the index is probed with the keys of the smaller side, as a semijoin before the join).

Which leaf drives which is settled when a transaction begins, from what is there then.  At its
commit the leaves that drive are read first, and the keys that they have then are looked up; so the
answer is what the rows of that instant give.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from dsms.oneshot.keyed import Source, drives, placed
from dsms.oneshot.parts import of_batch
from dsms.oneshot.pushdown import used_columns
from dsms.oneshot.relation import Op, Where
from dsms.oneshot.steps import Map
from dsms.operators.expressions import ErrorCounter
from dsms.running.indices import KINDS, Indices, Wanted
from dsms.running.picks import AnyIndex, ByValues, Pick
from dsms.sql import logical as lp
from dsms.state.batch import Batch
from dsms.state.index import WindowIndex
from dsms.state.ring import Ring

DRIVING = 1 << 16  # rows of a leaf that drives
KEYS = 1 << 12  # different keys that are looked up
FOUND = 1 << 17  # rows that may have one of them, and are compared at once

# of a leaf, read by an index or without; None: too many
Read = Callable[[int, Pick | None], Sequence[Batch] | None]


@dataclass(frozen=True, slots=True)
class KeyPick:
    """How the rows of a stream leaf are read by the keys that another leaf has.

    by     where the keys are, in the rows of that leaf as they are given to the plan
    index  over the column that is joined, if there is one now; whether that counts as asking
    used   columns that the plan looks at
    give_up  told of a bug of ours in the index
    """

    rings: Mapping[str, Ring]
    stream: str
    by: Source
    type: pa.DataType
    index: Callable[[bool], WindowIndex | None]
    used: frozenset[int]
    give_up: Callable[[AnyIndex, Exception], None]

    def pick(self, rows: Sequence[Batch]) -> Pick | None:
        """Of the keys of those rows; None: there is no index (any more)."""
        index = self.index(False)
        return None if index is None else self._of(index, self._keys(rows))

    def _of(self, index: WindowIndex, keys: pa.Array) -> Pick:
        tries = [ByValues(index, keys)]
        return Pick(self.rings, self.stream, tries, self.used, self.give_up, reduced=True)

    def few(self, rows: Sequence[Batch]) -> Pick | None:
        """If those rows drive: they have few keys, of which the index finds few rows."""
        if sum(map(len, rows)) > DRIVING:
            return None
        index = self.index(True)
        if index is None or len(keys := self._keys(rows)) > KEYS:
            return None
        pick = self._of(index, keys)
        return pick if pick.few(FOUND) else None

    def _keys(self, rows: Sequence[Batch]) -> pa.Array:
        """The different keys, no NULL among them."""
        meets = Map([Where(e) for e in self.by.where])
        parts = [meets(of_batch(b), ErrorCounter("stop")).cols[self.by.column] for b in rows]
        return pc.unique(pa.chunked_array(parts, self.type).drop_null())


def keyed(
    indices: Indices,
    plan: lp.Node,
    ops: Mapping[int, Sequence[Op]],
    streams: Mapping[int, str],
    drivers: Collection[int],
    rings: Mapping[str, Ring],
    asked: bool = True,
) -> dict[int, list[KeyPick]]:
    """By leaf number how rows of a stream may be read by keys.

    ops      what is done to rows of leaves before they are given to the plan
    drivers  leaves whose rows may be asked for their keys
    asked    what is of use counts as asked for"""
    found: dict[int, list[KeyPick]] = {}
    if not indices.settings.window_index:
        return found
    scans = {s.leaf: s for s in lp.leaves_of(plan)}
    there = [
        d
        for d in drives(plan)
        if d.by.leaf in drivers
        and streams.get(d.leaf) in rings
        and scans[d.leaf].schema[d.column].type.kind in KINDS
    ]
    used = used_columns(plan) if there else {}
    for drive in there:
        by = placed(drive.by, ops.get(drive.by.leaf, ()))
        if by is not None:
            stream = streams[drive.leaf]
            index = partial(_index, indices, stream, rings[stream], drive.column, asked)
            type_ = scans[drive.leaf].schema[drive.column].type.arrow
            columns = used.get(drive.leaf, frozenset()) | {drive.column}
            pick = KeyPick(rings, stream, by, type_, index, columns, indices.giver(stream))
            found.setdefault(drive.leaf, []).append(pick)
    return found


def _index(
    indices: Indices, stream: str, ring: Ring, column: int, counts: bool, asked: bool
) -> WindowIndex | None:
    if asked and counts:
        indices.ask(stream, ring, Wanted({column: pa.nulls(0)}, {}))
    return next((i for i, _ in indices.of(stream) if i.column == column), None)


def settled(
    candidates: Mapping[int, Sequence[KeyPick]], read: Read
) -> dict[int, tuple[KeyPick, Pick]]:
    """By leaf by what it is read, and by what it would be read now; leaves stand behind those that
    drive them.

    read  the rows of a leaf as of now"""
    found: dict[int, tuple[KeyPick, Pick]] = {}
    rows: dict[int, Sequence[Batch] | None] = {}
    left = dict(candidates)
    while (step := _step(left, found, rows, read)) is not None:
        leaf, key_pick, pick = step
        found[leaf] = key_pick, pick
        for done in (leaf, key_pick.by.leaf):  # what drives is not driven, or is already
            left.pop(done, None)
    return found


def _step(
    left: Mapping[int, Sequence[KeyPick]],
    found: Mapping[int, tuple[KeyPick, Pick]],
    rows: dict[int, Sequence[Batch] | None],
    read: Read,
) -> tuple[int, KeyPick, Pick] | None:
    """One more leaf that is driven."""
    for leaf, picks in left.items():
        for key_pick in picks:
            driver = key_pick.by.leaf
            if driver not in rows:
                rows[driver] = read(driver, found[driver][1] if driver in found else None)
            given = rows[driver]
            pick = None if given is None else key_pick.few(given)
            if pick is not None:
                return leaf, key_pick, pick
    return None
