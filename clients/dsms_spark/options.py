"""Options of the data source `dsms`, and Arrow data in the types that Spark asks for."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dsms.errors import UsageError
from dsms.lists import from_edge
from dsms.sql.types import Kind, Type
from dsms.storage.archive.schema import type_of
from dsms.structs import from_edge as struct_texts

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from dsms_client.sync import Client

Options = Mapping[str, str]
MARKS = (("_kind", "STRING"), ("_seq", "INT"), ("_at", "TIMESTAMP"))  # of result rows


def options_of(given: Mapping[str, str]) -> dict[str, str]:
    """The options as a plain map with names in small letters (a token is taken from DSMS_TOKEN if
    it is not said)."""
    options = {str(name).lower(): value for name, value in given.items()}
    if "server" in options and "token" not in options and os.environ.get("DSMS_TOKEN"):
        options["token"] = os.environ["DSMS_TOKEN"]
    return options


def refuse_unknown(options: Options, known: Sequence[str]) -> None:
    """Raise DS640 for an option that has no meaning here."""
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"options are {', '.join(known)}"
            raise UsageError("DS640", f"the format dsms has no option {name} here", hint=hint)


def needed(options: Options, name: str, why: str) -> str:
    """The value of an option.  Raises DS640 if it is not given."""
    if name not in options:
        raise UsageError("DS640", f"the option {name} is needed: {why}")
    return options[name]


def number(options: Options, name: str) -> int | None:
    """A count, if it is given.  Raises DS640."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError("DS640", f"{name} is a number of rows, not {text!r}")
    return int(text)


def choice(options: Options, name: str, values: Sequence[str]) -> str:
    """One of some words, the first unless said.  Raises DS640."""
    value = options.get(name, values[0])
    if value not in values:
        raise UsageError("DS640", f"{name} is {' or '.join(values)}, not {value!r}")
    return value


def connected(options: Options, **more: Any) -> Client:
    """A client of the server that the options name.  Raises DS605, DS612, DS640."""
    import ssl

    from dsms_client.protocol import DEFAULT_PORT
    from dsms_client.sync import connect

    host, _, port = needed(options, "server", "host:port").rpartition(":")
    if not host:
        host, port = port, str(DEFAULT_PORT)
    if not port.isdecimal():
        raise UsageError("DS640", f"server is host:port, not {options['server']!r}")
    tls: Any = options.get("tls", "false")
    tls = (
        {"true": True, "false": False}.get(tls.lower())
        if tls.lower() in ("true", "false")
        else (ssl.create_default_context(cafile=tls))
    )
    return connect(host, int(port), token=options.get("token"), tls=tls, data="arrow", **more)


def struct(columns: Sequence[tuple[str, Type]]) -> StructType:
    """Spark's types of columns."""
    from pyspark.sql import types as t

    kinds = {
        Kind.BOOL: t.BooleanType(),
        Kind.INT: t.LongType(),
        Kind.FLOAT: t.DoubleType(),
        Kind.STRING: t.StringType(),
        Kind.BYTES: t.BinaryType(),
        Kind.TIMESTAMP: t.TimestampType(),
        Kind.INTERVAL: t.DayTimeIntervalType(),
        Kind.DATE: t.DateType(),
        Kind.TIME: t.LongType(),
        Kind.UUID: t.StringType(),
        Kind.LIST: t.StringType(),
        Kind.STRUCT: t.StringType(),
        Kind.NULL: t.NullType(),
    }
    return t.StructType(
        [
            t.StructField(
                name,
                t.DecimalType(x.precision, x.scale) if x.kind is Kind.DECIMAL else kinds[x.kind],
            )
            for name, x in columns
        ]
    )


def named_types(columns: Sequence[tuple[str, str]]) -> StructType:
    """... whose types are given by their SQL names."""
    return struct([(name, type_of(sql)) for name, sql in columns])


def arrow_of(schema: StructType) -> pa.Schema:
    """The Arrow types in which Spark takes such rows."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # before 4.2 there was no choice
        return to_arrow_schema(schema)


def fitted(table: pa.Table | pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Rows in those types, columns by position."""
    columns = [_cast(c, f.type) for c, f in zip(table.columns, schema, strict=True)]
    if isinstance(table, pa.RecordBatch):
        return [pa.RecordBatch.from_arrays(columns, schema=schema)]
    return pa.table(columns, schema=schema).to_batches()


def _cast(column: Any, wanted: pa.DataType) -> Any:
    if column.type == wanted:
        return column
    if (
        pa.types.is_timestamp(column.type)
        and column.type.tz is None
        and pa.types.is_timestamp(wanted)
    ):
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))  # without a zone it means UTC
    if pa.types.is_list(column.type) or pa.types.is_struct(column.type):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return from_edge(whole) if pa.types.is_list(column.type) else struct_texts(whole)
    return column.cast(wanted)


def newest(client: Client, query: str) -> int:
    """The number of the result row that a query gives next.  Raises DS401 where there is no such
    query."""
    from dsms_client.protocol import nearest

    queries = client.query("SHOW QUERIES")
    names, counts = (queries.columns.index(c) for c in ("query", "result_rows"))
    known = {row[names].casefold(): row[counts] for row in queries.rows}
    if query.casefold() not in known:
        hint = nearest(query.casefold(), known) or f"queries are {', '.join(known) or 'none yet'}"
        raise UsageError("DS401", f"there is no query {query}", hint=hint)
    return known[query.casefold()]


def marked(table: pa.Table, kind: Any, seq: Any, at: Any) -> pa.Table:
    """Result rows with their marks: each an array, or one value for all (instants in µs)."""
    count = table.num_rows
    numbers, instants = (
        v if isinstance(v, pa.Array) else pa.array([v] * count, pa.int64()) for v in (seq, at)
    )
    kinds = kind if isinstance(kind, pa.Array) else pa.array([kind] * count, pa.string())
    columns = (kinds, numbers, instants.cast(pa.timestamp("us", "UTC")))
    for (name, _), column in zip(MARKS, columns, strict=True):
        table = table.append_column(name, column)
    return table
