"""Arrow IPC files (Feather, version 2), and streams as they come."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from dsms.errors import UsageError
from dsms.forms.encodings import for_frames, without_encodings
from dsms.untrusted.batches import Batches
from dsms.untrusted.footer import MARK
from dsms.untrusted.stream import UNREADABLE
from dsms.untrusted.types import check_schema
from dsms_client.files import columnar, unreadable
from dsms_client.files.options import Options
from dsms_client.files.pieces import Column, Mapping, Pieces, map_columns
from dsms_client.files.source import STDIN, FileSource


def read(
    source: FileSource,
    columns: Sequence[Column],
    renamed: dict[str, str],
    rows: int,
    options: Options,
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces of at most `rows` rows.  Raises DS503, DS532, DS530."""
    with ExitStack() as opened, explained(source):
        found = opened.enter_context(open_arrow(source))
        mapping = map_columns(found.schema.names, columns, renamed)
        mapping = replace(mapping, options=options)
        check_schema(pa.schema([found.schema.field(name) for name in mapping.used]))
        columnar.check_units(found.schema, mapping)
        batches = _batches(source, found, mapping, rows, opened.pop_all())
    return mapping, columnar.pieces(batches, mapping, lambda _: source.position())


@contextmanager
def open_arrow(source: FileSource) -> Iterator[Batches]:
    """What it holds, its schema read."""
    is_file = source.head(len(MARK)) == MARK
    with source.binary() as stream:
        on_disk = source.packed is None and hasattr(stream, "seek")
        coming: Any = stream if on_disk else _Coming(source, stream)
        if is_file and not on_disk:  # its end is read first
            coming = io.BytesIO(b"".join(iter(partial(coming.read, 16 << 20), b"")))
        with explained(source):
            found = Batches(coming)
        yield found


class _Coming:
    """Bytes whose compression, if that is what fails, is not taken for Arrow's format."""

    def __init__(self, source: FileSource, stream: Any) -> None:
        self._source, self._stream = source, stream

    def read(self, size: int) -> bytes:
        with self._source.guarded():
            return bytes(self._stream.read(size) or b"")


@contextmanager
def explained(source: FileSource) -> Iterator[None]:
    """What is wrong with the file as DS530."""
    try:
        yield
    except UNREADABLE as problem:
        head = None if source.packed else source.raw_head()
        what = unreadable.arrow(problem, head)
        raise UsageError("DS530", f"cannot read {source.name} as Arrow: {what}") from None


def _batches(
    source: FileSource, found: Batches, mapping: Mapping, rows: int, opened: ExitStack
) -> Iterator[pa.RecordBatch]:
    with opened, explained(source):
        batches = map(simple, found.of(mapping.used, rows))
        yield from batches if source.path == STDIN else gathered(batches, rows)


def simple(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same values, encoded only as every reader and kernel knows."""
    arrays = [_simple(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _simple(array: pa.Array) -> pa.Array:
    if kinds.is_dictionary(array.type) and kinds.is_nested(array.type.value_type):
        return without_encodings(array)
    found = for_frames(array)
    return found if isinstance(found, pa.Array) else found.chunk(0)


def gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Small batches, as who writes rows as they come leaves them, put together to at most `rows`
    rows."""
    held, many = list[pa.RecordBatch](), 0
    wrong: Exception | None = None
    try:
        for batch in batches:
            if held and many + batch.num_rows > rows:
                yield together(held)
                held, many = [], 0
            held.append(batch)
            many += batch.num_rows
    except Exception as problem:  # what came before it is sound
        wrong = problem
    if held:
        yield together(held)
    if wrong is not None:
        raise wrong


def together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of batches of the same columns, at least one."""
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.columns for batch in batches), strict=True)
    arrays = [pa.concat_arrays(column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=batches[0].schema.names)


def beginning(found: Batches, columns: Sequence[str], rows: int) -> pa.RecordBatch | None:
    """The first rows, at most so many; None if there are none, or no columns."""
    held, many = list[pa.RecordBatch](), 0
    for batch in found.of(columns, rows) if columns else ():
        held.append(simple(batch))
        many += batch.num_rows
        if many >= rows:
            break
    return together(held).slice(0, rows) if held else None
