"""Parquet files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache, partial
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.arrow_seeds import _decimals, _encoded, _flat, _nested
from tests.faults.kinds import files
from tests.faults.mutate import mutated

LIFE = files.LIFE
make = partial(files.Victim, "parquet")
NAMES = [name for name, _ in files.COLUMNS]


@cache
def seeds() -> list[bytes]:
    return list(_seeds())


def _seeds() -> Iterator[bytes]:
    arrays = [*_flat(), *_decimals(), *_encoded(), *_nested()]
    for k, array in enumerate(arrays):
        for name in (NAMES[k % len(NAMES)], NAMES[(k + 3) % len(NAMES)]):
            try:
                yield _file(
                    {name: array},
                    use_dictionary=bool(k % 2),
                    compression=("none", "snappy", "zstd")[k % 3],
                )
            except (pa.ArrowException, NotImplementedError):
                break  # Parquet has no such type
    some = dict(zip(NAMES, arrays[3:], strict=False))
    yield _file(some, row_group_size=2, data_page_version="2.0")
    yield _file(some, write_statistics=False, store_schema=False, compression="gzip")


def _file(columns: dict[str, pa.Array], **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()


def draw(rng: Random) -> bytes:
    known = seeds()
    return bytes([rng.randrange(2)]) + mutated(rng, rng.choice(known), known)
