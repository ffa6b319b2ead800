"""The first rows of a file, as text; and the types that the file itself says."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from dsms import structs
from dsms.forms.encodings import without_encodings
from dsms.untrusted.types import decoded, is_list, why_not
from dsms_client.files import csvfile, json_array, linesfile, nested, zeekfile
from dsms_client.files.csvfile import one_array
from dsms_client.files.header import read_header
from dsms_client.files.jsonbegin import is_array
from dsms_client.files.jsonvalue import is_unicode
from dsms_client.files.open import read
from dsms_client.files.options import BOM, Options
from dsms_client.files.pieces import NO_TEXT, Reject, check_apart
from dsms_client.files.source import STDIN, FileSource
from dsms_client.files.text import convert


@dataclass(slots=True)
class Sample:
    """Columns of the file and their texts; `types` (SQL) of those that are known, `left_out` those
    that no stream can have.  `guessed`: the texts are CSV's, where NULL is a matter of taste.
    `rejects`: lines that are no rows."""

    texts: dict[str, pa.Array]
    types: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    guessed: bool = False
    rejects: list[Reject] = field(default_factory=list)


class _Beginning(FileSource):
    """What a file begins with, in place of it."""

    def __init__(self, source: FileSource, head: bytes, options: Options) -> None:
        self.path, self.name, self.kind, self.size = source.path, source.name, source.kind, 0
        self.options, self.packed, self._bytes = options, source.packed, head

    def head(self, size: int) -> bytes:
        return self._bytes[:size]

    def position(self) -> int:
        return 0

    @contextlib.contextmanager
    def binary(self) -> Iterator[Any]:
        with self.guarded():
            yield io.BytesIO(self._bytes)


class _Ahead(_Beginning):
    """Standard input, of which as much is looked at as is asked for."""

    def __init__(self, source: FileSource) -> None:
        super().__init__(source, b"", source.options)
        self._source, self._at = source, 0

    def head(self, size: int) -> bytes:
        return self._source.head(size)

    @contextlib.contextmanager
    def binary(self) -> Iterator[Any]:
        yield self

    def read(self, size: int) -> bytes:
        part = self.head(self._at + size)[self._at :]
        self._at += len(part)
        return part


def sample_of(source: FileSource, options: Options, size: int, rows: int) -> Sample:
    """Raises DS530, DS532."""
    if source.kind == "parquet":
        return _parquet(source, rows)
    if source.kind == "arrow":
        return _arrow(source, rows)
    head = source.head(size)
    if len(head) == size:
        head = head[: head.rfind(b"\n") + 1] or head
    if source.kind in ("json", "jsonl"):
        return _json(source, head, rows)
    begin = _Beginning(source, head, options)
    types: dict[str, str] = {}
    if source.kind == "zeek":
        header = zeekfile.read_zeek_header(begin, head)
        names: Sequence[str] = header.names
        types = {
            n: zeekfile.TYPES.get(t, "STRING") for n, t in zip(names, header.types, strict=False)
        }
    elif source.kind in ("apache", "lines"):
        names = linesfile.names_of(options, source.kind)
        if source.kind == "apache":
            types = {name: linesfile.TYPES.get(name, "STRING") for name in names}
    else:
        delimiter = options.delimiter or ","
        with begin.binary() as stream:
            found = read_header(
                begin, stream, csvfile.BLOCK, delimiter, options, options.names or ()
            )
        names = found.names
    check_apart(names)
    texts, rejects = _texts(begin, names, options, rows)
    return Sample(texts, types, guessed=source.kind in ("csv", "tsv"), rejects=rejects)


def _texts(
    source: FileSource, names: Sequence[str], options: Options, rows: int
) -> tuple[dict[str, pa.Array], list[Reject]]:
    """All columns as text, and the lines that are no rows."""
    places = {f"c{i}": name for i, name in enumerate(names)}  # names may differ in case alone
    _, pieces = read(source, [(place, "STRING") for place in places], places, options)
    found, rejects = [], []
    for piece in pieces:
        found.append(piece.batch)
        rejects += piece.rejects
    if not sum(batch.num_rows for batch in found):
        return {}, rejects
    table = pa.Table.from_batches(found).slice(0, rows).combine_chunks()
    return {n: one_array(table.column(place)) for place, n in places.items()}, rejects


def _json(source: FileSource, head: bytes, rows: int) -> Sample:
    source.judge(head[:8])
    head = head.removeprefix(BOM).lstrip()
    array = bool(head) and is_array(source.kind, head)
    raw = head.splitlines()  # of bytes: a text of JSON may hold what ends lines of text
    lines = (
        json_array.elements(head)
        if array
        else (line.decode(errors="surrogateescape") for line in raw)
    )
    objects: list[dict[str, Any]] = []
    sample = Sample({})
    for number, line in enumerate(lines, 1):
        if len(objects) == rows:
            break
        try:
            value = json.loads(line, parse_int=_Number, parse_float=_Number)
            if isinstance(value, dict):
                json.dumps(value, ensure_ascii=False).encode()  # halves of characters are rejects
                objects.append(_flat(value, ""))
        except UnicodeError:
            what = NO_TEXT if not is_unicode(line) else "half a character"
            sample.rejects.append(Reject(number, what, ""))
        except (ValueError, RecursionError):
            sample.rejects.append(Reject(number, "not JSON", ""))
    names = list(dict.fromkeys(name for one in objects for name in one))
    for name in names:
        values = [one.get(name) for one in objects]
        there = [value for value in values if value is not None]
        if any(isinstance(value, list | dict) for value in there):
            sample.left_out[name] = "which holds lists"
            continue
        kinds = {type(v) for v in there if v not in NO_NUMBERS}
        if kinds == {_Number} and any(v in NO_NUMBERS for v in there):
            sample.types[name] = "FLOAT"
        elif len({type(v) for v in there}) > 1:
            sample.left_out[name] = "which holds values of several kinds"
            continue
        if kinds == {str} and _are_numbers(there):
            sample.types[name] = "STRING"  # numbers that are written as text
        sample.texts[name] = pa.array([_text(value) for value in values], pa.string())
    return sample


NO_NUMBERS = ("NaN", "Infinity", "-Infinity")  # how JSON has FLOATs that it can't write


class _Number(str):
    """A number of JSON: its digits."""


def _are_numbers(texts: list[str]) -> bool:
    return not len(convert(pa.array(texts, pa.string()), "FLOAT")[1])


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _flat(value: dict[str, Any], before: str, depth: int = nested.DEPTH) -> dict[str, Any]:
    """An object without objects within: their keys behind points."""
    out: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and depth:
            out |= _flat(inner, f"{before}{key}.", depth - 1)
        else:
            out[before + key] = inner
    return out


def _parquet(source: FileSource, rows: int) -> Sample:
    from dsms_client.files.parquetfile import explained, open_parquet

    begin = _Beginning(source, source.whole(), source.options) if source.path == STDIN else source
    with explained(source), source.guarded(), open_parquet(begin) as file:
        sample = _typed(file.schema_arrow)
        batch = next(file.iter_batches(rows, columns=list(sample.types)), None)
    return _filled(sample, batch)


def _arrow(source: FileSource, rows: int) -> Sample:
    from dsms_client.files.arrowfile import beginning, explained, open_arrow

    begin = _Ahead(source) if source.path == STDIN else source
    with open_arrow(begin) as file, explained(source):
        sample = _typed(file.schema)
        batch = beginning(file, list(sample.types), rows)
    return _filled(sample, batch)


def _typed(schema: pa.Schema) -> Sample:
    """Without texts yet.  Raises DS532."""
    sample = Sample({})
    check_apart(schema.names)
    for one in schema:
        sql = _sql_of(one.type)
        if sql is None or why_not(one.type):
            sample.left_out[one.name] = f"which is {one.type}"
        else:
            sample.types[one.name] = sql
    return sample


def _filled(sample: Sample, batch: pa.RecordBatch | None) -> Sample:
    for name, sql in sample.types.items():
        if batch is None:
            sample.texts[name] = pa.array([], pa.string())
        elif sql in ("BYTES", "UUID") or sql.startswith(("LIST", "STRUCT")):
            sample.texts[name] = pa.array(["" for _ in range(batch.num_rows)])
        else:
            sample.texts[name] = without_encodings(batch.column(name)).cast(pa.string())
    return sample


def _sql_of(kind: pa.DataType) -> str | None:
    """The SQL type of an Arrow type; of dates TIMESTAMP, until it is known which column is event
    time."""
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        return "UUID"
    kind = decoded(kind)
    if kinds.is_decimal(kind):
        fits = kind.precision <= 38 and 0 <= kind.scale <= kind.precision
        return f"DECIMAL({kind.precision}, {kind.scale})" if fits else None
    if is_list(kind):
        inner = decoded(kind.value_type)
        item = None if kinds.is_nested(inner) else _sql_of(inner)
        return None if item is None else f"LIST({item})"
    if kinds.is_struct(kind):
        return _struct_of(kind)
    tests = (
        (kinds.is_boolean, "BOOL"), (kinds.is_integer, "INT"), (kinds.is_floating, "FLOAT"),
        (kinds.is_timestamp, "TIMESTAMP"), (kinds.is_date, "TIMESTAMP"), (kinds.is_time, "TIME"),
        (kinds.is_duration, "INTERVAL"), (kinds.is_string, "STRING"),
        (kinds.is_large_string, "STRING"), (kinds.is_string_view, "STRING"),
        (kinds.is_binary, "BYTES"), (kinds.is_large_binary, "BYTES"),
        (kinds.is_binary_view, "BYTES"), (kinds.is_fixed_size_binary, "BYTES"),
    )  # a table  # fmt: skip
    return next((sql for test, sql in tests if test(kind)), None)


def _struct_of(kind: pa.DataType) -> str | None:
    """STRUCT of plain fields; None: some field is none."""
    fields = [(f.name, None if kinds.is_nested(decoded(f.type)) else _sql_of(f.type)) for f in kind]
    known = [
        (name, "DATE" if kinds.is_date(kind.field(name).type) else sql)
        for name, sql in fields
        if sql
    ]
    return structs.spelled(known) if known and len(known) == len(fields) else None
