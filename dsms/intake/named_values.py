"""Values that rows of a stream are told by, as a user's program names them ({"k": 5}, {"k": [5, 6],
"j": "a"}), and all combinations of values of several columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.intake.keys import Keys
from dsms.intake.values import physical
from dsms.sql.catalog import StreamDef
from dsms.sql.types import NESTED, Kind, Type

MOST = 1 << 16  # combinations at a time
_SEVERAL = (list, tuple, set, frozenset, np.ndarray, pa.Array)


def named_values(
    where: Mapping[str, Any], stream: StreamDef
) -> tuple[tuple[int, ...], tuple[pa.Array, ...]]:
    """Positions of columns, ascending, and all combinations of their values.

    Raises UsageError DS501 an unknown column, DS335 no column or a value that its column can't
    have, DS336 too many combinations."""
    if not isinstance(where, Mapping) or not where:
        hint = 'name columns and their values: {"k": 5}'
        raise UsageError("DS335", "which values do no longer come?", hint=hint)
    keys = Keys([f.name for f in stream.schema], f"stream {stream.name}", ())
    found: dict[int, pa.Array] = {}
    for name, value in where.items():
        at = keys.position(name)
        if at in found:
            raise UsageError("DS335", f"column {stream.schema[at].name} is there twice")
        values = list(value) if isinstance(value, _SEVERAL) else [value]
        found[at] = _array(values, stream.schema[at].type, stream.schema[at].name)
    columns = tuple(sorted(found))
    return columns, combined([found[at] for at in columns])


def _array(values: Sequence[Any], type_: Type, name: str) -> pa.Array:
    if type_.kind in NESTED:
        what = "list" if type_.kind is Kind.LIST else "struct"
        raise UsageError("DS335", f"column {name} is a {what}, and rows are told by single values")
    if not values:
        raise UsageError("DS335", f"column {name} is given no value")
    try:
        return pa.array([physical(v, type_) for v in values], type_.arrow)
    except (ValueError, pa.ArrowException) as problem:
        raise UsageError("DS335", f"column {name} is {type_}: {problem}") from None


def combined(values: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
    """All combinations of one value of each.  Raises UsageError DS336 for more than MOST."""
    sizes = [len(v) for v in values]
    total = 1
    for size in sizes:
        total *= size
    if total > MOST:
        message = f"{total} combinations of values; a punctuation has {MOST} at most"
        raise UsageError("DS336", message, hint="write several")
    places = np.unravel_index(np.arange(total), sizes)
    return tuple(v.take(pa.array(at)) for v, at in zip(values, places, strict=True))
