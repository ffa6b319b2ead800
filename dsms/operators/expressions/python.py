"""Functions in Python: batches of arguments go to the process that runs them.

They see TIMESTAMP, INTERVAL, DATE and TIME as Arrow has them: instants in UTC, durations, dates and
times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists, structs
from dsms.instants import MAX_INSTANT, MIN_INSTANT
from dsms.operators.expressions.arrays import Value
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.python_functions import host
from dsms.sql.expr import Call
from dsms.sql.types import Kind, Type, item_of

_SEEN = {
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.INTERVAL: pa.duration("us"),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
}


def seen(type_: Type) -> pa.DataType:
    """A type as functions in Python see it."""
    return _SEEN.get(type_.kind, type_.arrow)


def taken(place: str, made: pa.Array, type_: Type) -> pa.Array:
    """What a function gave (as it sees the type) as a physical column.  Raises QueryError DS247 for
    what is no value of the type."""
    found = made.cast(type_.arrow)
    if type_.kind is Kind.TIMESTAMP:
        outside = pc.or_(pc.less(found, MIN_INSTANT), pc.greater(found, MAX_INSTANT))
        if pc.any(outside).as_py():
            raise host.unusable(place, "it gave an instant outside the years 0001-9999")
    if type_.kind is Kind.LIST:
        found, bad = lists.canonical(found, str(item_of(type_)))
        if bad.any():
            text = made[int(np.flatnonzero(bad)[0])].as_py()
            raise host.unusable(place, f"it gave '{text[:40]}', which is no {type_}")
    if type_.kind is Kind.STRUCT:
        found, bad = structs.canonical(found, type_.spelled_fields)
        if bad.any():
            text = made[int(np.flatnonzero(bad)[0])].as_py()
            raise host.unusable(place, f"it gave '{text[:40]}', which is no {type_}")
    return found


def _python(call: Call, args: Sequence[Node]) -> Built:
    place, wanted = str(call.params[0]), seen(call.type)
    types = [seen(a.type) for a in args]

    def kernel(errors: ErrorCounter, *given: Value) -> pa.Array:
        n = length(*given)
        columns = [
            (a if isinstance(a, pa.Array) else pa.repeat(a, n)).cast(t)
            for a, t in zip(given, types, strict=True)
        ]
        return taken(place, host.call(place, columns, wanted), call.type)

    return Built(kernel, fallible=True)


BUILDERS: dict[str, Builder] = {"python": _python}
