"""Jobs on the archive's index, without Spark: which files they change, what rows are there then,
deaths in between."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from dsms.errors import UsageError
from dsms.sql.types import FOREVER
from dsms.storage.archive.landing import DAMAGED, Landing, snapshot
from dsms.storage.archive.lease import LEASE
from dsms.storage.archive.manifest import LANDING, Archive
from dsms.storage.archive.schema import EXP, ID, TS
from dsms_spark.compact import compact
from dsms_spark.migrate import migrate
from tests.archive_index import (
    EVERY,
    SPAN,
    Killed,
    S,
    contents,
    dying,
    end_of,
    files,
    held,
    land,
    layout,
    made,
    on_disk,
    rows,
    updated,
    without_spark,
)
from tests.effort import effort, sampled, thinned
from tests.faults.archive_points import KINDS, Deaths, copied

SHAPES = [
    layout(2, 2),
    layout(3, 3, strategy="no rebuild"),
    layout(2, 3, order="chronological"),
    layout(4, 4),
    layout(4, 1, order="chronological", strategy="no rebuild", eager=True),
    layout(1, 4, order="chronological"),
    layout(4, 1, None, strategy="no rebuild"),
    layout(3, 2, strategy="no rebuild", eager=True, origin=-3 * S),
]


@pytest.mark.parametrize("shape", sampled(SHAPES, 2), ids=str)
def test_histories(tmp_path: Path, shape) -> None:
    """Rows come, updates come now and then: each row that lives is in its sub-index once, and an
    update changes files of its sub-indices alone: G + E - 1 of them where it spans a step."""
    rng, archive, known, number = random.Random(str(shape)), made(tmp_path / "a", shape), {}, 0
    after: int | None = None
    for step in range(40):
        count = rng.choice((0, 3, 30))
        table = _landed(archive, shape, step, count, number)
        number += count
        known |= {
            i: (ts, exp)
            for i, ts, exp in zip(
                *(table.column(c).to_pylist() for c in (ID, TS, EXP)), strict=True
            )
        }
        if rng.random() < 0.4:
            continue
        before = files(archive)
        report, upto = updated(archive), archive.manifest().upto
        assert report.upto == upto == shape.start(end_of(step) + 1) - 1
        if after is None:
            first = min((ts for ts, _ in known.values()), default=upto)
            after = min(shape.start(first) - 1, upto - EVERY)
        bound = set(shape.touched(after, upto))
        changed = {s for s in {*before, *files(archive)} if before.get(s) != files(archive).get(s)}
        assert changed <= bound == set(report.touched)
        if upto - after == EVERY and shape.span is not None:
            assert len(bound) == shape.generations + shape.expirations - 1
        after = upto
        want = {
            (i, int(shape.sub(ts, exp))): 1 for i, (ts, exp) in known.items() if ts <= upto < exp
        }
        assert held(archive) == want
        if shape.strategy == "rebuild":
            assert all(len(f) == 1 for f in files(archive).values())
            assert archive.manifest().rows == len(want)
        assert archive.manifest().rows <= 2 * len(want) + 1 or shape.eager


def _landed(archive: Archive, shape, step: int, count: int, number: int) -> pa.Table:
    """Rows of a step of another origin come in two files."""
    table = rows(step, count, span=shape.span, start=number)
    cut = shape.start(end_of(step)) - 1
    for low, high in ((step * EVERY - 1, cut), (cut, end_of(step))):
        part = table.filter(
            pa.compute.and_(
                pa.compute.greater(table[TS], low), pa.compute.less_equal(table[TS], high)
            )
        )
        if high > Landing(archive).upto():
            Landing(archive).write(part, high)
    return table


def test_files_are_clustered_by_key_then_expiry(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    for step in range(5):
        land(archive, step, 60, start=step * 60)
        updated(archive)
    for _, table in contents(archive):
        seen = [
            ((k is None, k or ""), exp)
            for k, exp in zip(*(table.column(c).to_pylist() for c in ("k", EXP)), strict=True)
        ]
        assert seen == sorted(seen) and len(seen) > 10


def test_no_rebuild_leaves_files_with_mostly_living_rows(tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(2, 2, strategy="no rebuild"))
    for step in range(30):
        land(archive, step, 50, start=step * 50)
        report, manifest = updated(archive), archive.manifest()
        assert report.bytes_written <= report.total * 0.6 or step < 5
        for sub, table in contents(archive):
            dead = sum(e <= manifest.upto for e in table.column(EXP).to_pylist())
            assert dead <= table.num_rows / 2 + 1, sub
    expired = sum(
        sum(e <= manifest.upto for e in t.column(EXP).to_pylist()) for _, t in contents(archive)
    )
    assert expired > 0 and max(len(f) for f in files(archive).values()) > 2


def test_what_has_expired_is_gone_even_when_nothing_comes(tmp_path: Path) -> None:
    for n, strategy in enumerate(("rebuild", "no rebuild")):
        archive = made(tmp_path / str(n), layout(strategy=strategy))
        land(archive, 0, 40)
        count = updated(archive).rows
        for step in range(1, 20):
            land(archive, step, 0)
        report = updated(archive)
        assert (report.rows, report.expired, report.bytes) == (0, count, 0) and count > 30
        updated(archive)
        land(archive, 20, 1)
        updated(archive)
        assert {p.split("/")[1] for p in on_disk(archive)} == {
            f.path.split("/")[1] for f in archive.manifest().files
        }


def test_rows_that_have_expired_when_they_land_are_not_taken(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    land(archive, 0, 40, span=1)
    report = updated(archive)
    assert (report.taken, report.expired, report.rows) == (40, 40, 0)


def test_results_go_to_the_step_in_which_they_land(tmp_path: Path) -> None:
    """Results that land when they have left the answer were born long before: an update touches no
    more for that."""
    shape = layout(4, 4)
    archive, known = made(tmp_path / "a", shape, kind="query"), {}
    for step in range(20):
        table = rows(step, 30, start=step * 30)
        born = [t - (i % 12) * EVERY for i, t in enumerate(table.column(TS).to_pylist())]
        table = table.set_column(
            table.schema.get_field_index(TS), table.schema.field(TS), pa.array(born)
        )
        Landing(archive).write(table, end_of(step))
        known |= dict(
            zip(
                table.column(ID).to_pylist(),
                ((step, e) for e in table.column(EXP).to_pylist()),
                strict=True,
            )
        )
        before = files(archive)
        report = updated(archive)
        changed = {s for s in {*before, *files(archive)} if before.get(s) != files(archive).get(s)}
        assert changed <= set(report.touched) and len(report.touched) == 7
        want = {
            (i, int(shape.sub(s * EVERY, e))): 1 for i, (s, e) in known.items() if e > end_of(step)
        }
        assert held(archive) == want


def test_an_update_goes_no_further_than_it_is_told(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    for step in range(4):
        land(archive, step, 10, start=step * 10)
    assert updated(archive, end_of(1) + 3).upto == end_of(1)
    assert archive.manifest().landed == 2
    assert updated(archive, end_of(0)).nothing
    Landing(archive).write(rows(4, 5, start=40).slice(0, 0), end_of(4) - 3)
    assert updated(archive).upto == end_of(3)
    assert updated(archive).nothing


# -- another layout


@thinned(2)
@pytest.mark.parametrize(
    ("new", "key"),
    [
        (layout(3, 3), "v"),
        (layout(1, 5, order="chronological"), None),
        (layout(4, 4, strategy="no rebuild"), False),
        (layout(2, 2, origin=3 * S), "x"),
    ],
)
def test_migration_loses_no_row(tmp_path: Path, new, key) -> None:
    archive, number = made(tmp_path / "a", layout(2, 2, strategy="no rebuild")), 0
    for step in range(12):
        number += len(land(archive, step, 30, start=number))
        if step % 3 == 1:
            updated(archive)
    waiting = Landing(archive).files(archive.manifest().landed)
    before = {i for i, _ in held(archive)}
    with without_spark():
        migrate(None, archive, new, key)
    manifest = archive.manifest()
    assert manifest.layout == new and manifest.key == ("k" if key is False else key)
    assert Counter(i for i, _ in held(archive)) == dict.fromkeys(before, 1)
    assert Landing(archive).files(manifest.landed) == waiting
    for sub, table in contents(archive):
        assert set(new.sub(table.column(TS).to_numpy(), table.column(EXP).to_numpy()).tolist()) == {
            sub
        }
    while step < 40:
        step += 1
        number += len(_landed(archive, new, step, 5, number))
        report = updated(archive)
    assert len(report.touched) == new.generations + new.expirations - 1
    assert (
        report.rows <= number
        and min(e for _, t in contents(archive) for e in t.column(EXP).to_pylist()) > 0
    )


def test_a_column_that_is_not_there_is_no_key(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    with pytest.raises(UsageError, match="no column z to cluster") as caught, without_spark():
        migrate(None, archive, None, "z")
    assert caught.value.code == "DS950" and "k, v, x, at" in (caught.value.hint or "")


def test_compaction_makes_one_file_of_each_sub_index(tmp_path: Path) -> None:
    archive = made(tmp_path / "a", layout(2, 2, strategy="no rebuild"))
    for step in range(8):
        land(archive, step, 30, start=step * 30)
        updated(archive)
    before = held(archive)
    with without_spark():
        compact(None, archive, subs=[0])
        assert len(files(archive)[0]) == 1 < len(files(archive)[1])
        compact(None, archive)
    assert held(archive) == before and archive.manifest().rows == sum(before.values())
    assert all(len(f) == 1 for f in files(archive).values())


# -- deaths


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_killed_anywhere_leaves_the_archive_as_it_was_and_the_next_one_finishes(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """A death at each operation on files (with --fuzz; else at some), before it and when it is
    done; nothing is tidied up then."""
    deaths = Deaths(tmp_path, kind)
    every = 1 if request.config.getoption("--fuzz") else 5 if effort() else 11
    assert deaths.count > 40
    for after in (False, True):
        for at in range(1 + 2 * after, deaths.count + 1, every):
            deaths.suffer(at, after)


def test_landing_killed_anywhere_lands_all_rows_or_none(tmp_path: Path) -> None:
    start = made(tmp_path / "start")
    land(start, 0, 10)
    whole = copied(start, tmp_path / "whole")
    with dying(0) as counted:
        land(whole, 1, 10, start=10)
    for after in (False, True):
        for at in range(1, counted.count + 1):
            archive = copied(start, tmp_path / f"{at}{after}")
            with dying(at, after), pytest.raises(Killed):
                land(archive, 1, 10, start=10)
            landing = Landing(archive)
            landing.sweep()
            whether = landing.upto() == end_of(1)
            assert [f.rows for f in landing.files()] == [10, 10][: 1 + whether]
            if not whether:
                land(archive, 1, 10, start=10)
            updated(archive)
            assert sum(held(archive).values()) == sum(
                e > end_of(1) for s in (0, 1) for e in rows(s, 10).column(EXP).to_pylist()
            )
            shutil.rmtree(archive.root)


# -- readers


def test_readers_keep_what_they_read_while_one_update_passes(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    for step in range(12):
        land(archive, step, 20, start=step * 20)
        manifest, landed = snapshot(archive)
        seen = held(archive, manifest)
        updated(archive)
        assert held(archive, manifest) == seen
        assert all(archive.exists(*f.path.split("/")) for f in landed)
    assert len(archive.numbers()) == 2


def test_a_seam_has_its_index_and_its_landed_files(tmp_path: Path) -> None:
    archive, total = made(tmp_path / "a", layout(2, 2, SPAN)), 0
    for step in range(6):
        land(archive, step, 10, start=step * 10, span=10**15)
        total += 10
        seam = Landing(archive).upto()
        if step % 2:
            updated(archive)
        land(archive, step + 1, 7, start=1000, span=10**15) if step == 5 else None
        manifest, landed = snapshot(archive, seam)
        assert manifest.upto <= seam
        assert sum(held(archive, manifest).values()) + sum(f.rows for f in landed) == total
    updated(archive)
    updated(archive)
    land(archive, 7, 1, start=2000)
    updated(archive)
    with pytest.raises(UsageError, match="has been updated since") as caught:
        snapshot(archive, end_of(2))
    assert caught.value.code == "DS954"


# -- faults


@pytest.mark.parametrize("how", ["half", "garbage", "empty", "missing", "types", "page"])
def test_a_damaged_landed_file_is_set_aside_and_the_rest_goes_on(tmp_path: Path, how: str) -> None:
    archive = made(tmp_path / "a")
    for step in range(3):
        land(archive, step, 200, start=step * 200, span=10**15)
    path = Path(archive.path(LANDING, f"{2:012d}.parquet"))
    whole = path.read_bytes()
    match how:
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "garbage":
            path.write_bytes(b"\0" * 100)
        case "empty":
            path.write_bytes(b"")
        case "missing":
            path.unlink()
        case "page":
            path.write_bytes(whole[:300] + bytes(b ^ 255 for b in whole[300:340]) + whole[340:])
        case "types":
            table = pa.table({"k": [1], TS: [EVERY], EXP: [FOREVER], ID: [1]})
            pa.parquet.write_table(table, path)
    assert [f.damaged is not None for f in snapshot(archive)[1]] == [False, how != "page", False]
    report = updated(archive)
    (said,) = report.damaged
    assert said.startswith(f"{LANDING}/{DAMAGED}/{2:012d}.parquet: ")
    assert ("column k is int64, not string" in said) == (how == "types")
    assert (report.upto, report.taken) == (end_of(2), 400)
    assert {i for i, _ in held(archive)} == {*range(200), *range(400, 600)}
    assert [n for n, _ in Landing(archive).damaged()] == ([] if how == "missing" else [2])
    land(archive, 3, 10, start=600)
    assert updated(archive).damaged == ()
    assert [n for n, _ in Landing(archive).damaged()] == ([] if how == "missing" else [2])


def test_a_damaged_file_of_the_index_stops_updates_that_need_it_and_is_named(
    tmp_path: Path,
) -> None:
    archive = made(tmp_path / "a", layout(1, 1))
    land(archive, 0, 100)
    updated(archive)
    (file,) = archive.manifest().files
    Path(archive.path(file.path)).unlink()
    land(archive, 1, 100, start=100)
    before = archive.manifest()
    with pytest.raises(UsageError, match=file.path) as caught:
        updated(archive)
    assert caught.value.code == "DS955" and archive.manifest() == before
    assert len(Landing(archive).files(1)) == 1 and not archive.exists(LEASE)


def test_time_that_goes_back_lands_nothing(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    land(archive, 5, 3)
    for table, upto in (
        (rows(4, 3), end_of(4)),
        (None, end_of(5)),
        (rows(5, 3), end_of(6)),
        (rows(7, 3), end_of(6)),
    ):
        with pytest.raises(UsageError) as caught:
            Landing(archive).write(table, upto)
        assert caught.value.code == "DS957"
    assert (Landing(archive).upto(), len(Landing(archive).files())) == (end_of(5), 1)


def test_rows_of_other_columns_do_not_land(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    with pytest.raises(UsageError, match=r"do not fit .*: column v is string, not int64") as caught:
        columns = {n: rows(0, 3).column(n) for n in rows(0, 3).column_names} | {
            "v": pa.array(["a", "b", "c"])
        }
        Landing(archive).write(pa.table(columns), end_of(0))
    assert caught.value.code == "DS956" and not archive.exists(LANDING, f"{1:012d}.parquet")


def test_a_lost_note_is_made_out_from_the_files(tmp_path: Path) -> None:
    archive = made(tmp_path / "a")
    for step in range(3):
        land(archive, step, 10, start=step * 10)
    updated(archive, end_of(0))
    for damage in ("{", None):
        note = Path(archive.path(LANDING, "upto.json"))
        note.write_text(damage) if damage else note.unlink()
        assert Landing(archive).noted() == (end_of(2), 3)
    assert updated(archive).taken == 20
    assert Landing(archive).noted() == (end_of(2), 3)


def test_places_that_can_not_be_written_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="names no file system") as caught:
        Archive("nowhere://x/y")
    assert caught.value.code == "DS955"
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UsageError, match=str(blocked)) as caught:
        made(blocked / "a")
    assert caught.value.code == "DS955"
    archive = made(tmp_path / "a")
    land(archive, 0, 10)
    monkeypatch.setattr(os, "replace", _full)
    for job in (lambda: land(archive, 1, 10, start=10), lambda: updated(archive)):
        with pytest.raises(UsageError, match="No space left on device") as caught:
            job()
        assert caught.value.code == "DS955"
    monkeypatch.undo()
    land(archive, 1, 10, start=10)
    assert updated(archive).taken == 20


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")
