"""JSON: a message is an object, whose keys are columns in any case, or a list of objects; lines of
files are messages.  Keys that are no columns are left out.  Objects and lists in the place of a
STRING are kept as their text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from dsms.errors import DsmsError
from dsms.intake.convert import to_batch
from dsms.sql.types import Kind
from dsms_client.columns import to_values
from dsms_server.connectors.formats.base import Decoded, Reading, Writing, target
from dsms_server.connectors.protocol import Messages, Told
from dsms_server.decode import StreamShape

PLAIN = {
    Kind.INT: pa.int64(), Kind.FLOAT: pa.float64(), Kind.STRING: pa.string(), Kind.BOOL: pa.bool_(),
}  # a table  # fmt: skip
GUESSED = {Kind.TIMESTAMP, Kind.INTERVAL}  # texts, or numbers of µs


class ReadJson(Reading):
    """Whole batches by Arrow's reader where that takes them, else message by message."""

    def rows_of(self, messages: Messages, shape: StreamShape) -> Decoded:
        beside = self.beside(messages)
        try:
            table = _table(messages.bodies, shape, beside)
            if table is not None:
                return Decoded.of(to_batch(table, *target(shape)), shape)
        except (pa.ArrowException, DsmsError, ValueError):
            pass  # what is wrong is seen message by message
        return _one_by_one(messages.bodies, shape, beside)


def _table(
    bodies: Sequence[bytes], shape: StreamShape, beside: Mapping[str, Sequence[Any]]
) -> pa.Table | None:
    """None: not all at once.  Raises what Arrow's reader raises."""
    kinds = {f.name.casefold(): f.type.kind for f in shape.schema}
    if not bodies or not {*kinds.values()} <= {*PLAIN, *GUESSED}:
        return None
    if not all(body[:1] == b"{" for body in bodies):
        return None  # lists, and `null`, which the reader takes for a row
    first = json.loads(bodies[0])
    if type(first) is not dict:
        return None
    spelled = {key.casefold(): key for key in first}
    # a column that the first message lacks goes by its declared name
    names = {f.name.casefold(): spelled.get(f.name.casefold(), f.name) for f in shape.schema}
    fields = [(names[k], PLAIN[kind]) for k, kind in kinds.items() if kind in PLAIN]
    guess = any(kind in GUESSED for kind in kinds.values())
    text = b"\n".join(bodies)
    table = pj.read_json(
        pa.BufferReader(text),
        pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pj.ParseOptions(
            explicit_schema=pa.schema(fields),
            unexpected_field_behavior="infer" if guess else "ignore",
        ),
    )
    if table.num_rows != len(bodies):
        return None
    # the reader takes what it does not know for what is not there: a name in another case
    known = [name for name in table.column_names if name.casefold() in kinds]
    if any(table.column(n).null_count and n not in first for n in known):
        return None
    table = table.select(known)
    for name, values in beside.items():
        table = table.append_column(name, [pa.array(values)])
    return table


def _one_by_one(
    bodies: Sequence[bytes], shape: StreamShape, beside: Mapping[str, Sequence[Any]]
) -> Decoded:
    kinds = {f.name.casefold(): f.type.kind for f in shape.schema}
    rows: list[Any] = []
    rejected, why = 0, None
    for number, body in enumerate(bodies):
        try:
            found = json.loads(body, parse_float=Decimal) if body.strip() else []
        except (ValueError, RecursionError) as problem:
            rejected, why = rejected + 1, why or f"no JSON: {problem}: {_shown(body)}"
            continue
        more = {name: values[number] for name, values in beside.items()}
        for one in found if type(found) is list else [found]:
            if type(one) is dict:
                rows.append({**fitted(one, kinds), **more})
            else:
                rejected, why = rejected + 1, why or f"no object: {_shown(body)}"
    try:
        return Decoded.of(to_batch(rows, *target(shape)), shape, rejected, why)
    except DsmsError as problem:  # of all of them
        none = to_batch([], *target(shape))
        return Decoded(none, shape, rejected + len(rows), problem.message)


def fitted(found: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """The columns of an object, with numbers and nested values as each wants them."""
    out = {}
    for key, value in found.items():
        kind = kinds.get(key.casefold())
        if kind is not None:
            out[key] = _value(value, kind)
    return out


def _value(value: Any, kind: Kind) -> Any:
    if isinstance(value, Decimal):
        return value if kind is Kind.DECIMAL else float(value)
    if isinstance(value, dict | list) and kind is not Kind.LIST:
        return json.dumps(value, default=float, separators=(",", ":"))
    if isinstance(value, list):
        return [_value(one, Kind.FLOAT) for one in value]
    return value


def _shown(body: bytes) -> str:
    text = bytes(body[:60]).decode(errors="replace")
    return text if len(body) <= 60 else f"{text}..."


class WriteJson(Writing):
    """A line a row.  TIMESTAMP as text with Z, INTERVAL as µs, DECIMAL as text, BYTES as hex; what
    is no number of JSON is null."""

    media = "application/json"

    def lines(self, told: Told) -> list[bytes]:
        return [json.dumps(row, separators=(",", ":")).encode() for row in self.objects(told)]

    def whole(self, told: Told) -> bytes:
        return b"[" + b",".join(self.lines(told)) + b"]"

    def objects(self, told: Told) -> Iterator[dict[str, Any]]:
        """The rows, of values that JSON knows."""
        table = self.table(told)
        names = table.column_names
        columns = [_values(column.combine_chunks()) for column in table.columns]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def _values(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind):
        return pc.strftime(array, format="%Y-%m-%dT%H:%M:%SZ").to_pylist()
    if pa.types.is_floating(kind):
        good = pc.is_finite(array)
        return pc.if_else(good, array, pa.scalar(None, kind)).to_pylist()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    if pa.types.is_list(kind):
        return [None if v is None else json.loads(v) for v in to_values(array)]
    return to_values(array)
