"""Kernels of the bit-address index (`dsms.state.bits`).

A partition is a row of `table`: (first place in `order`, rows, first place in `starts`, bits, the
earliest ts, the latest end, then for each attribute its bits and how far to the left they stand).
starts[first + b] is where, in the partition, the rows of bucket b begin.
"""

from __future__ import annotations

import numpy as np
from numba import njit

AT, COUNT, STARTS, BITS, BORN, DIES, FIELDS = range(7)
GONE = np.iinfo(np.int64).min


@njit(cache=True, nogil=True)
def mixed(key):
    """A hash of which the highest bits are used."""
    h = np.uint64(key)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    return h * np.uint64(0xBF58476D1CE4E5B9)


@njit(cache=True, nogil=True)
def _word(words, slot, spec):
    """The bucket of a row; spec[a] = (bits, shift)."""
    bucket = np.int64(0)
    for a in range(words.shape[1]):
        if spec[a, 0] > 0:
            part = mixed(words[slot, a]) >> np.uint64(64 - spec[a, 0])
            bucket |= np.int64(part) << spec[a, 1]
    return bucket


@njit(cache=True, nogil=True)
def chain_slots(head, link, first, start, stop, words, ends, spec):
    """Put the slots [start, stop) on top of the chains of their buckets; link[slot - first] is the
    next older one."""
    for slot in range(start, stop):
        link[slot - first] = -1
        if ends[slot] != GONE:
            bucket = _word(words, slot, spec)
            link[slot - first] = head[bucket]
            head[bucket] = slot


@njit(cache=True, nogil=True)
def sorted_slots(slots, words, ends, spec, buckets):
    """(the slots sorted by bucket, where each bucket begins); without those that are gone."""
    starts = np.zeros(buckets + 1, np.int64)
    places = np.empty(len(slots), np.int64)
    for k in range(len(slots)):
        places[k] = -1
        if ends[slots[k]] != GONE:
            places[k] = _word(words, slots[k], spec)
            starts[places[k] + 1] += 1
    for b in range(buckets):
        starts[b + 1] += starts[b]
    order = np.empty(starts[buckets], np.int64)
    at = starts[:-1].copy()
    for k in range(len(slots)):
        if places[k] >= 0:
            order[at[places[k]]] = slots[k]
            at[places[k]] += 1
    return order, starts


@njit(cache=True, nogil=True)
def _wild(spec, total, given):
    """For probes that give these attributes: (bits below all given ones, a mask of the others that
    are not given)."""
    low = total
    for a in range(len(spec)):
        if given >> a & 1 and spec[a, 0] > 0:
            low = min(low, spec[a, 1])
    high = np.int64(0)
    for a in range(len(spec)):
        if not given >> a & 1 and spec[a, 0] > 0 and spec[a, 1] >= low:
            high |= ((np.int64(1) << spec[a, 0]) - 1) << spec[a, 1]
    return low, high


@njit(cache=True, nogil=True)
def _ways(mask):
    """2 to the number of bits of the mask."""
    n = np.int64(1)
    while mask:
        mask &= mask - 1
        n <<= 1
    return n


@njit(cache=True, nogil=True)
def matches(slot, r, keys, given, when, sign, tied, words, ts, ends, told):
    """Whether the row and the probe have equal attributes, and the row is there for it.

    An arrival meets rows that came before it (`tied`: also those of its own instant) and live on.
    A deletion meets those that came before its instant and outlive it, or (`tied`) are deleted in
    it as well."""
    for a in range(words.shape[1]):  # first, since most rows that are looked at differ in them
        if given >> a & 1 and words[slot, a] != keys[r, a]:
            return False
    now = when[r]
    if sign[r] > 0:
        return ends[slot] > now and (ts[slot] < now or (tied and ts[slot] == now))
    return ts[slot] < now and (ends[slot] > now or (tied and ends[slot] == now and told[slot]))


@njit(cache=True, nogil=True)
def _grown(a):
    out = np.empty(2 * len(a), np.int64)
    out[: len(a)] = a
    return out


@njit(cache=True, nogil=True)
def listed(rows, slots, size, r, slot):
    if size == len(rows):
        rows, slots = _grown(rows), _grown(slots)
    rows[size] = r
    slots[size] = slot
    return rows, slots


@njit(cache=True, nogil=True)
def probe(
    table, order, starts, head, link, spec, span, keys, given, when, sign, tied, start, enough,
    words, ts, ends, told, seen,
):  # many arrays  # fmt: skip
    """Rows that match probes [start, ...), until there are `enough`: (numbers of probes, slots of
    their rows, the next probe).

    span  (first slot, next slot, earliest ts, latest end) of the open partition, whose buckets have
          `spec` and chains in head and link
    keys  int64[probes, attributes]; of these the bits of `given` count
    seen  int64[3], is added to: rows looked at, buckets or ranges of them, partitions read whole"""
    parts, attributes = len(table), words.shape[1]
    rows, slots = np.empty(256, np.int64), np.empty(256, np.int64)
    low, high = np.empty(parts, np.int64), np.empty(parts, np.int64)
    for p in range(parts):
        low[p], high[p] = _wild(table[p, FIELDS:].reshape(attributes, 2), table[p, BITS], given)
    bits = spec[:, 0].sum()
    under, over = _wild(spec, bits, given)
    over |= (np.int64(1) << under) - 1
    hashes = np.empty(attributes, np.uint64)
    size, r = 0, start
    while r < len(keys) and size < enough:
        now = when[r]
        for a in range(attributes):
            if given >> a & 1:
                hashes[a] = mixed(keys[r, a])
        for p in range(parts):
            if table[p, BORN] > now or table[p, DIES] < now:
                continue
            at, first = table[p, AT], table[p, STARTS]
            if _ways(high[p]) > table[p, COUNT] or low[p] == table[p, BITS]:
                seen[1] += 1
                seen[2] += 1
                for k in range(at, at + table[p, COUNT]):
                    seen[0] += 1
                    slot = order[k]
                    if matches(slot, r, keys, given, when, sign, tied, words, ts, ends, told):
                        rows, slots = listed(rows, slots, size, r, slot)
                        size += 1
                continue
            base = np.int64(0)
            for a in range(attributes):
                b = table[p, FIELDS + 2 * a]
                if given >> a & 1 and b > 0:
                    part = np.int64(hashes[a] >> np.uint64(64 - b))
                    base |= part << table[p, FIELDS + 2 * a + 1]
            wild = np.int64(0)
            while True:
                bucket = first + (base | wild)
                seen[1] += 1
                for k in range(at + starts[bucket], at + starts[bucket + (np.int64(1) << low[p])]):
                    seen[0] += 1
                    slot = order[k]
                    if matches(slot, r, keys, given, when, sign, tied, words, ts, ends, told):
                        rows, slots = listed(rows, slots, size, r, slot)
                        size += 1
                wild = (wild - high[p]) & high[p]
                if wild == 0:
                    break
        if span[2] <= now and span[3] >= now:
            if _ways(over) > span[1] - span[0]:
                seen[1] += 1
                seen[2] += under == bits
                for slot in range(span[0], span[1]):
                    seen[0] += 1
                    if matches(slot, r, keys, given, when, sign, tied, words, ts, ends, told):
                        rows, slots = listed(rows, slots, size, r, slot)
                        size += 1
            else:
                base = np.int64(0)
                for a in range(attributes):
                    if given >> a & 1 and spec[a, 0] > 0:
                        part = np.int64(hashes[a] >> np.uint64(64 - spec[a, 0]))
                        base |= part << spec[a, 1]
                wild = np.int64(0)
                while True:
                    seen[1] += 1
                    slot = head[base | wild]
                    while slot >= 0:
                        seen[0] += 1
                        if matches(slot, r, keys, given, when, sign, tied, words, ts, ends, told):
                            rows, slots = listed(rows, slots, size, r, slot)
                            size += 1
                        slot = link[slot - span[0]]
                    wild = (wild - over) & over
                    if wild == 0:
                        break
        r += 1
    return rows[:size], slots[:size], r
