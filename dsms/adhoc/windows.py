"""What a window holds at an instant, of rows in order of (birth, arrival)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dsms.adhoc.parts import Part
from dsms.plan.boundaries import window_start
from dsms.sql.logical import WindowSpec
from dsms.sql.types import ALWAYS
from dsms.state.intern import Intern


def content(spec: WindowSpec, rows: Part, at: int) -> Part:
    """The window's rows at `at`; `birth` becomes the instant at which each entered it.

    `rows` are all that came up to `at`, or the newest of them, as many as matter."""
    assert rows.birth is not None
    rows = _between(rows, None, at)
    match spec.kind:
        case "time":
            return _time(spec, rows, at)
        case "now":
            return _between(rows, at - 1, at)
        case "landmark":
            return _between(rows, spec.since - 1, at)
        case "rows":
            return _rows(rows, np.arange(rows.n - 1, -1, -1, dtype=np.int64), np.arange(rows.n), spec)
        case "partitioned":
            return _partitioned(spec, rows)
        case _:
            return rows


def since(spec: WindowSpec, at: int) -> int | None:
    """The instant after which everything in the window at `at` was born, if the window says so itself."""
    match spec.kind:
        case "time":
            return window_start(spec, at + 1) - 1
        case "now":
            return at - 1
        case "landmark":
            return spec.since - 1
        case _:
            return None


def _between(rows: Part, after: int | None, upto: int) -> Part:
    """The rows born in (after, upto]."""
    assert rows.birth is not None
    start = 0 if after is None else int(np.searchsorted(rows.birth, max(after, ALWAYS), side="right"))
    stop = int(np.searchsorted(rows.birth, max(upto, ALWAYS), side="right"))
    return rows if start == 0 and stop == rows.n else rows.slice(start, stop)


def _time(spec: WindowSpec, rows: Part, at: int) -> Part:
    after = since(spec, at)
    inside = _between(rows, after, at - spec.until)
    assert inside.birth is not None
    return replace(inside, birth=inside.birth + spec.until) if spec.until else inside


def _rows(rows: Part, younger: np.ndarray, order: np.ndarray, spec: WindowSpec) -> Part:
    """Those of which at least `until` and less than `length` rows are younger.

    younger[k], order[k]: by place in an order in which the rows of a partition stand together, oldest first."""
    inside = np.flatnonzero((younger >= spec.until) & (younger < spec.length))
    if spec.until:
        assert rows.birth is not None
        entered = rows.birth[order[inside + spec.until]]  # with the row that made it old enough
    kept = order[inside]
    sorted_ = np.argsort(kept, kind="stable")
    out = rows.take(kept[sorted_])
    return replace(out, birth=entered[sorted_]) if spec.until else out


def _partitioned(spec: WindowSpec, rows: Part) -> Part:
    codes = Intern(len(spec.partition)).codes([rows.cols[c] for c in spec.partition], rows.n)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    return _rows(rows, ends[codes[order]] - 1 - np.arange(rows.n), order, spec)
