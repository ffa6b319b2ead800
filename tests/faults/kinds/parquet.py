"""Parquet files: bytes anywhere; and, so that what is behind is reached, values of the footer, of
the schema that Arrow keeps in it, and of the heads of pages, and bytes of pages alone."""

from __future__ import annotations

import base64
import io
import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.arrow_damage import damaged_in_place
from tests.faults.arrow_seeds import _decimals, _encoded, _flat, _nested
from tests.faults.formats import thrift
from tests.faults.formats.values import changed, integer
from tests.faults.kinds import files
from tests.faults.mutate import mutated

LIFE = files.LIFE
make = partial(files.Victim, "parquet")
NAMES = [name for name, _ in files.COLUMNS]
MAGIC = b"PAR1"
ENCODINGS = {
    pa.int64(): "DELTA_BINARY_PACKED",
    pa.float64(): "BYTE_STREAM_SPLIT",
    pa.string(): "DELTA_BYTE_ARRAY",
    pa.binary(): "DELTA_LENGTH_BYTE_ARRAY",
    pa.bool_(): "RLE",
}
COLUMNS, ROW_GROUPS, METADATA, KEYED = 1, 4, 3, 5  # numbers of fields in the footer
OFFSETS = (9, 10, 11)  # of pages, in what a footer says of a column


@dataclass(frozen=True, slots=True)
class File:
    """A file taken apart: pages, and the footer's tree; where heads of pages are."""

    data: bytes
    pages: bytes  # with the magic before them
    told: bytes  # the footer's tree, pickled
    heads: tuple[int, ...]

    def footer(self) -> list[Any]:
        """A tree of one's own."""
        tree: list[Any] = pickle.loads(self.told)
        return tree


@cache
def seeds() -> list[File]:
    return [_file(data) for data in _seeds()]


def _seeds() -> Iterator[bytes]:
    arrays = [*_flat(), *_decimals(), *_encoded(), *_nested()]
    for k, array in enumerate(arrays):
        for name in (NAMES[k % len(NAMES)], NAMES[(k + 3) % len(NAMES)]):
            try:
                yield _written(
                    {name: array},
                    use_dictionary=bool(k % 2),
                    compression=("none", "none", "snappy", "zstd", "lz4")[k % 5],
                )
            except (pa.ArrowException, NotImplementedError):
                break  # Parquet has no such type
            if array.type in ENCODINGS:
                yield _written(
                    {name: array},
                    use_dictionary=False,
                    compression="none",
                    column_encoding=ENCODINGS[array.type],
                    data_page_version=("1.0", "2.0")[k % 2],
                )
    some = dict(zip(NAMES, arrays[3:], strict=False))
    yield _written(some, row_group_size=2, data_page_version="2.0")
    yield _written(some, write_statistics=False, store_schema=False, compression="gzip")
    yield _written(some, write_page_index=True, write_page_checksum=True, data_page_size=16)


def _written(columns: dict[str, pa.Array], **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()


def _file(data: bytes) -> File:
    (size,) = struct.unpack("<i", data[-8:-4])
    footer = thrift.Reader(data, len(data) - 8 - size).struct()
    heads = {
        value
        for group in _of(footer, ROW_GROUPS)[1]
        for column in _of(group, COLUMNS)[1]
        for number, _, value in _of(column, METADATA)
        if number in OFFSETS
    }
    return File(data, data[: len(data) - 8 - size], pickle.dumps(footer), tuple(sorted(heads)))


def _of(fields: list[Any], number: int) -> Any:
    return next(value for n, _, value in fields if n == number)


def draw(rng: Random) -> bytes:
    file = rng.choice(seeds())
    match rng.randrange(10):
        case 0:
            data = mutated(rng, file.data, [rng.choice(seeds()).data])
        case 1 | 2 | 3:
            data = _sealed(file.pages, _other_footer(rng, file))
        case 4 | 5 | 6:
            data = _sealed(*_other_head(rng, file))
        case _:
            damaged = bytearray(file.pages[4:])
            damaged_in_place(rng, damaged)
            data = _sealed(MAGIC + damaged, file.footer())
    return bytes([rng.randrange(2)]) + data


def _sealed(pages: bytes, footer: list[Any]) -> bytes:
    told = thrift.written(footer)
    return pages + told + struct.pack("<i", len(told)) + MAGIC


def _other_footer(rng: Random, file: File) -> list[Any]:
    footer = file.footer()
    if rng.random() < 0.2 and any(n == KEYED for n, _, _ in footer):
        for pair in _of(footer, KEYED)[1]:  # Arrow's schema
            schema = bytearray(base64.b64decode(pair[1][2]))
            damaged_in_place(rng, schema)
            pair[1][2] = base64.b64encode(schema)
    else:
        changed(rng, footer, _another)
    return footer


def _other_head(rng: Random, file: File) -> tuple[bytes, list[Any]]:
    """Of a page; what the footer says fits its new length."""
    at = rng.choice(file.heads)
    reader = thrift.Reader(file.pages, at)
    head = reader.struct()
    changed(rng, head, _another)
    told = thrift.written(head)
    more = len(told) - (reader.at - at)
    footer = file.footer()
    for group in _of(footer, ROW_GROUPS)[1]:
        for column in _of(group, COLUMNS)[1]:
            for field in _of(column, METADATA):
                if field[0] in OFFSETS and field[2] > at:
                    field[2] += more
                if field[0] == 7:  # bytes of all its pages
                    field[2] += more
    return file.pages[:at] + told + file.pages[reader.at :], footer


def _another(rng: Random, value: Any) -> Any:
    match value:
        case bool() | int():
            return integer(rng, value)
        case float():
            return rng.choice((0.0, -1.0, float("nan"), float("inf")))
        case bytes():
            return mutated(rng, value or b"a", (b"\xff\xfe", b"", b"k" * 300))
    return rng.choice((0, 1, b"", [], [[1, 5, 1]]))
