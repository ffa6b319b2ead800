"""CS8: a query that is another one with a longer period takes that one's answers (Golab 2006,
§8.4.3).

Members with the same `same` ask the same; of those that are due together the one with the most
boundaries is evaluated, and those that are due at some of its boundaries read these answers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dsms.sharing.member import Cells, Due


def leaders(due: Sequence[Due]) -> list[int]:
    """For each the place of the one whose answers it takes: its own, unless another has all of its
    boundaries."""
    out = list(range(len(due)))
    first: dict[int, int] = {}
    for i in sorted(out, key=lambda k: -len(due[k][1])):
        member, at = due[i]
        if not member.same:
            continue
        best = first.setdefault(member.same, i)
        if best != i and (at is due[best][1] or np.isin(at, due[best][1]).all()):
            out[i] = best
    return out


def part(cells: Cells, had: np.ndarray, at: np.ndarray) -> Cells:
    """Of the answers at the boundaries `had` those at `at`, which are among them."""
    if len(had) == len(at):
        return cells
    cols, span, _ = cells
    places = np.searchsorted(had, at)
    kept = np.flatnonzero(np.isin(span, places))
    index = pa.array(kept)
    return [c.take(index) for c in cols], np.searchsorted(places, span[kept]), len(kept)
