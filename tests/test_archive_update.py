"""Spark's jobs on the archive: one job each, all types and names, the same as without Spark; faults
on the way."""

from __future__ import annotations

import json
import random
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dsms.errors import UsageError
from dsms.sql.types import (
    BOOL,
    BYTES,
    FLOAT,
    FOREVER,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Field,
    decimal,
)
from dsms.storage.archive.landing import DAMAGED, Landing
from dsms.storage.archive.manifest import LANDING, Archive, call, widen
from dsms.storage.archive.prune import KeyRange, plan
from dsms.storage.archive.schema import EXP, ID, TS, Filled, stored_schema
from dsms_spark.compact import compact
from dsms_spark.frames import read_files
from dsms_spark.jobs import now_us
from dsms_spark.migrate import migrate
from dsms_spark.update import update
from tests.archive_index import (
    EVERY,
    SCHEMA,
    SPAN,
    contents,
    end_of,
    files,
    held,
    land,
    layout,
    made,
    rows,
    updated,
)
from tests.effort import SLOW, effort
from tests.faults.spark_kills import killed_at_work

pytestmark = pytest.mark.xdist_group("spark")
ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        pytest.param(layout(2, 2), "stream", marks=SLOW),
        (layout(3, 3, strategy="no rebuild", origin=-3_000_000_000), "query"),
        pytest.param(layout(2, 3, order="chronological"), "stream", marks=SLOW),
    ],
    ids=str,
)
def test_spark_does_what_is_done_without_it(spark, tmp_path: Path, shape, kind: str) -> None:
    """The same history by Spark and by pyarrow: the same files hold the same rows in the same
    order."""
    rng = random.Random(3)
    ours, twin = made(tmp_path / "a", shape, kind=kind), made(tmp_path / "b", shape, kind=kind)
    for step in range(9):
        for archive in (ours, twin):
            table = rows(step, 60, start=step * 60)
            if kind == "query" and step > 3:
                exp = [
                    FOREVER if i % 9 == 0 else e
                    for i, e in enumerate(table.column(EXP).to_pylist())
                ]
                table = table.set_column(5, table.schema.field(EXP), pa.array(exp))
            Landing(archive).write(table, end_of(step))
        if rng.random() < 0.6 or step == 8:
            a, b = update(spark, ours), updated(twin)
            assert (a.touched, a.rewritten, a.taken, a.expired, a.rows) == (
                b.touched,
                b.rewritten,
                b.taken,
                b.expired,
                b.rows,
            )
            assert held(ours) == held(twin)
    assert ours.manifest().files and len(ours.manifest().files) == len(twin.manifest().files)
    for (sub, found), (other, wanted), f, g in zip(
        contents(ours), contents(twin), ours.manifest().files, twin.manifest().files, strict=True
    ):
        assert sub == other and Counter(found.column(ID).to_pylist()) == Counter(
            wanted.column(ID).to_pylist()
        )
        keys = found.column("k").to_pylist()
        assert found.column("k").null_count == keys.index(next(k for k in keys if k is not None))
        known = [
            (k, e)
            for k, e in zip(keys, found.column(EXP).to_pylist(), strict=True)
            if k is not None
        ]
        assert known == sorted(known)
        assert (f.ts, f.exp, f.key, f.rows) == (g.ts, g.exp, g.key, g.rows)
        lives = np.mean(found.column(EXP).to_numpy() > f.half)
        assert abs(lives - 0.5) <= 0.5 / f.rows + 0.01


def test_an_update_is_one_spark_job_and_no_row_passes_the_driver(
    spark, tmp_path: Path, monkeypatch
) -> None:
    from pyspark.sql import DataFrame

    def never(*_: object, **__: object) -> None:
        raise AssertionError("rows came to the driver")

    for name in ("collect", "toPandas", "toArrow", "toLocalIterator"):
        monkeypatch.setattr(DataFrame, name, never, raising=False)
    archive, context = made(tmp_path / "a", layout(3, 3)), spark.sparkContext
    for step in range(4):
        land(archive, step, 40, start=step * 40)
        context.setJobGroup(f"step {step}", "an update")
        report = update(spark, archive)
        assert len(context.statusTracker().getJobIdsForGroup(f"step {step}")) == 1
        assert len(report.touched) == 5 or step == 0
        assert report.files_written == len(report.rewritten) <= len(report.touched)
    context.setLocalProperty("spark.jobGroup.id", None)


def test_what_an_update_says_on_its_way_and_what_it_leaves_of_the_session(
    spark, tmp_path: Path
) -> None:
    before = (
        dict(spark.conf.getAll) if not callable(spark.conf.getAll) else dict(spark.conf.getAll())
    )
    said: list[tuple] = []
    archive = made(tmp_path / "a")
    for step in range(3):
        land(archive, step, 2000, start=step * 2000)
    update(spark, archive, progress=lambda *metadata: said.append(metadata))
    assert said[0] == ("4 of 4 sub-indices, 3 landed files",)
    assert all(0 <= done <= known for _, done, known in said[1:])
    after = (
        dict(spark.conf.getAll) if not callable(spark.conf.getAll) else dict(spark.conf.getAll())
    )
    assert after == before


# -- values and names

KEYS = {
    "INT": (INT, [-(2**63), -1, 0, 1, 2**63 - 1]),
    "FLOAT": (FLOAT, [float("nan"), float("-inf"), -0.0, 0.0, 1.5]),
    "DECIMAL(5,2)": (
        decimal(5, 2),
        [Decimal("-999.99"), Decimal("0.00"), Decimal("1.10"), Decimal("999.99")],
    ),
    "DECIMAL(38,10)": (
        decimal(38, 10),
        [Decimal("-1.5"), Decimal("9" * 28 + "." + "9" * 10), Decimal(0)],
    ),
    "STRING": (STRING, ["", "a", "ä", "\U0001f600", "x" * 5000]),
    "BYTES": (BYTES, [b"", b"\0", b"\xff\xfe", b"y" * 5000]),
    "BOOL": (BOOL, [True, False]),
    "TIMESTAMP": (TIMESTAMP, [-62_135_596_800_000_000, -1, 0, 253_402_300_799_999_999]),
    "INTERVAL": (INTERVAL, [-(2**63) + 1, -1, 0, 2**63 - 1]),
}
TYPES = tuple(Field(f'c {name}`"', type_) for name, (type_, _) in KEYS.items())


def _values(count: int) -> pa.Table:
    """Rows with each of the values, and NULLs."""
    rng, columns = random.Random(1), []
    schema = stored_schema(TYPES)
    for field, (_, values) in zip(schema, KEYS.values(), strict=False):
        physical = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        columns.append(
            pa.array([rng.choice([*values, None]) for _ in range(count)], physical).cast(field.type)
        )
    ts = pa.array([i * EVERY // count for i in range(count)])
    return pa.table(
        [*columns, ts, pa.array([10**15 + i for i in range(count)]), pa.array(range(count))],
        schema=schema,
    )


def _plain(table: pa.Table) -> list[tuple]:
    shown = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    order = table.column(ID).to_pylist()
    lines = [tuple(map(repr, line)) for line in zip(*(c.to_pylist() for c in shown), strict=True)]
    return [line for _, line in sorted(zip(order, lines, strict=True))]


def test_all_types_come_back_as_they_were_whatever_the_key(spark, tmp_path: Path) -> None:
    """NULL, NaN, both zeros, empty and long values; names with spaces and quotes; each type as the
    key."""
    folder = tmp_path / "it's 100% [a] {b} *"
    shape, table = layout(2, 2, span=10**15), _values(300)
    archive = made(folder, shape, TYPES[0].name, TYPES)
    Landing(archive).write(table, end_of(0))
    update(spark, archive)
    for field, (type_, values) in [*zip(TYPES, KEYS.values(), strict=True)][
        :: 1 if effort() else 4
    ]:
        if archive.manifest().key != field.name:
            migrate(spark, archive, None, field.name)
        manifest = archive.manifest()
        assert manifest.key == field.name
        got = pa.concat_tables([t for _, t in contents(archive)])
        assert _plain(got) == _plain(table)
        for value in values:
            wanted = plan(manifest, key=KeyRange(values=(value,)))
            inside = {
                f.path
                for f, (_, t) in zip(manifest.files, contents(archive), strict=True)
                if _has(t, field, value)
            }
            assert inside <= {f.path for f in wanted.files}
        if type_.kind.value not in ("FLOAT", "BOOL"):
            assert all(f.key is not None for f in manifest.files)


def _has(table: pa.Table, field: Field, value: object) -> bool:
    column = table.column(field.name)
    column = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    return any(
        v == value or (v is not None and v != v and value != value) for v in column.to_pylist()
    )


def test_a_file_of_nothing_but_null_keys(spark, tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(1, 1))
    table = rows(0, 50)
    Landing(archive).write(table.set_column(0, "k", pa.nulls(50, pa.string())), end_of(0))
    update(spark, archive)
    (file,) = archive.manifest().files
    assert file.key is None and file.rows > 40


def test_files_have_small_row_groups_with_bounds_and_bloom_filters(spark, tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(1, 1))
    count, rng = 30_000, np.random.default_rng(1)
    keys = [f"{k:032x}" for k in rng.permutation(count)]
    ts = np.sort(rng.integers(0, EVERY, count))
    columns = [
        keys,
        rng.integers(0, 9, count),
        rng.random(count),
        ts,
        ts,
        ts + SPAN,
        np.arange(count),
    ]
    schema = stored_schema(SCHEMA)
    landed = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )
    Landing(archive).write(landed, end_of(0))
    update(spark, archive)
    (file,) = archive.manifest().files
    metadata = pq.read_metadata(archive.path(file.path))
    bounds = [metadata.row_group(g).column(0).statistics for g in range(metadata.num_row_groups)]
    assert metadata.num_row_groups >= 2 and file.key == (min(keys), max(keys))
    assert all(a.max < b.min for a, b in pairwise(bounds))
    groups = _groups(spark, archive.path(file.path))
    assert len(groups) == metadata.num_row_groups and all(
        bloom > 0 and pages >= 2 for bloom, pages in groups
    )
    assert sum(pages for _, pages in groups) >= 25
    assert file.bytes < 1.3 * landed.nbytes


def _groups(spark, path: str) -> list[tuple[int, int]]:
    """Of each row group, where the key's Bloom filter is, and how many pages its index knows."""
    jvm = spark.sparkContext._jvm
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    source = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(
        jvm.org.apache.hadoop.fs.Path(path), conf
    )
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(source)
    try:
        keys = [block.getColumns()[0] for block in reader.getFooter().getBlocks()]
        return [(k.getBloomFilterOffset(), reader.readOffsetIndex(k).getPageCount()) for k in keys]
    finally:
        reader.close()


# -- other columns, other layouts


def test_a_column_added_later_is_null_in_older_rows(spark, tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(strategy="no rebuild"))
    land(archive, 0, 10, span=10**15)
    update(spark, archive)
    land(archive, 1, 10, span=10**15, start=10)
    wider = (*SCHEMA, Field("more", INT))
    made(tmp_path / "a", schema=wider)
    later = rows(2, 10, span=10**15, start=20).add_column(4, "more", pa.array([7] * 10))
    Landing(archive).write(later, end_of(2))
    update(spark, archive)
    manifest = archive.manifest()
    found = (
        read_files(spark, archive, manifest.schema, [f.path for f in manifest.files])
        .select(ID, "more")
        .collect()
    )
    assert sorted((r[ID], r.more) for r in found) == [(i, None if i < 20 else 7) for i in range(30)]
    with pytest.raises(
        UsageError, match=r"column v of the archive .* is INT, not STRING"
    ) as caught:
        made(tmp_path / "a", schema=(Field("k", STRING), Field("v", STRING)))
    assert caught.value.code == "DS956"


@SLOW
def test_a_column_with_a_default_has_it_in_older_rows(spark, tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(strategy="no rebuild"))
    land(archive, 0, 10, span=10**15)
    update(spark, archive)
    land(archive, 1, 10, span=10**15, start=10)
    widen(archive, (*SCHEMA, Field("more `", INT, None, True, Filled(5, end_of(1)))))
    values = pa.array([None, *[7] * 9], pa.int64())
    later = rows(2, 10, span=10**15, start=20).add_column(4, "more `", values)
    first = archive.manifest()
    held_first = read_files(spark, archive, first.schema, [f.path for f in first.files])
    was = {r[ID]: r.v for r in held_first.collect()}
    call(archive, (), "v", "w")
    Landing(archive).write(later, end_of(2))
    expected = [(i, 5 if i < 20 else None if i == 20 else 7) for i in range(30)]
    for _ in range(2):
        update(spark, archive)
        manifest = archive.manifest()
        found = read_files(spark, archive, manifest.schema, [f.path for f in manifest.files])
        held_now = found.selectExpr(ID, "`more ```", "w").collect()
        assert sorted((r[0], r[1]) for r in held_now if r[0] != 20) == expected[:20] + expected[21:]
        assert was.items() <= {r[0]: r.w for r in held_now}.items() and None not in was.values()
        migrate(spark, archive, layout(3, 3, strategy="no rebuild", origin=-7), "w")
    assert json.loads(archive.manifest().serialized())["version"] == 2


def test_migration_and_compaction_keep_every_row(spark, tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(strategy="no rebuild"))
    for step in range(3):
        land(archive, step, 30, start=step * 30)
        update(spark, archive)
    before = {i for i, _ in held(archive)}
    new = layout(3, 3, strategy="no rebuild", origin=-7)
    migrate(spark, archive, new, "v")
    assert (archive.manifest().layout, archive.manifest().key) == (new, "v")
    assert Counter(i for i, _ in held(archive)) == dict.fromkeys(before, 1)
    for sub, table in contents(archive):
        assert set(new.sub(table.column(TS).to_numpy(), table.column(EXP).to_numpy()).tolist()) == {
            sub
        }
    land(archive, 3, 30, start=90)
    update(spark, archive)
    held_now = held(archive)
    compact(spark, archive)
    assert held(archive) == held_now and all(len(f) == 1 for f in files(archive).values())


# -- faults


def test_a_file_that_breaks_while_spark_reads_it_is_set_aside(spark, tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    for step in range(3):
        land(archive, step, 200, start=step * 200, span=10**15)
    path = Path(archive.path(LANDING, f"{2:012d}.parquet"))
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(2000) + whole[2004:])
    report = update(spark, archive)
    assert len(report.damaged) == 1 and report.damaged[0].startswith(
        f"{LANDING}/{DAMAGED}/{2:012d}.parquet: "
    )
    assert (report.upto, report.taken) == (end_of(2), 400)
    assert {i for i, _ in held(archive)} == {*range(200), *range(400, 600)}


def test_spark_that_leaves_rows_out_is_found_out(spark, tmp_path: Path, monkeypatch) -> None:
    """Whatever makes it do so (a setting that passes damaged files over, for one): nothing is
    published."""
    from dsms_spark import frames

    archive = made(tmp_path / "a")
    land(archive, 0, 50)
    before, placed = archive.manifest(), frames.placed
    monkeypatch.setattr(frames, "placed", lambda *args: placed(*args).where(f"{ID} <> 7"))
    with pytest.raises(UsageError, match=r"of 50 rows at .* Spark has read 49") as caught:
        update(spark, archive)
    assert caught.value.code == "DS955" and archive.manifest() == before
    monkeypatch.undo()
    assert update(spark, archive).taken == 50


def test_a_job_that_fails_is_told_and_changes_nothing(spark, tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(1, 1))
    land(archive, 0, 100, span=10**15)
    update(spark, archive)
    (file,) = archive.manifest().files
    path = Path(archive.path(file.path))
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(1000) + whole[1004:])
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    land(archive, 1, 100, span=10**15, start=100)
    before = archive.manifest()
    with pytest.raises(UsageError, match=rf"{path.name} can't be read: it is damaged") as caught:
        update(spark, archive)
    assert (
        caught.value.code == "DS955"
        and archive.manifest() == before
        and not archive.exists("lease.json")
    )
    path.write_bytes(whole)
    assert update(spark, archive).rows == 200


@pytest.mark.fuzz
@pytest.mark.parametrize("number", range(6))
def test_a_process_killed_at_work_leaves_the_archive_whole(
    spark, tmp_path: Path, number: int
) -> None:
    assert killed_at_work(number, 1, tmp_path, spark)


def test_the_clock_counts_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_353_000_000_123_456_789)
    assert now_us() == 1_353_000_000_123_456


def test_places_as_spark_is_told_of_them() -> None:
    assert Archive("/data/a").location("index/x") == "file:///data/a/index/x"
    assert Archive("file:///data/a/").location("x") == "file:///data/a/x"
