"""Cells of blocks of rows (`parts.blocks`) as they are after each touch of a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import Folds

BEFORE = -1  # instead of a touch: as the step began


@njit(cache=True, nogil=True)
def climb(group, block, version, out_group, out_block, out_version, left, right):
    """Of versions of blocks, by (group, block, version), those of the blocks one level higher, and
    which versions of their halves these are made of (-1: what the half was before the step); how
    many."""
    m = i = 0
    n = len(group)
    while i < n:
        g, b = group[i], block[i] >> 1
        middle = i
        while middle < n and group[middle] == g and block[middle] == 2 * b:
            middle += 1
        end = middle
        while end < n and group[end] == g and block[end] == 2 * b + 1:
            end += 1
        x, y, mine, other = i, middle, -1, -1
        while x < middle or y < end:
            if y == end or (x < middle and version[x] <= version[y]):
                v = version[x]
            else:
                v = version[y]
            if x < middle and version[x] == v:
                mine, x = x, x + 1
            if y < end and version[y] == v:
                other, y = y, y + 1
            out_group[m], out_block[m], out_version[m] = g, b, v
            left[m], right[m] = mine, other
            m += 1
        i = end
    return m


@dataclass(slots=True)
class Versions:
    """Of blocks of one level, by (group, block, version)."""

    group: np.ndarray
    block: np.ndarray
    version: np.ndarray
    cells: State

    def some(self, how: Folds, which: np.ndarray) -> Versions:
        index = np.flatnonzero(which)
        return Versions(
            self.group[index], self.block[index], self.version[index], how.take(self.cells, index)
        )

    def latest(self) -> np.ndarray:
        """bool: which are the last ones of their blocks."""
        found = np.ones(len(self.group), np.bool_)
        found[:-1] = (self.group[1:] != self.group[:-1]) | (self.block[1:] != self.block[:-1])
        return found


def together(how: Folds, parts: list[Versions]) -> Versions:
    """All of them, in this order."""
    group, block, version = (
        np.concatenate([getattr(p, name) for p in parts]) for name in ("group", "block", "version")
    )
    return Versions(group, block, version, how.concat([p.cells for p in parts]))


def in_order(how: Folds, of: Versions) -> Versions:
    """By (group, block, version); of the same the last."""
    order = np.lexsort((of.version, of.block, of.group))
    last = np.ones(len(order), np.bool_)
    for a in (of.group, of.block, of.version):
        last[:-1] &= a[order[1:]] == a[order[:-1]]
    if len(last):
        last[:-1] = ~last[:-1]
    index = order[last]
    return Versions(of.group[index], of.block[index], of.version[index], how.take(of.cells, index))
