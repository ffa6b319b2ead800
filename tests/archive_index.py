"""What tests of the archive's index share: rows with lifetimes, what an index holds, and a writer
without Spark.

The writer does what `dsms_spark.frames.write_files` does, with pyarrow in this process: by it whole
histories of updates and a death at every operation on files take seconds, and Spark's is compared
with it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from dsms.sql.types import FLOAT, FOREVER, INT, STRING, TIMESTAMP, Field, Schema
from dsms.storage.archive import store
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import INDEX, Archive, IndexFile, Manifest, create
from dsms.storage.archive.schema import EXP, ID, TS, stored_schema
from dsms.storage.archive.work import Work
from dsms_spark import jobs
from dsms_spark.frames import SUB, written
from dsms_spark.jobs import UpdateReport
from dsms_spark.update import update
from tests.archive_local import conformed

S = 1_000_000
EVERY = 10 * S
SPAN = 16 * EVERY
SCHEMA: Schema = (Field("k", STRING), Field("v", INT), Field("x", FLOAT), Field("at", TIMESTAMP))


def layout(g: int = 2, e: int = 2, span: int | None = SPAN, **more: Any) -> Layout:
    return Layout(g, e, EVERY, span, **more)


def made(
    folder: Path,
    shape: Layout | None = None,
    key: str | None = "k",
    schema: Schema = SCHEMA,
    kind: Any = "stream",
) -> Archive:
    shape = shape or layout()
    return create(str(folder), "s", kind, schema, key, shape, shape.span)


def rows(step: int, count: int, seed: int = 0, span: int | None = SPAN, start: int = 0) -> pa.Table:
    """Rows of one step, numbered from `start`, with random lifetimes up to the span."""
    rng = np.random.default_rng((seed, step + 1000))
    ts = np.sort(step * EVERY + rng.integers(0, EVERY, count))
    exp = np.full(count, FOREVER) if span is None else ts + rng.integers(1, span + 1, count)
    keys = [None if i % 17 == 5 else f"key {i}" for i in rng.integers(0, 50, count)]
    columns = [
        keys,
        rng.integers(-5, 5, count),
        rng.random(count),
        ts,
        ts,
        exp,
        np.arange(start, start + count),
    ]
    schema = stored_schema(SCHEMA)
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def land(archive: Archive, step: int, count: int, **more: Any) -> pa.Table:
    """Rows of a step land, and with them the step is over."""
    table = rows(step, count, **more)
    Landing(archive).write(table if count else None, end_of(step))
    return table


def end_of(step: int) -> int:
    """The last instant of a step."""
    return (step + 1) * EVERY - 1


def contents(archive: Archive, manifest: Manifest | None = None) -> Iterator[tuple[int, pa.Table]]:
    """The files of the index: sub-index and rows."""
    manifest = manifest or archive.manifest()
    for file in manifest.files:
        with archive.open(file.path) as source:
            yield file.sub, conformed(pq.ParquetFile(source).read(), manifest.schema)


def held(archive: Archive, manifest: Manifest | None = None) -> Counter[tuple[int, int]]:
    """Which rows the index holds that have not expired, and in which sub-index: (number, sub-index)
    -> how often."""
    manifest = manifest or archive.manifest()
    out: Counter[tuple[int, int]] = Counter()
    for sub, table in contents(archive, manifest):
        out.update(
            (i, sub) for i in table.filter(pc.field(EXP) > manifest.upto).column(ID).to_pylist()
        )
    return out


def files(archive: Archive) -> dict[int, set[str]]:
    """The files of each sub-index."""
    out: dict[int, set[str]] = {}
    for f in archive.manifest().files:
        out.setdefault(f.sub, set()).add(f.path)
    return out


def on_disk(archive: Archive, folder: str = INDEX) -> set[str]:
    """The files below a folder, whether a manifest names them or not."""
    return {
        i.path[len(archive.root) + 1 :] for i in archive.infos(folder, recursive=True) if i.is_file
    }


# -- without Spark


def write_files(
    _: object, archive: Archive, manifest: Manifest, work: Work
) -> tuple[IndexFile, ...]:
    """As Spark's: one file for each sub-index, clustered by key."""
    folder, parts = f"{INDEX}/{manifest.number + 1:012d}-{uuid.uuid4().hex[:8]}", []
    for part in work.parts:
        for path in part.paths:
            with archive.open(path) as source:
                table = conformed(pq.ParquetFile(source).read(), manifest.schema)
            exp, ts = table.column(EXP).to_numpy(), table.column(TS).to_numpy()
            generation = work.layout.generation(ts) if part.generation is None else part.generation
            sub = generation * work.layout.expirations + work.layout.expiration(exp)
            parts.append(
                table.append_column(SUB, pa.array(np.broadcast_to(sub, len(exp)), pa.int64()))
            )
    everything = pa.concat_tables(parts).filter(pc.field(EXP) > work.upto)
    halves = {}
    for sub in pc.unique(everything.column(SUB)).to_pylist():
        mine = everything.filter(pc.field(SUB) == sub).drop_columns(SUB)
        mine = mine.sort_by([(work.key or TS, "ascending"), (EXP, "ascending")])
        exps = np.sort(mine.column(EXP).to_numpy())
        halves[sub] = int(exps[(len(exps) - 1) // 2])
        archive.write_parquet(
            lambda out, t=mine: pq.write_table(t, out),
            *folder.split("/"),
            f"{SUB}={sub}",
            "f.parquet",
        )
    return written(archive, folder, work.key, halves)


@contextmanager
def without_spark() -> Iterator[None]:
    """Jobs are done by the writer above."""

    @contextmanager
    def nothing(*_: object) -> Iterator[None]:
        yield None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "write_files", write_files)
        patch.setattr(jobs, "for_jobs", nothing)
        patch.setattr(jobs, "watched", nothing)
        yield


def updated(archive: Archive, upto: int | None = None) -> UpdateReport:
    """An update without Spark."""
    with without_spark():
        return update(None, archive, upto)  # type: ignore[arg-type]


# -- deaths


class Killed(BaseException):
    """The process ends here."""


class Death:
    """At the `at`-th operation on files (from 1; 0: never), before it or when it is done, and then
    for good."""

    def __init__(self, at: int, after: bool = False) -> None:
        self.at, self.after, self.count = at, after, 0

    @property
    def dead(self) -> bool:
        return bool(self.at) and self.count >= self.at

    @contextmanager
    def operation(self, where: str) -> Iterator[None]:
        """See `store.operation`."""
        self.count += 1
        if self.dead and not (self.after and self.count == self.at):
            raise Killed(where)
        with REAL(where):
            yield
        if self.dead:
            raise Killed(where)


REAL = store.operation


@contextmanager
def dying(at: int, after: bool = False) -> Iterator[Death]:
    """Operations on archives' files meanwhile: counted, and deadly when it is time."""
    from dsms.storage.archive import lease

    death = Death(at, after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "operation", death.operation)
        patch.setattr(lease, "operation", death.operation)
        yield death
