"""Functions in Python: batches of arguments go to the process that runs them.

They see TIMESTAMP and INTERVAL as Arrow has them: instants in UTC, durations."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dsms.operators.expressions.arrays import Value
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.python_functions import host
from dsms.sql.expr import Call
from dsms.sql.types import Kind, Type

_SEEN = {Kind.TIMESTAMP: pa.timestamp("us", "UTC"), Kind.INTERVAL: pa.duration("us")}


def seen(type_: Type) -> pa.DataType:
    """A type as functions in Python see it."""
    return _SEEN.get(type_.kind, type_.arrow)


def _python(call: Call, args: Sequence[Node]) -> Built:
    place, wanted = str(call.params[0]), seen(call.type)
    types = [seen(a.type) for a in args]

    def kernel(errors: ErrorCounter, *given: Value) -> pa.Array:
        n = length(*given)
        columns = [
            (a if isinstance(a, pa.Array) else pa.repeat(a, n)).cast(t)
            for a, t in zip(given, types, strict=True)
        ]
        return host.call(place, columns, wanted).cast(call.type.arrow)

    return Built(kernel, fallible=True)


BUILDERS: dict[str, Builder] = {"python": _python}
