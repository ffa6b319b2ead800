"""Arithmetic of DATE and TIME: days to and from a date, lengths around the clock of a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from dsms.operators.expressions import arithmetic
from dsms.operators.expressions.arithmetic import in_years
from dsms.operators.expressions.arrays import Value, both, from_ints, ints, present
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Kernel, Node, length
from dsms.sql.expr import Call
from dsms.sql.types import Kind
from dsms.typed_texts import DAY

_MOST = 4_000_000  # days between any two dates are fewer
Step = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _pair(step: Step, what: str = "") -> Kernel:
    """The kernel of a step over int64 values; `what` may leave the years that there are."""

    def kernel(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
        n = length(x, y)
        here = both(present(x), present(y))
        values = np.broadcast_to(step(ints(x), ints(y)), n)
        out = from_ints(values, None if here is None else np.broadcast_to(here, n))
        return in_years(errors, out, what) if what else out

    return kernel


def _days(count: np.ndarray) -> np.ndarray:
    return np.clip(count, -_MOST, _MOST) * DAY


_STEPS: dict[tuple[str, Kind, Kind], Step] = {
    ("sub", Kind.DATE, Kind.DATE): lambda x, y: (x - y) // DAY,
    ("add", Kind.DATE, Kind.INT): lambda x, y: x + _days(y),
    ("add", Kind.INT, Kind.DATE): lambda x, y: _days(x) + y,
    ("sub", Kind.DATE, Kind.INT): lambda x, y: x - _days(y),
    ("add", Kind.DATE, Kind.TIME): lambda x, y: x + y,
    ("add", Kind.TIME, Kind.DATE): lambda x, y: x + y,
    ("add", Kind.TIME, Kind.INTERVAL): lambda x, y: (x + y % DAY) % DAY,
    ("add", Kind.INTERVAL, Kind.TIME): lambda x, y: (x % DAY + y) % DAY,
    ("sub", Kind.TIME, Kind.INTERVAL): lambda x, y: (x - y % DAY) % DAY,
    ("sub", Kind.TIME, Kind.TIME): lambda x, y: x - y,
}
_COUNTED = frozenset(key for key in _STEPS if Kind.INT in key[1:])  # days may be too many


def _or_days(others: Builder) -> Builder:
    """The builder of pairs of which one is a DATE or TIME, others by `others`."""

    def build(call: Call, args: Sequence[Node]) -> Built | Node:
        kinds = args[0].type.kind, args[1].type.kind
        step = _STEPS.get((call.fn, *kinds))
        if step is None:
            return others(call, args)
        fails = (call.fn, *kinds) in _COUNTED
        sign = "+" if call.fn == "add" else "-"
        what = f"{args[0].type} {sign} {args[1].type}" if fails else ""
        return Built(_pair(step, what), fails)

    return build


BUILDERS: dict[str, Builder] = {fn: _or_days(arithmetic.BUILDERS[fn]) for fn in ("add", "sub")}
