"""The reader that fits a file's name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dsms.errors import UsageError
from dsms_client.files.pieces import Column, Mapping, Pieces
from dsms_client.files.source import NULLS, Source


def read(
    source: Source,
    columns: Sequence[Column],
    renamed: dict[str, str],
    nulls: Sequence[str] = NULLS,
    delimiter: str | None = None,
    rows: int = 50_000,
) -> tuple[Mapping, Pieces]:
    """How the file's columns match the stream's, and its pieces.  Raises DS520, DS521."""
    match source.kind:
        case "csv" | "tsv":
            from dsms_client.files import csvfile

            delimiter = delimiter or ("\t" if source.kind == "tsv" else ",")
            mapping, pieces = csvfile.read(source, columns, renamed, nulls, delimiter)
        case "parquet" | "pq":
            from dsms_client.files import parquetfile

            mapping, pieces = parquetfile.read(source, columns, renamed, rows)
        case _:
            from dsms_client.files import jsonfile

            mapping, pieces = jsonfile.read(source, columns, renamed)
    return mapping, _guarded(source, pieces)


def _guarded(source: Source, pieces: Pieces) -> Pieces:
    """The pieces; whatever Arrow cannot read in the middle of the file is told as DS521."""
    with source.guarded():
        try:
            yield from pieces
        except pa.ArrowException as problem:
            raise UsageError("DS521", f"cannot read {source.path}: {problem}") from None
