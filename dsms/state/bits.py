"""The bit-address index of a window by partitions (Works, Rundensteiner and Agu 2012, §4).

A row's bucket is made of hash bits of its join attributes, so one index answers probes that give
any of them: bits that are not given lead to several buckets, or, where they are the lowest, to
neighbouring ones.

State    Sealed partitions, rows sorted by bucket, each under the configuration of its time: what is
         sealed is sorted anew only if it is asked for.  One open partition, its rows chained by
         bucket.
Probe    O(buckets + rows in them) a partition; a partition that none of the bits given is part of,
         or with fewer rows than buckets to visit, is read whole.
Answers  rows equal in the attributes given, that are there for the probe (`bit_kernels._matches`).
Twin     a filter over all rows, tests/test_bit_index.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.plan.index_choice import IndexConfig
from dsms.sql.types import FOREVER
from dsms.state.bit_kernels import (
    AT,
    BITS,
    BORN,
    COUNT,
    DIES,
    FIELDS,
    GONE,
    STARTS,
    chain_slots,
    probe,
    sorted_slots,
)
from dsms.state.vec import Vec


@dataclass(slots=True)
class IndexedRows:
    """What the index reads of rows, by slot: words of the attributes, int64[n, attributes], ts, the
    end of life (GONE: matches nothing), and whether a deletion has told it.  No slot before `first`
    is alive."""

    words: np.ndarray
    ts: np.ndarray
    ends: np.ndarray
    told: np.ndarray
    first: int = 0


@dataclass(slots=True)
class Probes:
    """keys int64[n, attributes], of which the bits of `given` count; the instant and the sign of
    each; `tied`: rows of the same instant come before them."""

    keys: np.ndarray
    given: int
    when: np.ndarray
    sign: np.ndarray
    tied: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A sealed partition: a row of the table, its slots by bucket, and where buckets begin."""

    head: np.ndarray
    order: np.ndarray
    starts: np.ndarray


@dataclass(slots=True)
class BitIndex:
    """attributes  of each row
    config      of the open partition, and of those to come"""

    attributes: int
    config: IndexConfig
    table: np.ndarray = field(init=False)
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    starts: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    head: np.ndarray = field(init=False)
    link: Vec = field(default_factory=Vec)
    # of the open partition: first slot, next slot, earliest ts, latest end
    span: np.ndarray = field(default_factory=lambda: np.array([0, 0, FOREVER, GONE], np.int64))

    def __post_init__(self) -> None:
        self.table = np.empty((0, FIELDS + 2 * self.attributes), np.int64)
        self.head = np.full(1 << self.config.total, -1, np.int64)

    @property
    def open_rows(self) -> int:
        """Slots in the open partition."""
        return int(self.span[1] - self.span[0])

    def file(self, rows: IndexedRows) -> None:
        """Slots that have come behind those that are filed join the open partition."""
        start, stop = int(self.span[1]), len(rows.ts)
        if stop == start:
            return
        self.link.extend_fill(stop - start, -1)
        self.span[1] = stop
        self.span[2] = min(self.span[2], rows.ts[start:].min())
        self.span[3] = max(self.span[3], rows.ends[start:].max())
        self._chain(rows, start)

    def _chain(self, rows: IndexedRows, start: int) -> None:
        spec = _spec(self.config)
        first, stop = int(self.span[0]), int(self.span[1])
        chain_slots(self.head, self.link.view, first, start, stop, rows.words, rows.ends, spec)

    def seal(self, rows: IndexedRows) -> None:
        """The open partition is sorted, and an empty one opened."""
        first, stop = int(self.span[0]), int(self.span[1])
        self._pack([*self.parts(), self._sorted(np.arange(first, stop), self.config, rows)])
        self._open(stop)

    def use(self, config: IndexConfig, rows: IndexedRows) -> None:
        """From now on; the open partition is chained anew."""
        self.config = config
        self.head = np.full(1 << config.total, -1, np.int64)
        self._chain(rows, int(self.span[0]))

    def sort_again(self, which: Sequence[int], config: IndexConfig, rows: IndexedRows) -> None:
        """Sealed partitions, by place, are sorted under that configuration."""
        parts = self.parts()
        for p in which:
            parts[p] = self._sorted(np.sort(parts[p].order), config, rows)
        self._pack(parts)

    def probe(
        self, rows: IndexedRows, probes: Probes, start: int, enough: int, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Matches of probes [start, ...) until there are `enough`: (numbers of probes, slots, the
        next probe).  seen int64[3] is added to: rows looked at, buckets visited, partitions read
        whole."""
        return probe(
            *(self.table, self.order, self.starts, self.head, self.link.view),
            *(_spec(self.config), self.span, probes.keys, probes.given, probes.when, probes.sign),
            *(probes.tied, start, enough, rows.words, rows.ts, rows.ends, rows.told, seen),
        )

    def drop(self, upto: int) -> None:
        """Forget sealed partitions of which no row is alive any more."""
        if (self.table[:, DIES] <= upto).any():
            self._pack([part for part in self.parts() if part.head[DIES] > upto])

    def renumber(self, where: np.ndarray, rows: IndexedRows, small: int) -> None:
        """Slots are others now: the new one of each old one, or -1.  Neighbours of few rows, no
        more than `small` together, become one."""
        open_rows = int((where[self.span[0] : self.span[1]] >= 0).sum())
        parts = [made for part in self.parts() if len((made := _moved(part, where)).order)]
        self._pack(self._merged(parts, rows, small))
        self._open(len(rows.ts) - open_rows)
        self.file(rows)

    def share(self, given: int) -> float:
        """The share of all rows that a probe looks at, about."""
        parts = [(config, rows) for config, rows in self.configs() if rows]
        parts.append((self.config, self.open_rows))
        looked = sum(n / 2.0 ** sum(_given(c.bits, given)) for c, n in parts)
        return looked / max(1, sum(n for _, n in parts))

    def parts(self) -> list[Part]:
        """The sealed partitions, oldest first."""
        return [
            Part(
                row,
                self.order[row[AT] : row[AT] + row[COUNT]],
                self.starts[row[STARTS] : row[STARTS] + (1 << row[BITS]) + 1],
            )
            for row in self.table
        ]

    def configs(self) -> list[tuple[IndexConfig, int]]:
        """The configuration and the rows of each sealed partition."""
        return [(_config(row), int(row[COUNT])) for row in self.table]

    @property
    def nbytes(self) -> int:
        arrays = (self.table, self.order, self.starts, self.head)
        return sum(a.nbytes for a in arrays) + self.link.nbytes

    def _open(self, first: int) -> None:
        self.span[:] = first, first, FOREVER, GONE
        self.link = Vec()
        self.head = np.full(1 << self.config.total, -1, np.int64)

    def _sorted(self, slots: np.ndarray, config: IndexConfig, rows: IndexedRows) -> Part:
        spec, buckets = _spec(config), 1 << config.total
        order, starts = sorted_slots(slots, rows.words, rows.ends, spec, buckets)
        head = np.empty(FIELDS + 2 * self.attributes, np.int64)
        head[BITS], head[FIELDS:] = config.total, spec.reshape(-1)
        head[BORN] = rows.ts[order].min() if len(order) else FOREVER
        head[DIES] = rows.ends[order].max() if len(order) else GONE
        return Part(head, order, starts)

    def _pack(self, parts: Sequence[Part]) -> None:
        """Lay the partitions one behind the other; empty ones are left out."""
        parts = [part for part in parts if len(part.order)]
        none = np.empty(0, np.int64)
        at = np.cumsum([0, *(len(part.order) for part in parts)])
        first = np.cumsum([0, *(len(part.starts) for part in parts)])
        table = np.empty((len(parts), FIELDS + 2 * self.attributes), np.int64)
        for k, part in enumerate(parts):
            table[k] = part.head
            table[k, [AT, COUNT, STARTS]] = at[k], len(part.order), first[k]
        self.order = np.concatenate([part.order for part in parts] or [none])
        self.starts = np.concatenate([part.starts for part in parts] or [none])
        self.table = table

    def _merged(self, parts: Sequence[Part], rows: IndexedRows, small: int) -> list[Part]:
        runs: list[list[Part]] = []
        for part in parts:
            if runs and sum(len(p.order) for p in runs[-1]) + len(part.order) <= small:
                runs[-1].append(part)
            else:
                runs.append([part])
        return [
            run[0]
            if len(run) == 1
            else self._sorted(np.concatenate([p.order for p in run]), self.config, rows)
            for run in runs
        ]


def _given(bits: Sequence[int], given: int) -> list[int]:
    return [b for a, b in enumerate(bits) if given >> a & 1]


def _spec(config: IndexConfig) -> np.ndarray:
    """int64[attributes, 2]: bits, and how far to the left they stand."""
    return np.array(list(zip(config.bits, config.shifts(), strict=True)), np.int64)


def _config(row: np.ndarray) -> IndexConfig:
    spec = row[FIELDS:].reshape(-1, 2)
    high = sorted(np.flatnonzero(spec[:, 0]).tolist(), key=lambda a: -spec[a, 1])
    return IndexConfig(tuple(spec[:, 0].tolist()), tuple(high))


def _moved(part: Part, where: np.ndarray) -> Part:
    """With the new slots; buckets keep their order."""
    slots = where[part.order]
    kept = slots >= 0
    before = np.append(0, np.cumsum(kept))
    return Part(part.head, slots[kept], before[part.starts])
