"""Whatever a user holds rows in -> the data fields of `ingest` requests, cut to frames of a
sensible size.

Rows travel as rows.  Columns travel as Arrow with the types that they have, so that the server's
intake sees what the engine's would see in process; columns of mixed values as lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgpack

from dsms.errors import UsageError
from dsms.forms.scalars import as_builtin
from dsms_client.protocol import HEADER
from dsms_client.values import all_sendable, sendable, to_wire

if TYPE_CHECKING:
    from dsms.forms.frames import Named

Values = Sequence[Any] | Mapping[str, Any]  # of the parameters of a statement
Fields = Iterator[tuple[dict[str, Any], int]]
ROWS_PER_FRAME = 16384
ITEMS_PER_FRAME = 1 << 19  # of lists in columns
BYTES_PER_FRAME = 4 << 20
SAMPLES = 16  # rows by which the size of others is estimated


@dataclass(frozen=True, slots=True)
class Packed:
    """A value of a message that is msgpack already."""

    data: bytes


_BULK = (Packed, memoryview)  # the rows of an `ingest`


def frame_bytes(max_frame: int | None) -> int:
    """Bytes of rows that a frame should have at most, for a server that takes frames of
    `max_frame` bytes."""
    if max_frame is None:
        return BYTES_PER_FRAME
    return min(BYTES_PER_FRAME, max(max_frame // 2, max_frame - 4096))


def frames_of(data: Any, name: str = "the stream", size: int = BYTES_PER_FRAME) -> Fields:
    """(data field, number of rows) for each frame, at least one.

    `data`: Arrow table or batch, pandas or polars DataFrame (anything with ``__arrow_c_stream__``),
    a mapping of column name to list or array, or a list of rows.  Frames of several rows have at
    most `size` bytes of them.  Raises DS503 for a column that can't be read, DS504, DS505.
    """
    from dsms.forms.frames import is_rows, named

    if is_rows(data):
        yield from _as_rows(data if isinstance(data, (list, tuple)) else list(data), size)
        return
    columns, rows = named(data, name)
    if not columns:
        yield {"columns": {}}, 0
    elif any(isinstance(values, list) for _, values in columns):
        yield from _as_lists(columns, rows, name, size)
    else:
        yield from _as_arrow(columns, name, size)


def _as_rows(data: Sequence[Any], size: int) -> Fields:
    from dsms.forms.frames import ordinary

    first = 0
    while first < max(len(data), 1):
        piece = ordinary(data[first : first + ROWS_PER_FRAME])
        piece = piece[: _fitting(piece, size)]
        body = _packed("rows", piece)
        while len(body) > size and len(piece) > 1:
            piece = piece[: _fewer(len(piece), len(body), size)]
            body = _packed("rows", piece)
        yield {"rows": Packed(body)}, len(piece)
        first += max(1, len(piece))


def _fitting(rows: Sequence[Any], size: int) -> int:
    """About how many of the rows fit, going by some of them; at least one."""
    some = rows[:: max(1, len(rows) // SAMPLES)]
    each = len(_packed("rows", some)) // max(1, len(some))
    return max(1, size // max(1, each))


def _fewer(rows: int, had: int, size: int) -> int:
    """How many rows to try instead of so many, which had more bytes than `size`."""
    return max(1, min(rows // 2, rows * size // had))


def _as_lists(columns: Named, rows: int, name: str, size: int) -> Fields:
    lists = {
        key: values if isinstance(values, list) else _listed(values) for key, values in columns
    }
    if len(lists) < len(columns):
        raise UsageError("DS506", f"a column of {name} is given twice")
    for first in range(0, rows, ROWS_PER_FRAME):
        piece = {key: values[first : first + ROWS_PER_FRAME] for key, values in lists.items()}
        yield from _cut(piece, min(ROWS_PER_FRAME, rows - first), size)


def _cut(columns: dict[str, list[Any]], rows: int, size: int) -> Fields:
    """Columns in so many frames that none has more bytes than it should, or more items of lists
    than a server builds at once."""
    if rows < 2 or (_items(columns) <= ITEMS_PER_FRAME and _fitting_columns(columns, rows, size)):
        body = _packed("columns", columns)
        if rows < 2 or len(body) <= size:
            yield {"columns": Packed(body)}, rows
            return
    half = rows // 2
    yield from _cut({key: values[:half] for key, values in columns.items()}, half, size)
    yield from _cut({key: values[half:] for key, values in columns.items()}, rows - half, size)


def _items(columns: dict[str, list[Any]]) -> int:
    return sum(
        len(value)
        for values in columns.values()
        for value in values
        if isinstance(value, Sized) and not isinstance(value, (str, bytes))
    )


def _fitting_columns(columns: dict[str, list[Any]], rows: int, size: int) -> bool:
    """Whether the columns seem to have at most twice the bytes: then it pays to look."""
    step = max(1, rows // SAMPLES)
    some = _packed("columns", {key: values[::step] for key, values in columns.items()})
    return len(some) * step <= 2 * size


def _packed(key: str, values: Any) -> bytes:
    try:
        return msgpack.packb(values, default=to_wire)
    except Exception:  # text that is no Unicode, lists within lists without end
        return msgpack.packb(all_sendable({key: values})[key], default=to_wire)


def _listed(array: Any) -> list[Any]:
    """Values of an array, to travel beside lists."""
    import pyarrow as pa

    from dsms.forms.encodings import for_frames

    array = for_frames(array)
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type):
        array = (
            array.to_numpy(zero_copy_only=False)
            if isinstance(array, pa.Array)
            else array.to_numpy()
        )
        return [as_builtin(value) for value in array]
    return array.to_pylist()


def _as_arrow(columns: Named, name: str, size: int) -> Fields:
    import pyarrow as pa

    from dsms.forms.encodings import for_frames
    from dsms.untrusted.types import why_not
    from dsms_client.pieces import pieces

    for key, array in columns:
        assert not isinstance(array, list)
        if (why := why_not(array.type)) is not None:  # what can be written need not be readable
            raise UsageError("DS503", f"column {key!r} of {name}: {why}")
    arrays = [for_frames(array) for _, array in columns]
    table = pa.Table.from_arrays(arrays, names=[key for key, _ in columns])
    for blob, rows in pieces(table, size):
        yield {"arrow": blob}, rows


def values_of(params: Any) -> dict[str, Any]:
    """The field of `execute` that has the values of its parameters, if there are any."""
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return {"params": {str(name): sendable(value) for name, value in params.items()}}
    if isinstance(params, list | tuple):
        return {"params": [sendable(value) for value in params]}
    return {"params": sendable(params)}


def frame_of(op: str, ident: int, fields: dict[str, Any]) -> tuple[bytes | memoryview, ...]:
    """The parts of a request's frame; an Arrow blob, or what is packed, stays where it is."""
    message = {"op": op, "id": ident, **fields}
    bulk = next((key for key, value in message.items() if isinstance(value, _BULK)), None)
    if bulk is None:
        body = msgpack.packb(message, default=to_wire)
        return (HEADER.pack(len(body)) + body,)
    value = message.pop(bulk)
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(len(message) + 1)
    for key, plain in message.items():
        packer.pack(key)
        packer.pack(plain)
    packer.pack(bulk)
    head = packer.bytes()
    if not isinstance(value, Packed):
        head, blob = head + b"\xc6" + HEADER.pack(len(value)), value  # bin 32
    else:
        blob = value.data
    return HEADER.pack(len(head) + len(blob)) + head, blob
