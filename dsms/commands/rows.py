"""Rows that a statement answers with, made of Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dsms.api import Rows
from dsms.sql.types import Type

Columns = Sequence[tuple[str, Type, list[Any]]]


def as_rows(columns: Columns) -> Rows:
    """Rows from (name, type, values)."""
    arrays = [pa.array(values, t.arrow) for _, t, values in columns]
    schema = pa.schema([pa.field(n, t.arrow) for n, t, _ in columns])
    return Rows(
        pa.RecordBatch.from_arrays(arrays, schema=schema), tuple(str(t) for _, t, _ in columns)
    )
