"""Archives for `spark.read.format("dsms").option("path", folder or URL)`.

Rows that have expired when the reading is planned are left out.  Conditions on the column that the
archive is clustered by and on `__ts`, and the options `since` and `until` (when rows came), keep
files from being read; each file is one partition.

    since, until  ISO 8601: rows that came in [since, until)
    marks         true: three more columns, `__ts` (came), `__exp` (expires) and `__id`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import datasource as source

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS, FOREVER, INT, TIMESTAMP, Kind, Schema
from dsms.storage.archive.manifest import Archive, Manifest
from dsms.storage.archive.prune import KeyRange
from dsms.storage.archive.schema import EXP, ID, TS, filled, in_files, names_of, stored_schema
from dsms_spark.options import Options, arrow_of, choice, fitted, struct
from dsms_spark.places import instant, one
from dsms_spark.reads import reading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql.types import StructType

ROWS = 64 << 10  # of a batch
NOTHING = ""  # the path of no file


@dataclass(frozen=True, slots=True)
class FilePartition(source.InputPartition):  # type: ignore[misc]
    """One file of the archive, and which of its rows are wanted."""

    url: str
    path: str
    since: int
    upto: int
    as_of: int


def schema_of(options: Options) -> StructType:
    """The archive's columns, then the marks if they are wanted.  Raises DS951..DS955."""
    manifest = one(options["path"]).manifest()
    columns = [(f.name, f.type) for f in manifest.schema]
    if _marks(options):
        columns += [(TS, TIMESTAMP), (EXP, TIMESTAMP), (ID, INT)]
    return struct(columns)


def _marks(options: Options) -> bool:
    return choice(options, "marks", ("false", "true")) == "true"


class ArchiveReader(source.DataSourceReader):  # type: ignore[misc]
    """Partitions are planned when Spark plans; a reading that takes longer than two updates fails,
    with a hint."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options, self._schema = dict(options), arrow_of(schema)
        self._range: KeyRange | None = None
        self._came = KeyRange()  # `__ts`

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Conditions on the key and on `__ts` choose files; Spark still looks at each row."""
        self._came = (
            _both([r for f in filters if (r := _range(f, TS)) is not None and r.values is None])
            or KeyRange()
        )
        manifest = one(self._options["path"]).manifest()
        field = next((f for f in manifest.schema if f.name == manifest.key), None)
        # NaN is above all, and not in files' statistics
        if field is not None and field.type.kind is not Kind.FLOAT:
            ranges = [r for f in filters if (r := _range(f, field.name)) is not None]
            self._range = _both(ranges)
        return filters

    def partitions(self) -> list[FilePartition]:
        """The files that may hold wanted rows."""
        said = (self._options.get(name) for name in ("since", "until"))
        since, until = (None if text is None else instant(text) for text in said)
        low, high = self._came.low, self._came.high
        since = max((x for x in (since, low) if x is not None), default=None)
        until = min(
            (x for x in (until, None if high is None else high + 1) if x is not None), default=None
        )
        asked = reading(one(self._options["path"]), since, until, keys=self._range)
        p, url = asked.plan, asked.archive.url
        parts = [FilePartition(url, path, p.since, p.upto, p.as_of) for path in p.paths]
        # of none Spark makes one of its own
        return parts or [FilePartition(url, NOTHING, p.since, p.upto, p.as_of)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The wanted rows of a file, in Spark's types."""
        if partition.path == NOTHING:
            return
        archive = Archive(partition.url)
        manifest = archive.manifest()
        names = [f.name for f in manifest.schema] + ([TS, EXP, ID] if _marks(self._options) else [])
        for batch in _rows(archive, manifest, partition, names):
            if batch.num_rows:
                yield from fitted(_marked(batch), self._schema)


def _rows(
    archive: Archive, manifest: Manifest, part: FilePartition, names: list[str]
) -> Iterator[pa.RecordBatch]:
    wanted = ds.field(EXP) > part.as_of
    if part.since != ALWAYS:
        wanted &= ds.field(TS) > part.since
    if part.upto != FOREVER:
        wanted &= ds.field(TS) <= part.upto
    path = archive.path(part.path)
    try:
        file = ds.dataset(
            [path],
            stored_schema(in_files(manifest.schema)),
            format="parquet",
            filesystem=archive.fs,
        )
        others = (name for f in manifest.schema for name in names_of(f)[1:])
        columns = [*{*names, TS, *others}]
        read = file.to_batches(columns=columns, filter=wanted, batch_size=ROWS)
        yield from (_meant(batch, manifest.schema, names) for batch in read)
    except FileNotFoundError:
        raise UsageError(
            "DS954",
            f"{path} is gone: the archive has been updated since the reading was planned",
            hint="read it again",
        ) from None


def _meant(batch: pa.RecordBatch, schema: Schema, names: list[str]) -> pa.RecordBatch:
    """The rows with defaults where their file lacks a column."""
    known = {f.name: f for f in schema}
    columns = [filled(known[n], batch) if n in known else batch[n] for n in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _marked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Marks as instants; for good is NULL."""
    columns, names = list(batch.columns), batch.schema.names
    for i, name in enumerate(names):
        if name in (TS, EXP):
            known = pa.compute.if_else(pa.compute.equal(columns[i], FOREVER), None, columns[i])
            columns[i] = known.cast(pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays(columns, names=names)


def _range(condition: Any, key: str) -> KeyRange | None:
    """What a condition says of the key; None: nothing that files could be chosen by."""
    if getattr(condition, "attribute", None) != (key,):
        return None
    match condition:
        case source.EqualTo() | source.EqualNullSafe() if condition.value is not None:
            return KeyRange(values=(_plain(condition.value),))
        case source.In():
            return KeyRange(values=tuple(_plain(v) for v in condition.value if v is not None))
        case source.GreaterThan() | source.GreaterThanOrEqual():
            return KeyRange(low=_plain(condition.value))
        case source.LessThan() | source.LessThanOrEqual():
            return KeyRange(high=_plain(condition.value))
        case source.StringStartsWith():
            return KeyRange(low=condition.value)
    return None


def _plain(value: Any) -> Any:
    """A value as the manifest has it: instants and lengths of time count µs."""
    import datetime as dt

    from dsms.intake.values import physical
    from dsms.sql.types import DATE, INTERVAL

    match value:
        case dt.datetime():
            return physical(value, TIMESTAMP)
        case dt.date():
            return physical(value, DATE)
        case dt.timedelta():
            return physical(value, INTERVAL)
    return value


def _both(ranges: list[KeyRange]) -> KeyRange | None:
    """One range within which all conditions can hold; of values those that some condition names."""
    if not ranges:
        return None
    named = next((r for r in ranges if r.values is not None), None)
    if named is not None:
        return named
    low = max((r.low for r in ranges if r.low is not None), default=None)
    high = min((r.high for r in ranges if r.high is not None), default=None)
    return KeyRange(low, high)
