"""The archive's index under updates: which files an update may change; no row is lost, doubled or kept too long."""

from __future__ import annotations

import platform
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dsms.errors import UsageError
from dsms.sql.types import FLOAT, FOREVER, INT, STRING, TIMESTAMP, Field
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, create
from dsms.storage.archive.schema import EXP, ID, TS, stored_schema

S = 1_000_000
EVERY = 10 * S
SCHEMA = (Field("k", STRING), Field("v", INT), Field("x", FLOAT), Field("at", TIMESTAMP))


def layout(g: int = 2, e: int = 2, span: int | None = 160 * S, **more) -> Layout:
    return Layout(g, e, EVERY, span, **more)


def made(folder: Path, shape: Layout, key: str | None = "k", schema=SCHEMA) -> Archive:
    lifetime = shape.span
    return create(str(folder), "s", "stream", schema, key, shape, lifetime)


def rows(first: int, count: int, seed: int, span: int | None, start: int = 0) -> pa.Table:
    """Rows of one step, with random lifetimes up to the span."""
    rng = np.random.default_rng(seed)
    ts = np.sort(first + rng.integers(0, EVERY, count))
    life = rng.integers(1, span + 1, count) if span else None
    exp = ts + life if life is not None else np.full(count, FOREVER)
    keys = [None if i % 17 == 5 else f"key {i}" for i in rng.integers(0, 50, count)]
    columns = [keys, rng.integers(-5, 5, count), rng.random(count), ts, ts, exp, np.arange(start, start + count)]
    schema = stored_schema(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def held(archive: Archive) -> dict[int, tuple[int, int]]:
    """The rows of the index, by number: which sub-index they are in, and how often."""
    out: dict[int, tuple[int, int]] = {}
    for file in archive.manifest().files:
        table = pq.read_table(archive.path(file.path), filesystem=archive.fs, columns=[TS, EXP, ID], partitioning=None)
        for i in table.column(ID).to_pylist():
            out[i] = (file.sub, out.get(i, (0, 0))[1] + 1)
    return out


def state(archive: Archive) -> dict[int, list[tuple[str, int]]]:
    """The files of each sub-index."""
    out: dict[int, list[tuple[str, int]]] = {}
    for f in archive.manifest().files:
        out.setdefault(f.sub, []).append((f.path, f.rows))
    return {k: sorted(v) for k, v in out.items()}


@pytest.mark.parametrize(
    ("shape", "seed"),
    [
        (layout(2, 2), 1),
        (layout(3, 3, strategy="no rebuild"), 2),
        (layout(2, 3, order="chronological"), 3),
        (layout(4, 1, order="chronological", strategy="no rebuild"), 4),
        (layout(4, 1, None), 5),
    ],
    ids=str,
)
def test_updates_keep_every_row_once_in_its_place_until_it_expires(spark, tmp_path, shape, seed):
    from dsms_spark.update import update

    archive, rng, known, number = made(tmp_path / "s", shape), random.Random(seed), {}, 0
    landing = Landing(archive)
    for step in range(12):
        count = rng.choice((0, 3, 40))
        if count:
            table = rows(step * EVERY, count, seed * 100 + step, shape.span, number)
            number += count
            known |= dict(
                zip(
                    table.column(ID).to_pylist(),
                    zip(table.column(TS).to_pylist(), table.column(EXP).to_pylist(), strict=True),
                    strict=True,
                )
            )
        landing.write(table if count else None, (step + 1) * EVERY - 1)
        if rng.random() < 0.6:
            before = state(archive)
            report = update(spark, archive)
            upto = (step + 1) * EVERY - 1
            assert report.upto == upto
            changed = {s for s in {*before, *state(archive)} if before.get(s) != state(archive).get(s)}
            assert changed <= set(report.touched)
            want = {i: (int(shape.sub(ts, exp)), 1) for i, (ts, exp) in known.items() if exp > upto}
            got = held(archive)
            if shape.strategy == "no rebuild":
                got = {i: v for i, v in got.items() if known[i][1] > upto}
            assert got == want


@pytest.mark.parametrize("side", [2, 3, 4])
def test_an_update_of_one_step_touches_g_plus_e_minus_1_sub_indices(side):
    for order in ("round-robin", "chronological"):
        shape = layout(side, side, span=side * side * EVERY, order=order)
        for step in range(-5, 50):
            assert len(shape.touched(step * EVERY - 1, (step + 1) * EVERY - 1)) == 2 * side - 1


def test_a_probe_finds_a_key_by_statistics_and_bloom_filters(spark, tmp_path):
    from dsms_spark.update import update

    archive = made(tmp_path / "s", layout())
    Landing(archive).write(rows(0, 500, 1, 160 * S), EVERY - 1)
    update(spark, archive)
    (one, *_) = archive.manifest().files
    assert one.key is not None and one.key[0] >= "key 0" and one.key[1] <= "key 9"
    told = pq.read_metadata(archive.path(one.path))
    names = [told.schema.column(i).path for i in range(told.num_columns)]
    assert told.row_group(0).column(names.index("k")).statistics.has_min_max
    raw = Path(archive.path(one.path)).read_bytes()
    keys = pq.read_table(archive.path(one.path), columns=["k"], partitioning=None).column("k").to_pylist()
    assert [k for k in keys if k is not None] == sorted(k for k in keys if k is not None) and len(raw) > 0


def test_two_updates_at_once_are_refused_and_a_dead_ones_lease_is_taken_over(spark, tmp_path):
    from dsms.storage.archive.lease import LEASE, Lease, leased
    from dsms_spark.update import update

    archive = made(tmp_path / "s", layout())
    Landing(archive).write(rows(0, 10, 1, 160 * S), EVERY - 1)
    with leased(archive, "an update"), pytest.raises(UsageError, match=r"DS959: process \d+ on .* is at work"):
        update(spark, archive)
    dead = Lease("t", "an update", platform.node(), 4_000_000, "1", None)
    archive.write(dead.told(), LEASE)
    assert update(spark, archive).taken == 10
    assert not archive.exists(LEASE)


def test_a_column_added_later_is_null_in_older_rows(spark, tmp_path):
    from dsms_spark.frames import read_files
    from dsms_spark.update import update

    archive = made(tmp_path / "s", layout(strategy="no rebuild"))
    Landing(archive).write(rows(0, 10, 1, 160 * S), EVERY - 1)
    update(spark, archive)
    wider = (*SCHEMA, Field("more", INT))
    made(tmp_path / "s", layout(), schema=wider)
    table = rows(EVERY, 5, 2, 160 * S, 10).select([f.name for f in SCHEMA])
    columns = {
        **{n: rows(EVERY, 5, 2, 160 * S, 10).column(n) for n in rows(EVERY, 5, 2, 160 * S, 10).column_names},
        "more": pa.array([7] * 5),
    }
    Landing(archive).write(
        pa.table([columns[f.name] for f in stored_schema(wider)], schema=stored_schema(wider)), 2 * EVERY - 1
    )
    update(spark, archive)
    manifest = archive.manifest()
    found = read_files(spark, archive, manifest.schema, [f.path for f in manifest.files]).select("more").collect()
    assert sum(r.more is None for r in found) >= 5 and sum(r.more == 7 for r in found) >= 1
    assert table.num_columns == 4
    with pytest.raises(UsageError, match=r"DS956: column v of the archive .* is INT, not STRING"):
        made(tmp_path / "s", layout(), schema=(Field("k", STRING), Field("v", STRING)))


def test_migration_keeps_every_row(spark, tmp_path):
    from dsms_spark.update import compact, migrate, update

    archive = made(tmp_path / "s", layout(2, 2, strategy="no rebuild"))
    for step in range(3):
        Landing(archive).write(rows(step * EVERY, 30, step, 160 * S, step * 30), (step + 1) * EVERY - 1)
        update(spark, archive)
    before = set(held(archive))
    migrate(spark, archive, layout(3, 3), "v")
    manifest = archive.manifest()
    assert (manifest.layout, manifest.key) == (layout(3, 3), "v")
    assert set(held(archive)) <= before and all(n == 1 for _, n in held(archive).values())
    compact(spark, archive)
    assert len(archive.manifest().files) == len({f.sub for f in archive.manifest().files})


class Killed(BaseException):
    """The job dies here."""


OPERATIONS = ("read", "write", "remove", "infos", "exists")


def dying(monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> list[int]:
    """The process dies at the `at`-th operation on files, before it or when it is done."""
    count = [0]

    def fatal(original):
        def call(self, *args, **more):
            count[0] += 1
            if count[0] == at and not after:
                raise Killed
            result = original(self, *args, **more)
            if count[0] == at:
                raise Killed
            return result

        return call

    for name in OPERATIONS:
        monkeypatch.setattr(Archive, name, fatal(getattr(Archive, name)))
    return count


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_job_killed_anywhere_leaves_the_archive_as_it_was_and_the_next_one_finishes(
    spark, tmp_path, monkeypatch, after, request
):
    from dsms_spark import update as jobs

    start = made(tmp_path / "start", layout())
    for step in range(2):
        Landing(start).write(rows(step * EVERY, 20, step, 160 * S, step * 20), (step + 1) * EVERY - 1)
    jobs.update(spark, start, EVERY)
    before, old = start.manifest().told(), held(start)
    shutil.copytree(tmp_path / "start", tmp_path / "whole")
    with monkeypatch.context() as counting:
        operations = dying(counting, 0, False)
        jobs.update(spark, Archive(str(tmp_path / "whole")))
    want = held(Archive(str(tmp_path / "whole")))
    every = 1 if request.config.getoption("--fuzz") else 9
    for at in range(1 + after, operations[0] + 1, every):
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "start", folder)
        archive = Archive(str(folder))
        with monkeypatch.context() as patched:
            dying(patched, at, after)
            with pytest.raises(Killed):
                jobs.update(spark, archive)
        assert (archive.manifest().told() == before and held(archive) == old) or held(archive) == want
        if archive.exists("lease.json"):
            archive.remove("lease.json")  # of a process that is dead
        jobs.update(spark, archive)
        assert held(archive) == want
        named = {f.path for n in archive.numbers()[-2:] for f in archive.manifest(n).files}
        there = {i.path[len(archive.root) + 1 :] for i in archive.infos("index", recursive=True) if i.is_file}
        assert {p for p in there if p.endswith(".parquet")} == named
