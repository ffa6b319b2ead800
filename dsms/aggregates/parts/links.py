"""Links between slots: rows of a group chained through arrays by slot; -1 ends a chain.

(The kernels that chain them spell it out: a call that passes eight arrays costs more than the
work.)
"""

from __future__ import annotations

import numpy as np

NIL = -1


def renamed(slots: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The slots under their new numbers; -1 stays -1."""
    return np.where(slots >= 0, where[slots], NIL)


def moved_links(links: np.ndarray, where: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Links by slot, and to slots, after the slots `kept` moved together; room for as many as
    before, or fewer if most of it is unused."""
    if not len(links):
        return links
    some = renamed(links[kept], where)
    if 4 * len(some) < len(links):
        return some
    links[: len(some)] = some
    # a later row that is in no chain must not have links from before
    links[len(some) : len(where)] = NIL
    return links
