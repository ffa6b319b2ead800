"""Bare kernels over the same arrays: what this machine can do where nothing but the loop is asked
for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

BATCH = 1 << 17


def pieces(batch: pa.RecordBatch, size: int = BATCH) -> Iterator[pa.RecordBatch]:
    """The batch in parts of `size` rows."""
    for start in range(0, batch.num_rows, size):
        yield batch.slice(start, size)


def filter_project(s: pa.RecordBatch) -> tuple[int, float]:
    """W1 by pyarrow.compute, batch by batch: (rows, sum of the new column)."""
    found = [_filter_project(piece) for piece in pieces(s)]
    return sum(len(k) for k, _ in found), sum(pc.sum(o).as_py() for _, o in found)


def _filter_project(piece: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    mask = pc.greater(piece.column(2), 0.9)
    return pc.filter(piece.column(1), mask), pc.multiply(pc.filter(piece.column(2), mask), 2.0)


@njit(cache=True, nogil=True)
def _bucket(key, mask):
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(32)) & mask)


@njit(cache=True, nogil=True)
def symmetric_join(lt, lk, lv, rt, rk, rv, width, size, out_k, out_l, out_r):
    """W4: rows in order of ts probe the other side's chains of the same hash, youngest first, until
    one is too old.

    Writes the key and both values of each pair; answers how many."""
    mask = np.uint64(size - 1)
    l_head, r_head = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    l_link, r_link = np.empty(len(lt), np.int64), np.empty(len(rt), np.int64)
    i = j = found = 0
    while i < len(lt) or j < len(rt):
        if j == len(rt) or (i < len(lt) and lt[i] <= rt[j]):
            at = _bucket(lk[i], mask)
            s = r_head[at]
            while s >= 0 and rt[s] > lt[i] - width:
                if rk[s] == lk[i]:
                    out_k[found], out_l[found], out_r[found] = lk[i], lv[i], rv[s]
                    found += 1
                s = r_link[s]
            l_link[i], l_head[at] = l_head[at], i
            i += 1
        else:
            at = _bucket(rk[j], mask)
            s = l_head[at]
            while s >= 0 and lt[s] > rt[j] - width:
                if lk[s] == rk[j]:
                    out_k[found], out_l[found], out_r[found] = rk[j], lv[s], rv[j]
                    found += 1
                s = l_link[s]
            r_link[j], r_head[at] = r_head[at], j
            j += 1
    return found


@njit(cache=True, nogil=True)
def sliding_max(ts, v, width, out):
    """W3: a monotonic queue; out[i] is the largest v of (ts[i] - width, ts[i]]."""
    queue = np.empty(len(ts), np.int64)
    first = last = 0
    for i in range(len(ts)):
        while first < last and ts[queue[first]] <= ts[i] - width:
            first += 1
        while first < last and v[queue[last - 1]] <= v[i]:
            last -= 1
        queue[last] = i
        last += 1
        out[i] = v[queue[first]]


@njit(cache=True, nogil=True)
def distinct(ts, k, width, died, enters):
    """W5: died[key] is when the key's youngest row dies (it starts at -1); counts keys that enter
    and rows that add nothing; writes the rows that make a key enter."""
    found = 0
    for i in range(len(ts)):
        if died[k[i]] < ts[i]:
            enters[found] = i
            found += 1
        died[k[i]] = ts[i] + width
    return found


@njit(cache=True, nogil=True)
def grouped(ts, k, v, width, count, total, out_count, out_sum):
    """SUM and COUNT per key over a sliding window, the new values of its group after each row."""
    old = 0
    for i in range(len(ts)):
        while ts[old] <= ts[i] - width:
            count[k[old]] -= 1
            total[k[old]] -= v[old]
            old += 1
        count[k[i]] += 1
        total[k[i]] += v[i]
        out_count[i], out_sum[i] = count[k[i]], total[k[i]]


def arrow_grouped(s: pa.RecordBatch) -> pa.Table:
    """Arrow's grouped aggregation of the whole input."""
    return pa.Table.from_batches([s]).group_by("k").aggregate([("v", "sum"), ("v", "count")])
