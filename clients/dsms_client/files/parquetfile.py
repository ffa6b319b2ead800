"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet

from dsms.errors import UsageError
from dsms.untrusted.types import check_schema
from dsms_client.files import columnar, unreadable
from dsms_client.files.options import Options
from dsms_client.files.pieces import Column, Mapping, Pieces, map_columns
from dsms_client.files.source import STDIN, FileSource


def read(
    source: FileSource,
    columns: Sequence[Column],
    renamed: dict[str, str],
    rows: int,
    options: Options,
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces of at most `rows` rows.  Raises DS503, DS532, DS530."""
    with explained(source):
        file = open_parquet(source)
        mapping = replace(map_columns(file.schema_arrow.names, columns, renamed), options=options)
        check_schema(pa.schema([file.schema_arrow.field(s) for s in mapping.used]))
    columnar.check_units(file.schema_arrow, mapping)
    total = max(file.metadata.num_rows, 1)
    found = columnar.pieces(
        _batches(file, mapping, rows), mapping, lambda seen: source.size * seen // total
    )
    return mapping, found


@contextmanager
def explained(source: FileSource) -> Iterator[None]:
    """What is wrong with the file as DS530."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        head = None if source.packed else source.raw_head()
        what = unreadable.parquet(problem, head)
        raise UsageError("DS530", f"cannot read {source.name} as Parquet: {what}") from None


def open_parquet(source: FileSource) -> pyarrow.parquet.ParquetFile:
    """The file; standard input, and what is compressed as a whole, is held in memory."""
    if source.path != STDIN and source.packed is None:
        return pyarrow.parquet.ParquetFile(source.path, page_checksum_verification=True)
    with source.binary() as stream:
        parts = iter(lambda: stream.read(1 << 20), b"")
        return pyarrow.parquet.ParquetFile(
            pa.BufferReader(b"".join(parts)), page_checksum_verification=True
        )


def _batches(
    file: pyarrow.parquet.ParquetFile, mapping: Mapping, rows: int
) -> Iterator[pa.RecordBatch]:
    with file:
        for batch in file.iter_batches(rows, columns=mapping.used):
            batch.validate(full=True)
            yield batch
