"""ORDER BY inside of an aggregate that lists its rows: by values, and those that are equal by age.

Such an aggregate has further arguments, the keys, and for each of them a parameter behind its own,
which says how: "asc" or "desc", and "nulls first".  A row compares by its keys as others do by
their ages, so the lists of rows (`listed`) and of cells are those without ORDER BY.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.base import Arg, GroupEvents
from dsms.aggregates.parts.words import Codes, coding
from dsms.sql.expr import AggCall
from dsms.sql.types import Type
from dsms.state.lengthening import grown

Key = tuple[bool, bool]  # descending, NULLs first
CELL, PLACE = "cell", "place"


def keys_of(call: AggCall) -> tuple[Key, ...]:
    """Of a call whose arguments behind the first are keys."""
    said = call.params[len(call.params) - len(call.args) + 1 :]
    return tuple(("desc" in str(how), "nulls first" in str(how)) for how in said)


@dataclass(slots=True)
class Ages:
    """By slot what rows compare by, from the left: of each key whether it is NULL, and its word;
    then the age of the row."""

    keys: tuple[Key, ...]
    rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    own: bool = True  # the last column is the number of the slot

    def of(self, feed: GroupEvents, args: Sequence[Arg]) -> GroupEvents:
        """The events, with these ages; `args`: the keys, by slot."""
        slots, first = len(args[0].words), 2 * len(self.keys)
        ages = feed.ages.shape[1]
        width = first + max(1, ages)
        if self.rows.shape[1] != width:
            self.rows = np.zeros((0, width), np.int64)
        self.rows = grown(self.rows, slots)
        new: np.ndarray | slice = feed.slot[feed.sign > 0]
        if any(len(a.rank) for a in args):  # ranks may have moved
            new = slice(0, slots)
        for k, (a, key) in enumerate(zip(args, self.keys, strict=True)):
            self._put(2 * k, a, key, new)
        self.own = not ages
        self.rows[new, first:] = feed.ages[new] if ages else np.arange(slots)[new, None]
        return replace(feed, ages=self.rows[:slots])

    def _put(self, at: int, a: Arg, key: Key, new: np.ndarray | slice) -> None:
        down, first = key
        words = a.rank[a.words[new]] if len(a.rank) else a.words[new]
        words = ~words if down else words
        if len(a.valid):
            there = a.valid[new]
            self.rows[new, at] = np.where(there, 0, -1 if first else 1)
            words = np.where(there, words, 0)
        else:
            self.rows[new, at] = 0
        self.rows[new, at + 1] = words

    def moved(self, where: np.ndarray) -> None:
        """Slots were compacted."""
        kept = np.flatnonzero(where >= 0)
        rows = np.zeros((len(kept), self.rows.shape[1]), np.int64)
        if self.rows.shape[1]:
            rows[where[kept]] = self.rows[kept]
            if self.own:
                rows[:, -1] = np.arange(len(kept))
        self.rows = rows

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)


# ---------------------------------------------------------------- cells


def structs(value: pa.Array, keys: Sequence[pa.Array], types: Sequence[Type]) -> pa.Array:
    """The values with what they are ordered by."""
    columns, names = [value], ["value"]
    for k, (key, type_) in enumerate(zip(keys, types, strict=True)):
        columns += [key.is_null().cast(pa.int8()), _sortable(key, type_)]
        names += [f"null{k}", f"word{k}"]
    return pa.StructArray.from_arrays(columns, names)


def struct_type(value: Type, types: Sequence[Type]) -> pa.DataType:
    """That of `structs`."""
    fields = [("value", value.arrow)]
    for k, type_ in enumerate(types):
        worded = not isinstance(coding(type_), Codes)
        fields += [(f"null{k}", pa.int8()), (f"word{k}", pa.int64() if worded else type_.arrow)]
    return pa.struct(fields)


def _sortable(key: pa.Array, type_: Type) -> pa.Array:
    """Values that Arrow puts in the order of the language."""
    own = coding(type_)
    if isinstance(own, Codes):
        return key
    words, _ = own.encode(key)
    mask = None if not key.null_count else np.asarray(key.is_null())
    return pa.array(words, pa.int64(), mask=mask)


def in_order(starts: np.ndarray, values: pa.Array, keys: Sequence[Key]) -> pa.Array:
    """The values of each cell in order; equal ones as they stand."""
    cells = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    columns: dict[str, pa.Array] = {CELL: pa.array(cells), PLACE: pa.array(np.arange(len(cells)))}
    order = [(CELL, "ascending")]
    for k, (down, first) in enumerate(keys):
        for name, falls in ((f"null{k}", first), (f"word{k}", down)):
            columns[name] = values.field(name)
            order.append((name, "descending" if falls else "ascending"))
    table = pa.table(columns)
    return values.take(pc.sort_indices(table, sort_keys=[*order, (PLACE, "ascending")]))
