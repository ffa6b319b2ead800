"""The reader that fits a file's name."""

from __future__ import annotations

from collections.abc import Sequence

from dsms_client.files.pieces import Column, Mapping, Pieces
from dsms_client.files.source import Source

NULLS = ("", "NULL", "\\N")


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

            return csvfile.read(source, columns, renamed, nulls, delimiter or ("\t" if source.kind == "tsv" else ","))
        case "parquet" | "pq":
            from dsms_client.files import parquetfile

            return parquetfile.read(source, columns, renamed, rows)
        case _:
            from dsms_client.files import jsonfile

            return jsonfile.read(source, columns, renamed)
