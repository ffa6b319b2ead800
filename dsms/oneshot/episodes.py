"""What windows of episodes hold at an instant: the rows of the open one of each key."""

from __future__ import annotations

import numpy as np

from dsms.oneshot.parts import AgedRows
from dsms.operators.episode_kernels import rows_of, sessions, whens
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.window_episodes import prolonged
from dsms.sql.types import ALWAYS
from dsms.sql.window import Session, When
from dsms.state.columns import numpy_true
from dsms.state.intern import Intern


def episodes(spec: Session | When, rows: AgedRows, at: int, errors: ErrorCounter) -> AgedRows:
    """Of all rows up to `at`, in order of (birth, arrival), those in the window."""
    assert rows.birth is not None
    # what was there before every instant is in none
    rows = rows.slice(int(np.searchsorted(rows.birth, ALWAYS, side="right")), rows.n)
    birth = rows.birth
    assert birth is not None
    keys = Intern(len(spec.by))
    codes = keys.codes([rows.cols[k] for k in spec.by], rows.n)
    last, before = np.tile([-1, 0], (keys.capacity, 1)), np.empty(rows.n, np.int64)
    inside, ended = np.zeros(rows.n, np.bool_), np.empty((rows.n, 3), np.int64)
    chains = last, before, inside, ended
    match spec:
        case Session(gap):
            long = gap if isinstance(gap, int) else compile_expr(gap)(rows.cols, rows.n, errors)
            heap = *(np.empty(rows.n, np.int64) for _ in range(2)), 0
            end = np.full(keys.capacity, ALWAYS, np.int64)
            sessions(birth, codes, prolonged(birth, long), at, 0, end, *heap, *chains)
        case When(start, stop):
            says = (compile_predicate(e)(rows.cols, rows.n, errors) for e in (start, stop))
            whens(birth, codes, *map(numpy_true, says), 0, *chains)
    still = np.insert(last[last[:, 0] >= 0], 0, at, axis=1)  # as if the open ones ended now
    slots = np.empty(still[:, 2].sum(), np.int64)
    rows_of(still, before, slots)
    return rows.take(np.sort(slots))
