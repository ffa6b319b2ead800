"""Whatever a user holds rows in -> the data fields of `ingest` requests, cut to frames of a
sensible size.

Rows travel as rows.  Columns travel as Arrow with the types that they have, so that the server's
intake sees what the engine's would see in process; columns of mixed values as lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

import msgpack

from dsms.errors import UsageError
from dsms.forms.scalars import as_builtin
from dsms_client.protocol import HEADER
from dsms_client.values import all_sendable, sendable, to_wire

if TYPE_CHECKING:
    from dsms.forms.frames import Named

Values = Sequence[Any] | Mapping[str, Any]  # of the parameters of a statement
ROWS_PER_FRAME = 16384
ITEMS_PER_FRAME = 1 << 19  # of lists in columns
BYTES_PER_FRAME = 4 << 20


def frames_of(data: Any, name: str = "the stream") -> Iterator[tuple[dict[str, Any], int]]:
    """(data field, number of rows) for each frame, at least one.

    `data`: Arrow table or batch, pandas or polars DataFrame (anything with ``__arrow_c_stream__``),
    a mapping of column name to list or array, or a list of rows.  Raises DS503 for a column that
    can't be read, DS504, DS505.
    """
    from dsms.forms.frames import is_rows, named, ordinary

    if is_rows(data):
        data = data if isinstance(data, (list, tuple)) else list(data)
        for first in range(0, max(len(data), 1), ROWS_PER_FRAME):
            piece = ordinary(data[first : first + ROWS_PER_FRAME])
            yield {"rows": piece}, len(piece)
        return
    columns, rows = named(data, name)
    if not columns:
        yield {"columns": {}}, 0
    elif any(isinstance(values, list) for _, values in columns):
        yield from _as_lists(columns, rows, name)
    else:
        yield from _as_arrow(columns, name)


def _as_lists(columns: Named, rows: int, name: str) -> Iterator[tuple[dict[str, Any], int]]:
    lists = {
        key: values if isinstance(values, list) else _listed(values) for key, values in columns
    }
    if len(lists) < len(columns):
        raise UsageError("DS506", f"a column of {name} is given twice")
    for first in range(0, rows, ROWS_PER_FRAME):
        piece = {key: values[first : first + ROWS_PER_FRAME] for key, values in lists.items()}
        yield from _cut(piece, min(ROWS_PER_FRAME, rows - first))


def _cut(columns: dict[str, list[Any]], rows: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Columns in so many frames that none has more items of lists than a server builds at once."""
    items = sum(
        len(value)
        for values in columns.values()
        for value in values
        if isinstance(value, Sized) and not isinstance(value, (str, bytes))
    )
    if items <= ITEMS_PER_FRAME or rows < 2:
        yield {"columns": columns}, rows
        return
    half = rows // 2
    yield from _cut({key: values[:half] for key, values in columns.items()}, half)
    yield from _cut({key: values[half:] for key, values in columns.items()}, rows - half)


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


def _as_arrow(columns: Named, name: str) -> Iterator[tuple[dict[str, Any], int]]:
    import pyarrow as pa

    from dsms.forms.encodings import for_frames
    from dsms.untrusted.types import why_not
    from dsms_client.columns import ipc

    for key, array in columns:
        assert not isinstance(array, list)
        if (why := why_not(array.type)) is not None:  # what can be written need not be readable
            raise UsageError("DS503", f"column {key!r} of {name}: {why}")
    arrays = [for_frames(array) for _, array in columns]
    table = pa.Table.from_arrays(arrays, names=[key for key, _ in columns])
    size = max(1, BYTES_PER_FRAME // max(1, table.nbytes // max(1, table.num_rows)))
    for first in range(0, max(table.num_rows, 1), size):
        piece = table.slice(first, size)
        yield {"arrow": ipc(piece)}, piece.num_rows


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
    """The parts of a request's frame; an Arrow blob stays where it is."""
    message = {"op": op, "id": ident, **fields}
    blob = message.pop("arrow", None)
    if blob is None:
        try:
            body = msgpack.packb(message, default=to_wire)
        except Exception:  # text that is no Unicode, lists within lists without end
            body = msgpack.packb(all_sendable(message), default=to_wire)
        return (HEADER.pack(len(body)) + body,)
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(len(message) + 1)
    for key, value in message.items():
        packer.pack(key)
        packer.pack(value)
    packer.pack("arrow")
    head = packer.bytes() + b"\xc6" + HEADER.pack(len(blob))  # bin 32
    return HEADER.pack(len(head) + len(blob)) + head, blob
