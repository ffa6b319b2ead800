"""Arrow IPC files and streams: bytes anywhere; and bytes of one message's metadata or buffers, or
of a file's footer, alone, so that what is said of lengths still holds."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache, partial
from random import Random

import pyarrow as pa

from tests.faults.arrow_damage import damaged_in_place
from tests.faults.arrow_seeds import _decimals, _encoded, _flat, _nested
from tests.faults.kinds import files
from tests.faults.kinds.arrow import _parts
from tests.faults.mutate import mutated

LIFE = files.LIFE
make = partial(files.Victim, "arrow")
NAMES = [name for name, _ in files.COLUMNS]
MARK = b"ARROW1"
COMPRESSIONS = (None, None, "lz4", "zstd")


@cache
def seeds() -> list[bytes]:
    return list(_seeds())


def _seeds() -> Iterator[bytes]:
    arrays = [*_flat(), *_decimals(), *_encoded(), *_nested()]
    for k, array in enumerate(arrays):
        for name in (NAMES[k % len(NAMES)], NAMES[(k + 3) % len(NAMES)]):
            yield _written({name: array}, COMPRESSIONS[k % 4], bool(k % 2), 2)
    some = dict(zip(NAMES, arrays[3:], strict=False))
    for is_file in (True, False):
        yield _written(some, "zstd", is_file, 5)


def _written(columns: dict[str, pa.Array], packed: str | None, is_file: bool, rows: int) -> bytes:
    out, table = io.BytesIO(), pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression=packed, emit_dictionary_deltas=not is_file)
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(
        out, table.schema, options=options
    ) as sink:
        sink.write_table(table, rows)
    return out.getvalue()


def draw(rng: Random) -> bytes:
    data = rng.choice(seeds())
    if rng.random() < 0.3:
        return bytes([rng.randrange(2)]) + mutated(rng, data, [rng.choice(seeds())])
    changed = bytearray(data)
    low, high = rng.choice(_places(data))
    part = changed[low:high]
    damaged_in_place(rng, part)
    changed[low:high] = part
    return bytes([rng.randrange(2)]) + changed


@cache
def _places(data: bytes) -> list[tuple[int, int]]:
    """Where metadata and buffers of messages are, and the footer."""
    if not data.startswith(MARK):
        return _parts(data)
    end = len(data) - 10
    footer = end - int.from_bytes(data[end : end + 4], "little")
    inner = [(low + 8, high + 8) for low, high in _parts(data[8:footer])]
    return [*inner, *[(footer, end)] * max(1, len(inner) // 2)]
