"""STeMs: the rows of one input of an adaptive join, which can be probed by any of their join
attributes (Raman, Deshpande and Hellerstein 2003; Works, Rundensteiner and Agu 2012, §3, §4).

Input    any pattern; a row with a NULL among its attributes is kept out, since it matches nothing.
State    the live rows, a word for each attribute, and a hash index for each of these; or one
         bit-address index for all, over partitions of a quarter of the rows alive.
Cost     O(1) to store a row.  A partition of a bit-address index is sorted once, when it is full,
         and dropped whole once nothing in it is alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.keyed_rows import KeyedRows
from dsms.operators.pieces import Look
from dsms.plan.index_choice import IndexConfig, bits_for
from dsms.state.batch import Batch
from dsms.state.bit_kernels import GONE
from dsms.state.bits import BitIndex, IndexedRows
from dsms.state.columns import numpy_valid
from dsms.state.hash_chains import HashChains, different
from dsms.state.intern import Intern, word
from dsms.state.vec import Matrix, Vec

LEAST, MOST = 256, 1 << 16  # rows of a partition
SHARE = 4  # of the rows alive, as the windows of the paper's experiments


@dataclass(slots=True)
class Stem(KeyedRows):
    """classes  the equality that each attribute (`keys`) belongs to
    interns  codes of each class's values, shared by all stems; None where a value is a word
    tuned    whether the index is a bit-address index
    values   different values of each attribute in the last partition that was sealed
    come     rows so far"""

    classes: tuple[int, ...] = ()
    interns: Sequence[Intern | None] = ()
    tuned: bool = True
    index: BitIndex | HashChains = field(init=False)
    values: tuple[float, ...] = ()
    come: int = 0

    def __post_init__(self) -> None:
        KeyedRows.__post_init__(self)
        n = len(self.classes)
        extra = {"words": Matrix(width=n), "ends": Vec(), "told": Vec(np.bool_)}
        self.rows.store.extra.update(extra)
        self.values = (1e9,) * n
        if not self.tuned:
            self.index = HashChains(n)
            return
        bits = bits_for(LEAST)
        shares = tuple(bits // n + (a < bits % n) for a in range(n))
        self.index = BitIndex(n, IndexConfig(shares, tuple(a for a in range(n) if shares[a])))

    @property
    def indexed(self) -> IndexedRows:
        """What the index reads of the rows."""
        extra, ts = self.rows.store.extra, self.rows.store.ts
        views = extra["words"].view, ts.view, extra["ends"].view, extra["told"].view
        return IndexedRows(*views, self.oldest)

    @property
    def partition(self) -> int:
        """Rows of a partition."""
        return max(LEAST, min(MOST, self.rows.store.live // SHARE))

    def pattern(self, known: int) -> int:
        """The attributes that are given where the classes `known` are, as a bit set."""
        return sum(1 << a for a, c in enumerate(self.classes) if known >> c & 1)

    def arrive(self, batch: Batch, look: Look) -> tuple[np.ndarray, np.ndarray]:
        """Store a batch: of each of its rows the slot it speaks of, and whether it joins (it has no
        NULL, and is the first to tell the end of a row)."""
        store = self.rows.store
        slots, spoken = self.rows.arrive(batch)
        born = batch if batch.sign is None else batch.take(np.flatnonzero(batch.sign > 0))
        words, ok = self._attributes(born.cols, len(slots), look)
        store.extra["words"].extend(words)
        store.extra["ends"].extend(np.where(ok, born.exps(), GONE))
        store.extra["told"].extend_fill(len(slots), False)
        self.come += len(slots)
        joins = spoken >= 0
        ends = store.extra["ends"].view
        if batch.sign is None:
            joins &= ends[spoken] != GONE
        else:
            joins[joins] &= ends[spoken[joins]] != GONE
            gone = np.flatnonzero((batch.sign < 0) & joins)
            joins[gone] &= ends[spoken[gone]] > batch.ts[gone]
            gone = gone[joins[gone]]
            ends[spoken[gone]] = batch.ts[gone]
            store.extra["told"].view[spoken[gone]] = True
        self.index.file(self.indexed)
        return spoken, joins

    def _attributes(
        self, cols: Sequence[pa.Array], n: int, look: Look
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of n rows: (a word for each attribute, int64[n, attributes]; whether none is NULL)."""
        words, ok = np.zeros((n, len(self.classes)), np.int64), np.ones(n, np.bool_)
        for a, (key, of) in enumerate(zip(self.keys, self.classes, strict=True)):
            values = key(cols, n)
            valid = numpy_valid(values)
            if valid is not None:
                ok &= valid
            intern = self.interns[of]
            if intern is not None:
                words[:, a] = intern.codes([values], n, look)
            else:
                found = word(values)
                assert found is not None
                words[:, a] = found
        return words, ok

    def full(self) -> bool:
        """Whether the open partition has all its rows."""
        return self.index.open_rows >= self.partition

    def seal(self, config: IndexConfig | None) -> None:
        """Close the partition; the next one has that configuration (None: hash indices)."""
        rows = self.indexed
        if isinstance(self.index, HashChains):
            self.index.count(rows)
            self.values = self.index.values
            return
        assert config is not None
        first = int(self.index.span[0])
        self.values = tuple(different(rows.words, first).tolist())
        self.index.seal(rows)
        if config != self.index.config:
            self.index.use(config, rows)

    def settle_index(self, upto: int) -> None:
        """End of a step: drop what has expired."""
        where = self.settle(upto)
        if where is not None:
            self._renumber(where)
        elif isinstance(self.index, BitIndex):
            self.index.drop(upto)

    def close_gaps(self) -> None:
        """Rows have been buried: close the gaps, if that pays."""
        if (where := self.rows.settle()) is not None:
            self._renumber(where)

    def _renumber(self, where: np.ndarray) -> None:
        if isinstance(self.index, HashChains):
            self.index.renumber(self.indexed)
        else:
            self.index.renumber(where, self.indexed, self.partition // 2)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.index.nbytes
