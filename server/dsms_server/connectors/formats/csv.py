"""CSV: a message is one line or several.  Columns in the order of the stream, or by the line of
names that a file begins with (`header`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from dsms.errors import DsmsError
from dsms.intake.convert import to_batch
from dsms.sql.types import Kind
from dsms_server.connectors.formats.base import Decoded, Reading, Writing, target
from dsms_server.connectors.protocol import Messages, Option, Told
from dsms_server.decode import StreamShape

DELIMITER = Option("delimiter", "between two values", default=",")
TRUTHS = {"true": True, "1": True, "false": False, "0": False}
TYPES = {Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.BOOL: pa.bool_()}


class ReadCsv(Reading):
    """An empty value is NULL."""

    options = (
        DELIMITER,
        Option("header", "the first line of a file has names", "flag", default=False),
    )

    def rows_of(self, messages: Messages, shape: StreamShape) -> Decoded:
        names = self._names(messages, shape)
        try:
            table = self._table(messages.bodies, names, shape)
            if table is not None:
                return Decoded.of(to_batch(table, *target(shape)), shape)
        except (pa.ArrowException, DsmsError, ValueError):
            pass  # what is wrong is seen line by line
        return self._one_by_one(messages.bodies, names, shape)

    def _names(self, messages: Messages, shape: StreamShape) -> list[str]:
        if messages.header is None:
            return [f.name for f in shape.schema]
        line = messages.header.decode("utf-8-sig", "replace")
        return next(csv.reader([line], delimiter=self.said["delimiter"]), [])

    def _table(
        self, bodies: Sequence[bytes], names: list[str], shape: StreamShape
    ) -> pa.Table | None:
        kinds = {f.name.casefold(): f.type.kind for f in shape.schema}
        text = b"\n".join(bodies)
        if b'"' in text or not text.strip():
            return None  # quotes: a line may not end where it seems to
        types = {n: TYPES.get(kinds.get(n.casefold(), Kind.STRING), pa.string()) for n in names}
        table = pcsv.read_csv(
            pa.BufferReader(text),
            pcsv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
            pcsv.ParseOptions(delimiter=self.said["delimiter"]),
            pcsv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True),
        )
        return table.select([n for n in names if n.casefold() in kinds])

    def _one_by_one(self, bodies: Sequence[bytes], names: list[str], shape: StreamShape) -> Decoded:
        kinds = {f.name.casefold(): f.type.kind for f in shape.schema}
        rows: list[dict[str, Any]] = []
        rejected, why = 0, None
        for body in bodies:
            try:
                text = io.StringIO(body.decode())
                found = list(csv.reader(text, delimiter=self.said["delimiter"], strict=True))
                for line in filter(None, found):
                    rows.append(_row(line, names, kinds))
            except (ValueError, csv.Error) as problem:
                rejected, why = (
                    rejected + 1,
                    why or f"{problem}: {body[:60].decode(errors='replace')}",
                )
        try:
            return Decoded.of(to_batch(rows, *target(shape)), shape, rejected, why)
        except DsmsError as problem:
            none = to_batch([], *target(shape))
            return Decoded(none, shape, rejected + len(rows), problem.message)


def _row(line: list[str], names: list[str], kinds: dict[str, Kind]) -> dict[str, Any]:
    """Raises ValueError."""
    if len(line) != len(names):
        raise ValueError(f"{len(line)} values for {len(names)} columns")
    pairs = ((n, t) for n, t in zip(names, line, strict=True) if n.casefold() in kinds)
    return {n: None if t == "" else _value(t, kinds[n.casefold()]) for n, t in pairs}


def _value(text: str, kind: Kind) -> Any:
    match kind:
        case Kind.INT:
            return int(text)
        case Kind.FLOAT:
            return float(text)
        case Kind.DECIMAL:
            try:
                return Decimal(text)
            except InvalidOperation:
                raise ValueError(f"no number: {text}") from None
        case Kind.BOOL:
            if text.lower() not in TRUTHS:
                raise ValueError(f"no truth: {text}")
            return TRUTHS[text.lower()]
        case _:
            return text


class WriteCsv(Writing):
    """Values as they are printed; with `header` a line of names before all others."""

    media = "text/csv"
    options = (
        DELIMITER,
        Option("header", "a line of names comes first", "flag", default=True),
    )

    def lines(self, told: Told) -> list[bytes]:
        return self.whole(told).splitlines()

    def whole(self, told: Told) -> bytes:
        return self._written(self.table(told), header=False)

    def head(self, told: Told) -> bytes:
        """The line of names, with its end."""
        table = self.table(told)
        return self._written(table.slice(0, 0), header=True) if self.said["header"] else b""

    def _written(self, table: pa.Table, header: bool) -> bytes:
        sink = pa.BufferOutputStream()
        options = pcsv.WriteOptions(
            include_header=header, delimiter=self.said["delimiter"], quoting_style="needed"
        )
        pcsv.write_csv(_flat(table), sink, options)
        return sink.getvalue().to_pybytes()


def _flat(table: pa.Table) -> pa.Table:
    """Without types that CSV has no text for."""
    for at, column in enumerate(table.columns):
        kind = column.type
        if pa.types.is_duration(kind):
            table = table.set_column(at, table.column_names[at], column.cast(pa.int64()))
        elif pa.types.is_binary(kind):
            texts = [None if v is None else v.hex() for v in column.to_pylist()]
            table = table.set_column(at, table.column_names[at], pa.array(texts, pa.string()))
        elif pa.types.is_list(kind):
            texts = [None if v is None else str(v) for v in column.to_pylist()]
            table = table.set_column(at, table.column_names[at], pa.array(texts, pa.string()))
    return table
