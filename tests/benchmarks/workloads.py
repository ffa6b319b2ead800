"""The peer workloads W1, W3, W4, W5: their input, and answers computed by NumPy alone.

Input: s(ts µs, k in 0..999 uniform, v float), rows 10 µs apart;  l and r(ts, k in 0..99,999, v),
interleaved, each 20 µs apart.  W1  v > 0.9, k and v·2;  W3  MAX(v) over 1 s, new for each row;  W4
l joined with r on k within 2 s;
W5  DISTINCT k over 1 s, which the peers answer each 100 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
TICK = 100_000
KEYS, JOIN_KEYS = 1000, 100_000


@dataclass(frozen=True, slots=True)
class Data:
    """The three streams, a single batch each, by ts."""

    s: pa.RecordBatch
    l: pa.RecordBatch  # noqa: E741
    r: pa.RecordBatch

    @property
    def rows(self) -> int:
        """Rows of s, and of l and r together."""
        return self.s.num_rows


def make(rows: int, seed: int = 20260101) -> Data:
    """Input of `rows` rows for each workload."""
    rng = np.random.default_rng(seed)
    half = rows // 2
    s = _batch(np.arange(rows) * 10, rng.integers(0, KEYS, rows), rng.random(rows))
    left = _batch(np.arange(half) * 20, rng.integers(0, JOIN_KEYS, half), rng.random(half))
    right = _batch(np.arange(half) * 20 + 10, rng.integers(0, JOIN_KEYS, half), rng.random(half))
    return Data(s, left, right)


def _batch(ts: np.ndarray, k: np.ndarray, v: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"ts": pa.array(ts), "k": pa.array(k), "v": pa.array(v)})


def columns(batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ts, k and v as NumPy arrays."""
    ts, k, v = (column.to_numpy() for column in batch.columns)
    return ts, k, v


def filtered(s: pa.RecordBatch) -> tuple[int, float]:
    """W1: rows, sum of v·2."""
    v = columns(s)[2]
    passed = v[v > 0.9]
    return len(passed), float((passed * 2).sum())


def sliding_max(s: pa.RecordBatch, width: int = SECOND) -> np.ndarray:
    """W3: the largest v of (ts - width, ts] for each row (van Herk / Gil-Werman; rows are evenly
    spaced)."""
    ts, _, v = columns(s)
    n = min(len(v), max(1, width // int(ts[1] - ts[0])))
    padded = np.concatenate([np.full(n - 1, -np.inf), v])
    blocks = -(-len(padded) // n)
    grid = np.concatenate([padded, np.full(blocks * n - len(padded), -np.inf)]).reshape(blocks, n)
    before = np.maximum.accumulate(grid, 1).ravel()
    after = np.maximum.accumulate(grid[:, ::-1], 1)[:, ::-1].ravel()
    return np.maximum(after[: len(v)], before[n - 1 : n - 1 + len(v)])


def joined(
    left: pa.RecordBatch, right: pa.RecordBatch, width: int = 2 * SECOND
) -> tuple[int, float]:
    """W4: pairs of equal keys less than `width` apart, and the sum of both their values."""
    lt, lk, lv = columns(left)
    rt, rk, rv = columns(right)
    order = np.lexsort((rt, rk))
    rank = rk[order] * (1 << 40) + rt[order]
    lo = np.searchsorted(rank, lk * (1 << 40) + np.maximum(lt - width + 1, 0), "left")
    hi = np.searchsorted(rank, lk * (1 << 40) + lt + width - 1, "right")
    prefix = np.concatenate([[0.0], np.cumsum(rv[order])])
    return int((hi - lo).sum()), float(((hi - lo) * lv).sum() + (prefix[hi] - prefix[lo]).sum())


def distinct_changes(s: pa.RecordBatch, width: int = SECOND) -> tuple[int, int]:
    """W5: how often a key enters the set of live keys, and leaves it by the last row's instant.

    A row lives over [ts, ts + width): a key stays if its next row comes by the time the former
    dies."""
    ts, k, _ = columns(s)
    order = np.lexsort((ts, k))
    key, at = k[order], ts[order]
    new = np.ones(len(at), np.bool_)
    new[1:] = (key[1:] != key[:-1]) | (at[1:] - at[:-1] > width)
    last_of_life = np.append(new[1:], True)
    return int(new.sum()), int((last_of_life & (at + width <= ts[-1])).sum())


def distinct_ticks(s: pa.RecordBatch, width: int = SECOND) -> np.ndarray:
    """W5 as the peers answer it: how many keys are live at the end of each 100 ms, windows past the
    end included."""
    ts, k, _ = columns(s)
    seen = np.zeros((int(ts[-1]) // TICK + 1, KEYS), np.bool_)
    seen[ts // TICK, k] = True
    panes = width // TICK
    margin = np.zeros((panes - 1, KEYS), np.bool_)
    padded = np.concatenate([margin, seen, margin])
    return np.array([padded[i : i + panes].any(0).sum() for i in range(len(padded) - panes + 1)])


def grouped(s: pa.RecordBatch, width: int | None) -> tuple[np.ndarray, np.ndarray]:
    """COUNT and SUM(v) per key at the last row's instant, of all rows or those of the last `width`
    µs."""
    ts, k, v = columns(s)
    live = np.ones(len(ts), np.bool_) if width is None else ts > ts[-1] - width
    return np.bincount(k[live], minlength=KEYS), np.bincount(
        k[live], weights=v[live], minlength=KEYS
    )
