"""Rows written in the query itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch


@dataclass(slots=True)
class ValuesSource:
    """Constant rows, born before every instant."""

    cols: tuple[pa.Array, ...]
    rows: int
    given: bool = False

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        n = 0 if self.given else self.rows
        self.given = True
        ids = np.arange(n, dtype=np.int64)
        return Batch(
            np.full(n, ALWAYS, np.int64),
            None,
            None,
            (ids,),
            tuple(c.slice(0, n) for c in self.cols),
        )

    def live(self) -> int:
        return 0

    def nbytes(self) -> int:
        return 0

    def next_due(self) -> int:
        return FOREVER if self.given else ALWAYS
