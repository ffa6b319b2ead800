"""What every join keeps of an input: its live rows and the words of their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.pieces import Look
from dsms.plan.physical import State
from dsms.sql.expr import Col, Expr
from dsms.sql.types import FOREVER, Schema
from dsms.state.columns import numpy_valid
from dsms.state.expiry import Fifo
from dsms.state.intern import Intern, word
from dsms.state.live import LiveInput

Keys = Callable[[Sequence[pa.Array], int], pa.Array]


@dataclass(slots=True)
class KeyedRows:
    """One input of a join.

    `keys`: a callable per key column; a key is its own 8 bytes where it fits, else an interned code
    (`intern` is shared by all inputs so that codes agree)."""

    schema: Schema
    width: int
    state: State
    strict: bool
    keys: Sequence[Keys]
    intern: Intern | None
    rows: LiveInput = field(init=False)
    purged: int = -(2**62)

    def __post_init__(self) -> None:
        self.rows = LiveInput(self.schema, self.width, self.state, self.strict)

    @property
    def fifo(self) -> bool:
        return isinstance(self.rows.expiry, Fifo)

    @property
    def oldest(self) -> int:
        """The first slot that may be alive (FIFO sides only)."""
        return self.rows.expiry.head if isinstance(self.rows.expiry, Fifo) else 0

    def words(self, cols: Sequence[pa.Array], n: int, look: Look) -> tuple[np.ndarray, np.ndarray]:
        """Of n rows: (a word for each key, whether none of its columns is NULL)."""
        return self.coded([k(cols, n) for k in self.keys], n, look)

    def coded(
        self, values: Sequence[pa.Array], n: int, look: Look
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `words`, of rows whose keys are known."""
        if not values:
            return np.zeros(n, np.int64), np.ones(n, np.bool_)
        ok = np.ones(n, np.bool_)
        for v in values:
            valid = numpy_valid(v)
            if valid is not None:
                ok &= valid
        if self.intern is not None:
            return self.intern.codes(values, n, look), ok
        words = word(values[0])
        assert words is not None
        return words, ok

    def known_words(self, values: Sequence[pa.Array], n: int) -> np.ndarray:
        """Words of keys without NULL, of those that some row may have."""
        if self.intern is None:
            words = word(values[0])
            assert words is not None
            return words
        codes = self.intern.lookup(values, n)
        return codes[codes >= 0]

    def settle(self, upto: int) -> np.ndarray | None:
        """Drop what has expired, but not more often than every twentieth of a lifetime (lazy
        expiry, §3.6.1).

        The new slot of each old one, if slots were renumbered: the chains must be made anew."""
        store = self.rows.store
        span = (
            int(store.exp.view[0] - max(store.ts.view[0], 0))
            if len(store) and store.exp.view[0] != FOREVER
            else 0
        )
        if upto - self.purged < span // 20:
            return None
        self.expire(upto)
        return self.rows.settle()

    def expire(self, upto: int) -> None:
        """Drop what has expired; slots stay as they are."""
        store, self.purged = self.rows.store, upto
        due = self.rows.expiry.due(np.array([upto], np.int64))
        if len(due):
            store.bury(due)
            if self.rows.index is not None:
                self.rows.index.remove([v.view for v in store.ids], due)


def key_columns(keys: Sequence[Expr]) -> tuple[int, ...]:
    """The columns that are the keys; none if some key is not a column."""
    found = tuple(key.index for key in keys if isinstance(key, Col))
    return found if len(found) == len(keys) else ()


def shared_codes(first: Sequence[pa.DataType]) -> Intern | None:
    """What turns the keys of all inputs into words, given the types of one input's; None where a
    key is a word by itself."""
    own = len(first) == 1 and word(pa.array([], first[0])) is not None
    return None if own or not first else Intern(len(first))


def codes_nbytes(interns: Sequence[Intern | None]) -> int:
    """Bytes of what turns keys into words: each once, though all inputs share it."""
    return sum(intern.nbytes for intern in interns if intern is not None)
