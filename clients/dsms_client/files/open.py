"""The reader that fits a file."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dsms.errors import UsageError
from dsms_client.files import unreadable
from dsms_client.files.options import Options
from dsms_client.files.pieces import Column, Mapping, Pieces
from dsms_client.files.source import FileSource
from dsms_client.files.text import NO_UNIT, no_unit


def read(
    source: FileSource,
    columns: Sequence[Column],
    renamed: dict[str, str],
    options: Options | None = None,
    rows: int = 50_000,
) -> tuple[Mapping, Pieces]:
    """How the file's columns match the stream's, and its pieces (of Parquet and Arrow at most
    `rows` rows each).  `options`: None for those of the source.

    Raises DS530, DS532; and DS503 (perhaps with the first piece) if a unit is needed and not
    given."""
    options = source.options if options is None else options
    match source.kind:
        case "csv" | "tsv":
            from dsms_client.files import csvfile

            mapping, pieces = csvfile.read(source, columns, renamed, options)
        case "zeek":
            from dsms_client.files import zeekfile

            mapping, pieces = zeekfile.read(source, columns, renamed, options)
        case "apache" | "lines":
            from dsms_client.files import linesfile

            mapping, pieces = linesfile.read(source, columns, renamed, options)
        case "parquet":
            from dsms_client.files import parquetfile

            mapping, pieces = parquetfile.read(source, columns, renamed, rows, options)
        case "arrow":
            from dsms_client.files import arrowfile

            mapping, pieces = arrowfile.read(source, columns, renamed, rows, options)
        case _:
            from dsms_client.files import jsonfile

            mapping, pieces = jsonfile.read(source, columns, renamed, options)
    known = mapping.options.unit
    return mapping, _guarded(source, pieces if known else _with_units(pieces))


def _guarded(source: FileSource, pieces: Pieces) -> Pieces:
    """The pieces; whatever Arrow cannot read in the middle of the file is raised as DS530."""
    with source.guarded():
        try:
            yield from pieces
        except pa.ArrowException as problem:
            parquet = source.kind == "parquet"
            what = unreadable.parquet(problem, None) if parquet else str(problem)
            raise UsageError("DS530", f"cannot read {source.name}: {what}") from None


def _with_units(pieces: Pieces) -> Pieces:
    """The same, unless all instants in a column of the first piece are numbers: nothing was sent
    yet."""
    for place, piece in enumerate(pieces):
        unclear = [reject.reason for reject in piece.rejects if reject.reason.endswith(NO_UNIT)]
        if place == 0 and unclear:
            for name, column in zip(piece.batch.schema.names, piece.batch.columns, strict=True):
                if unclear[0].startswith(f"{name}: ") and column.null_count == len(column):
                    number = unclear[0].removeprefix(f"{name}: ").partition(" is not ")[0]
                    raise no_unit(name, number)
        yield piece
