"""Values to text, as the documentation of `cast` says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms import spelled
from dsms.operators.expressions.arrays import blank
from dsms.operators.expressions.errors import CAST, ErrorCounter
from dsms.operators.expressions.node import Built
from dsms.sql.types import Kind, Type

_TEXT = pa.string()


def show(source: Type) -> Built:
    """The kernel from the type to STRING."""
    match source.kind:
        case Kind.FLOAT:
            return Built(lambda errors, x: spelled.floats(x))
        case Kind.DECIMAL:
            return Built(lambda errors, x: spelled.decimals(x))
        case Kind.BYTES:
            return Built(_bytes, True)
        case Kind.TIMESTAMP:
            return Built(lambda errors, x: spelled.instants(x))
        case Kind.INTERVAL:
            return Built(lambda errors, x: spelled.lengths(x))
        case Kind.DATE:
            return Built(lambda errors, x: spelled.dates(x))
        case Kind.TIME:
            return Built(lambda errors, x: spelled.times(x))
        case Kind.UUID:
            return Built(lambda errors, x: x)
    return Built(lambda errors, x: x.cast(_TEXT))


def _bytes(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    try:
        return x.cast(_TEXT)
    except pa.ArrowInvalid:
        bad = np.fromiter(
            (v is not None and not _is_text(v) for v in x.to_pylist()), np.bool_, len(x)
        )
        errors.add(int(bad.sum()), CAST, "these BYTES are no UTF-8 text")
        return blank(x, bad).cast(_TEXT)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
