"""What a window holds at an instant, of rows in order of (birth, arrival)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import numpy as np
import pyarrow.compute as pc

from dsms.oneshot.episodes import episodes
from dsms.oneshot.parts import AgedRows
from dsms.operators.expressions import ErrorCounter
from dsms.operators.window_first import first_of
from dsms.operators.window_lasting import leaving
from dsms.operators.window_throttled import let_in
from dsms.plan.windows import ends, since, until
from dsms.sql.keyed import DELETE
from dsms.sql.types import ALWAYS
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)
from dsms.state.columns import numpy_values
from dsms.state.intern import Intern


def content(spec: WindowSpec, rows: AgedRows, at: int, errors: ErrorCounter) -> AgedRows:
    """The window's rows at `at`; `birth` becomes the instant at which each entered it.

    `rows` are all that came up to `at`, or the newest of them, as many as matter.  `errors`: what
    fails in it."""
    assert rows.birth is not None
    rows = _between(rows, None, at)
    match spec:
        case Time() | Now() | Landmark() | Unbounded():
            inside = _between(rows, since(spec, at), ends(spec, at))
            late, birth = until(spec), inside.birth
            assert birth is not None
            if not late:
                return inside
            return replace(inside, birth=np.where(birth <= ALWAYS, birth, birth + late))
        case First():
            codes = Intern(len(spec.by)).codes([rows.cols[c] for c in spec.by], rows.n)
            seen = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
            return rows.take(np.flatnonzero(first_of(codes, spec.count, seen)))
        case Throttled():
            return _throttled(spec, rows, at)
        case Lasting():
            return _lasting(spec, rows, at)
        case Rows():
            return _rows(
                rows, np.arange(rows.n - 1, -1, -1, dtype=np.int64), np.arange(rows.n), spec
            )
        case Partitioned():
            return _partitioned(spec, _between(rows, since(spec, at), at))
        case Session() | When():
            return episodes(spec, rows, at, errors)
        case Latest():
            last = _partitioned(Partitioned(1, by=spec.by), rows)
            deletes = pc.equal(last.cols[spec.operation], DELETE)
            return last.take(np.flatnonzero(~numpy_values(deletes)))
        case _:
            assert_never(spec)


def _lasting(spec: Lasting, rows: AgedRows, at: int) -> AgedRows:
    """Those that have entered, and have not left."""
    inside = _between(rows, ALWAYS, ends(spec, at))
    assert inside.birth is not None
    exp = leaving(inside.birth, inside.cols[spec.end], spec.spans)
    entered = inside.birth + spec.until
    there = np.flatnonzero((exp > at) & (exp > entered))
    return replace(inside.take(there), birth=entered[there])


def _throttled(spec: Throttled, rows: AgedRows, at: int) -> AgedRows:
    """Those that have entered and not left, of one after the other."""
    inside = _between(rows, ALWAYS, ends(spec, at))
    assert inside.birth is not None
    codes = Intern(len(spec.by)).codes([inside.cols[c] for c in spec.by], inside.n)
    before = np.full(int(codes.max(initial=-1)) + 1, ALWAYS, np.int64)
    enters = let_in(codes, inside.birth, spec.length, before)
    there = np.flatnonzero(enters & (inside.birth + spec.length > at))
    return replace(inside.take(there), birth=inside.birth[there] + spec.until)


def _between(rows: AgedRows, after: int | None, upto: int) -> AgedRows:
    """The rows born in (after, upto]."""
    assert rows.birth is not None
    start = (
        0 if after is None else int(np.searchsorted(rows.birth, max(after, ALWAYS), side="right"))
    )
    stop = int(np.searchsorted(rows.birth, max(upto, ALWAYS), side="right"))
    return rows if start == 0 and stop == rows.n else rows.slice(start, stop)


def _rows(
    rows: AgedRows, younger: np.ndarray, order: np.ndarray, spec: Rows | Partitioned
) -> AgedRows:
    """Those of which at least `until` and less than `count` rows are younger.

    younger[k], order[k]: by place in an order in which the rows of a partition stand together,
    oldest first."""
    inside = np.flatnonzero((younger >= spec.until) & (younger < spec.count))
    if spec.until:
        assert rows.birth is not None
        entered = rows.birth[order[inside + spec.until]]  # with the row that made it old enough
    kept = order[inside]
    sorted_ = np.argsort(kept, kind="stable")
    out = rows.take(kept[sorted_])
    return replace(out, birth=entered[sorted_]) if spec.until else out


def _partitioned(spec: Partitioned, rows: AgedRows) -> AgedRows:
    codes = Intern(len(spec.by)).codes([rows.cols[c] for c in spec.by], rows.n)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    return _rows(rows, ends[codes[order]] - 1 - np.arange(rows.n), order, spec)
