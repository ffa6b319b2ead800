"""Parquet: typed already, so the server judges its columns as a whole and its rows one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from dsms.errors import UsageError
from dsms.untrusted.types import check_schema
from dsms_client.files.pieces import Column, Mapping, Piece, Pieces, map_columns
from dsms_client.files.source import Source


def read(source: Source, columns: Sequence[Column], renamed: dict[str, str], rows: int) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces of at most `rows` rows.  Raises DS520, DS521."""
    try:
        file = pyarrow.parquet.ParquetFile(source.path)
        mapping = map_columns(file.schema_arrow.names, columns, renamed)
        check_schema(pa.schema([file.schema_arrow.field(s) for s in mapping.source if s is not None]))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        raise UsageError("DS521", f"cannot read {source.path} as Parquet: {problem}") from None
    return mapping, _pieces(file, source, mapping, rows)


def _pieces(file: pyarrow.parquet.ParquetFile, source: Source, mapping: Mapping, rows: int) -> Pieces:
    pairs = [(n, s) for (n, _), s in zip(mapping.columns, mapping.source, strict=True) if s is not None]
    total, seen = max(file.metadata.num_rows, 1), 0
    with file:
        for batch in file.iter_batches(rows, columns=[s for _, s in pairs]):
            arrays = [batch.column(s) for _, s in pairs]
            lines = np.arange(seen + 1, seen + 1 + batch.num_rows)
            seen += batch.num_rows
            named = pa.RecordBatch.from_arrays(arrays, [n for n, _ in pairs])
            named.validate(full=True)
            yield Piece(named, lines, done=source.size * seen // total)
