"""States of an aggregate, one lot below the other, whatever types each came with."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


class Unlike(Exception):
    """What is wrong with states that can't stand in one column, for a sentence about a function."""


def stacked(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows of the parts (at least one), column by column in a type that holds them all:
    `lift` may give NULLs alone for some rows, and integers before it gives floats.  Raises
    Unlike."""
    schemas = list(dict.fromkeys(p.schema for p in parts))
    if any(s.names != schemas[0].names for s in schemas):
        listed = " and ".join(sorted(f"({', '.join(s.names)})" for s in schemas))
        raise Unlike(f"its states have unlike columns: {listed}")
    columns = [_column([p.column(k) for p in parts]) for k in range(parts[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schemas[0].names)


def _column(parts: list[pa.Array]) -> pa.Array:
    types = list(dict.fromkeys(p.type for p in parts))
    if len(types) == 1:
        return pa.concat_arrays(parts)
    try:
        of = [pa.schema([("x", t)]) for t in types]
        to = pa.unify_schemas(of, promote_options="permissive").field(0).type
        return pa.concat_arrays([p.cast(to) for p in parts])
    except pa.ArrowException:
        listed = " and ".join(sorted(map(str, types)))
        raise Unlike(f"its states are {listed}, which no one type holds") from None
