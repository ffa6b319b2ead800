"""The data of Golab 2006, §4.4.1: records of about a thousand bytes with a search key, and
lifetimes, from uniform distributions; a step of Δ at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.sql.types import BYTES, INT, Field
from dsms.storage.archive.schema import stored_schema

SCHEMA = (Field("k", INT), Field("data", BYTES))
PAYLOAD = 960  # bytes, so that a record has a thousand with key and marks
STEP = 1_000_000  # µs: Δ
STEPS = 36  # of the longest lifetime


@dataclass(frozen=True, slots=True)
class Data:
    """rows  of a step on average;  keys  different ones;  swing  between the slowest and the
    fastest step's rate"""

    rows: int
    keys: int
    swing: float = 1.0
    seed: int = 1

    @property
    def span(self) -> int:
        """S: the longest lifetime, µs."""
        return STEPS * STEP

    def count(self, step: int) -> int:
        """Rows of a step: the same on average whatever the swing."""
        low = 2 / (1 + self.swing)
        share = np.random.default_rng((self.seed, 7, step)).uniform(low, low * self.swing)
        return round(self.rows * share)

    def marks(self, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Insertion times, expiration times and keys of a step's rows."""
        rng, n = np.random.default_rng((self.seed, step)), self.count(step)
        ts = step * STEP + np.sort(rng.integers(0, STEP, n))
        return ts, ts + rng.integers(1, self.span + 1, n), rng.integers(0, self.keys, n)

    def table(self, step: int) -> pa.Table:
        """The rows of a step."""
        ts, exp, keys = self.marks(step)
        n = len(ts)
        noise = np.random.default_rng((self.seed, 3, step)).bytes(PAYLOAD * n)
        offsets = pa.py_buffer(np.arange(n + 1, dtype=np.int32) * PAYLOAD)
        data = pa.Array.from_buffers(pa.binary(), n, [None, offsets, pa.py_buffer(noise)])
        columns = [
            pa.array(keys),
            data,
            pa.array(ts),
            pa.array(exp),
            pa.array(np.arange(n) + step * 10_000_000),
        ]
        return pa.table(columns, schema=stored_schema(SCHEMA))

    def alive(self, upto: int) -> np.ndarray:
        """The keys of all rows inserted up to an instant, and not expired by then."""
        parts = []
        for step in range(max(0, upto // STEP - STEPS), upto // STEP + 1):
            ts, exp, keys = self.marks(step)
            parts.append(keys[(ts <= upto) & (exp > upto)])
        return np.concatenate(parts)
