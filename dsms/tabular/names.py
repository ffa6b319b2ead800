"""Columns of one name, where a form has room for each name once."""

from __future__ import annotations

from collections.abc import Sequence


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names; one that stands before is followed by `_1`, `_2`, ...: the first that no other
    column has.

    ``("k", "v", "k")`` -> ``("k", "v", "k_1")``.  So CSV, JSON, Arrow, Parquet and DataFrames lose
    no column."""
    taken, given = set(names), set[str]()
    out = []
    for name in names:
        new, count = name, 0
        while new in given or (count and new in taken):
            count += 1
            new = f"{name}_{count}"
        given.add(new)
        out.append(new)
    return tuple(out)
