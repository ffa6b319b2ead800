"""Checkpoints, manifests and catalogs that are full of faults, damaged, old or gone, and disks that
are full."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from random import Random

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.settings import Settings
from tests.faults.simfiles import Plan
from tests.recovery_world import World, count, finish, flip, opened, run, undisturbed_rows


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple]]:
    return undisturbed_rows(tmp_path_factory.mktemp("data"))


def test_a_full_disk_refuses_rows_and_loses_nothing(tmp_path, undisturbed):
    world = opened(tmp_path, steps=10)
    world.files.plan.room = 300
    with pytest.raises(UsageError, match=r"DS550: .*the disk is full"):
        run(world, 30)
    (found,) = world.engine.execute("SELECT COUNT(*) FROM r")  # the rest runs on
    assert found.data.num_rows == 1
    world.files.plan.room = None
    assert finish(world) == undisturbed


def test_what_a_full_disk_refused_is_not_there_after_a_restart_either(tmp_path, undisturbed):
    world = opened(tmp_path, steps=10)
    world.files.plan.room = 150
    with pytest.raises(UsageError, match="DS550"):
        run(world, 30)
    world.crash()
    world.open()
    assert world.engine.saver.recovered.notes == []
    assert finish(world) == undisturbed


def test_a_checkpoint_that_fails_changes_nothing(tmp_path, undisturbed, caplog):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    for at in range(40):
        world.files.count, world.files.plan = 0, Plan(at, errno.ENOSPC)
        if world.engine.saver.checkpoint():
            break
        checkpointer = world.engine.saver.checkpointer
        assert checkpointer.trouble is not None and checkpointer.trouble.code == "DS550"
        checkpointer.trouble, checkpointer.failures = None, 0
    else:
        raise AssertionError("never made")
    assert "no checkpoint could be made, the journal grows until one can: " in caplog.text
    world.files.plan = Plan()
    world.crash()
    world.open()
    assert finish(world) == undisturbed


def test_a_damaged_checkpoint_is_replaced_by_the_one_before_it(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0)
    for steps in (5, 10):
        run(world, steps)
        world.engine.saver.checkpoint()
    run(world, 12)
    world.crash()
    newest = max(p for p in world.files.names if p.endswith(".state"))
    world.files.damage(newest, flip)
    world.open()
    (note,) = world.engine.saver.recovered.notes
    assert "the one before it was" in note and "damaged" in note
    assert finish(world) == undisturbed


def test_a_sound_state_in_the_place_of_another_is_not_taken_for_it(tmp_path, undisturbed):
    """Without the manifest's digest the rows between the two states would be gone without a
    word."""
    world = saved_twice(tmp_path)
    older, newest = sorted(p for p in world.files.names if p.endswith(".state"))
    world.files.names[newest].data[:] = world.files.names[older].data
    world.open()
    (note,) = world.engine.saver.recovered.notes
    assert "the one before it was" in note and " is damaged" in note
    assert finish(world) == undisturbed


def saved_twice(data: Path) -> World:
    """Killed, with two checkpoints."""
    world = opened(data, checkpoint_bytes=0, steps=5)
    world.engine.saver.checkpoint()
    run(world, 8)
    world.engine.saver.checkpoint()
    world.crash()
    return world


def test_when_no_checkpoint_can_be_read_the_engine_says_so_and_touches_nothing(tmp_path):
    world = saved_twice(tmp_path)
    for path in [p for p in world.files.names if p.endswith(".state")]:
        world.files.damage(path, flip)
    before = {p: bytes(n.data) for p, n in world.files.names.items()}
    with pytest.raises(UsageError, match=r"DS545: .*checkpoint-.*damaged"):
        world.open()
    assert {p: bytes(n.data) for p, n in world.files.names.items()} == before


def test_a_missing_manifest_is_not_an_empty_folder(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=5)
    world.engine.close()
    world.files = world.files.crash("kill", Random(0))
    del world.files.names[next(p for p in world.files.names if p.endswith("manifest.json"))]
    with pytest.raises(UsageError, match=r"DS545: .*manifest\.json is missing"):
        world.open()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_missing_catalog_is_not_an_empty_folder(tmp_path, checkpoint):
    world = opened(tmp_path, checkpoint_bytes=0, steps=5)
    if checkpoint:
        world.engine.saver.checkpoint()
    world.crash()
    (tmp_path / "catalog.sqlite").rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(UsageError, match=r"DS545: .*catalog\.sqlite is missing"):
            world.open()
    (tmp_path / "elsewhere").rename(tmp_path / "catalog.sqlite")
    world.open()
    assert world.engine.saver.recovered.notes == []


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("how", ["no wal", "half a wal", "empty", "older"])
def test_a_catalog_that_lacks_changes_is_refused_and_nothing_is_touched(tmp_path, checkpoint, how):
    engine = Engine(str(tmp_path), Settings(checkpoint_bytes=0))
    engine.execute("CREATE STREAM a (v INT, t TIMESTAMP) TIMESTAMP BY t")
    files = [tmp_path / f"catalog.sqlite{end}" for end in ("", "-wal")]
    older = [f.read_bytes() for f in files]
    engine.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE k (a INT PRIMARY KEY)"
    )
    engine.execute("INSERT INTO k VALUES (1)")
    if checkpoint:
        engine.saver.checkpoint()
        engine.execute("INSERT INTO k VALUES (2)")
    engine.ingest("s", [[1, 1]])
    whole = [f.read_bytes() for f in files]
    copy = tmp_path.parent / f"{tmp_path.name}-killed"
    shutil.copytree(tmp_path, copy)
    engine.close()
    main, wal = (copy / f.name for f in files)
    match how:
        case "no wal":
            wal.unlink()
        case "half a wal":
            wal.write_bytes(whole[1][: len(whole[1]) // 2])
        case "empty":
            main.write_bytes(b"")
            wal.unlink()
        case "older":
            main.write_bytes(older[0])
            wal.write_bytes(older[1])
    before = {p: p.read_bytes() for p in (copy / "journal").rglob("*") if p.is_file()}
    with pytest.raises(UsageError, match=r"DS54[15]: .*catalog\.sqlite"):
        Engine(str(copy))
    assert {p: p.read_bytes() for p in (copy / "journal").rglob("*") if p.is_file()} == before
    for file, data in zip((main, wal), whole, strict=True):
        file.write_bytes(data)
    (copy / "catalog.sqlite-shm").unlink(missing_ok=True)
    engine = Engine(str(copy))
    assert engine.saver.recovered.notes == [] and len(engine.runtime.tables["k"]) == (
        2 if checkpoint else 1
    )
    engine.close()


def test_the_only_checkpoint_may_be_damaged(tmp_path, undisturbed):
    """Until there are two, all of the journal is kept."""
    world = opened(tmp_path, checkpoint_bytes=0, steps=5)
    world.engine.saver.checkpoint()
    run(world, 10)
    world.crash()
    world.files.damage(next(p for p in world.files.names if p.endswith(".state")), flip)
    world.open()
    (note,) = world.engine.saver.recovered.notes
    assert note.startswith("the only checkpoint could not be read, all is done again: ")
    assert finish(world) == undisturbed


def test_checkpoints_that_are_gone_are_told_as_such(tmp_path):
    world = saved_twice(tmp_path)
    for path in [p for p in world.files.names if p.endswith(".state")]:
        del world.files.names[path]
    with pytest.raises(
        UsageError, match=r"DS545: no checkpoint can be read: .*\.state: it is missing"
    ):
        world.open()


def test_an_older_state_of_streams_that_keep_nothing_is_told(tmp_path):
    world = opened(tmp_path, "none", checkpoint_bytes=0, steps=5)
    world.engine.saver.checkpoint()
    run(world, 8)
    world.engine.execute("DELETE FROM r WHERE k = 'a'")
    world.engine.saver.checkpoint()
    world.crash()
    world.files.damage(max(p for p in world.files.names if p.endswith(".state")), flip)
    world.open()
    _, note = world.engine.saver.recovered.notes
    assert note == "later rows of streams of durability none are lost: s, u"
    assert count(world, "SELECT COUNT(*) FROM s [RANGE 1 min]") == 24


def test_a_state_that_can_not_be_saved_in_the_end_is_told(tmp_path):
    world = opened(tmp_path, "none", checkpoint_bytes=0, steps=5)
    world.files.plan.room = 50
    world.engine.close()
    assert world.engine.unsaved is not None and world.engine.unsaved.code == "DS550"
    other = opened(tmp_path / "other", "none", checkpoint_bytes=0, steps=5)
    other.engine.close()
    assert other.engine.unsaved is None
    other.open()
    assert count(other, "SELECT COUNT(*) FROM s [RANGE 1 min]") == 24
