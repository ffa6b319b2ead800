"""Sealed sub-windows that are damaged or gone, and what else lies where a stream has its files."""

from __future__ import annotations

import contextlib
from random import Random

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from tests.recovery_world import World, finish, opened, stopped, undisturbed_rows


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple]]:
    return undisturbed_rows(tmp_path_factory.mktemp("data"))


def test_a_missing_segment_is_named_and_the_rest_of_the_window_stands(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=30)
    world.engine.close()
    world.files = world.files.crash("kill", Random(0))
    segments = sorted(p for p in world.files.names if p.endswith(".arrow"))
    del world.files.names[segments[0]]
    world.open()
    assert any(segments[0] in note for note in world.engine.saver.recovered.notes)
    with pytest.raises(UsageError, match=r"DS553: stream s takes no rows: .*missing"):
        world.engine.ingest("s", [["a", 1, 10**9]])
    with pytest.raises(
        UsageError,
        match=r"DS553: stream s has lost rows that this window reaches back to: .*missing",
    ):
        world.engine.execute("SELECT COUNT(*) FROM s [RANGE 1 min]")
    (found,) = world.engine.execute("SELECT COUNT(*) FROM s [RANGE 20 s]")
    assert found.data.column(0)[0].as_py() > 0


def test_what_unfinished_writes_left_is_swept(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    world.crash()
    for folder in ("journal", "journal/streams/s"):
        with contextlib.closing(world.files.append(f"{tmp_path}/{folder}/x.arrow.part")) as out:
            out.write([b"half"])
    world.open()
    assert not [p for p in world.files.names if p.endswith(".part")]
    assert finish(world) == undisturbed


def test_a_missing_segment_stays_missed_until_it_is_back(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0, steps=15)
    world.engine.close()
    world.files = world.files.crash("kill", Random(0))
    path = min(p for p in world.files.names if p.endswith(".arrow"))
    kept = world.files.names.pop(path)
    world.open()
    with pytest.raises(UsageError, match=r"DS553: stream s takes no rows: .*missing"):
        world.engine.ingest("s", [["a", 1, 10**9]])
    world.engine.ingest("u", {"k": ["a"], "w": [1], "t": [1]}, client="w", seq=0)
    world.engine.close()
    world.files.names[path] = kept
    world.open()
    assert world.engine.saver.recovered.notes == []
    assert finish(world) == undisturbed


def test_a_segment_that_is_gone_for_good_is_not_forgotten_with_the_next_state(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=15)
    world.engine.close()
    world.files = world.files.crash("kill", Random(0))
    del world.files.names[min(p for p in world.files.names if p.endswith(".arrow"))]
    for _ in range(3):
        world.open()
        with pytest.raises(UsageError, match="DS553: stream s takes no rows"):
            world.engine.ingest("s", [["a", 1, 10**9]])
        world.engine.saver.checkpoint()
        world.crash()
    world.open("s")
    assert world.engine.ingest("s", [["a", 1, 10**9]]).accepted == 1
    world.engine.close()
    world.open()
    assert world.engine.saver.recovered.notes == []


def test_a_segment_in_the_place_of_another_is_not_taken_for_it(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=30)
    world.engine.close()
    world.files = world.files.crash("kill", Random(0))
    first, second, *_ = sorted(p for p in world.files.names if p.endswith(".arrow"))
    world.files.names[first].data[:] = world.files.names[second].data
    world.open()
    with pytest.raises(UsageError, match=rf"DS554: stream s takes no rows: {first} is damaged: it"):
        world.engine.ingest("s", [["a", 1, 10**9]])


def test_what_else_lies_in_the_folders_does_no_harm(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    stopped(world)
    for name in (
        "s/foo.log",
        "s/1.log",
        ".DS_Store",
        "s/x.arrow",
        "nobody/00000000000000000003.log",
    ):
        path = f"{tmp_path}/journal/streams/{name}"
        world.files.make_folder(path.rpartition("/")[0])
        world.files.append(path).write([b"junk"])
    for _ in range(2):
        world.open()
        assert world.engine.saver.recovered.notes == []
        world.engine.saver.checkpoint()
        world.crash()
    world.open()
    assert finish(world) == undisturbed


def test_a_file_where_a_stream_has_its_folder_is_its_own_trouble(tmp_path):
    engine = Engine(str(tmp_path))
    engine.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE STREAM u (v INT, t "
        "TIMESTAMP) TIMESTAMP BY t"
    )
    for stream in "su":
        engine.ingest(stream, [[1, 1]])
    engine.saver.durable.commit()
    engine.saver.catalog.close()
    (tmp_path / "journal/streams/s").rename(tmp_path / "elsewhere")
    (tmp_path / "journal/streams/s").write_text("no folder")
    (tmp_path / "journal/streams/.DS_Store").write_text("no folder either")
    for _ in range(2):
        engine = Engine(str(tmp_path))
        with pytest.raises(UsageError, match="DS555: stream s takes no rows"):
            engine.ingest("s", [[1, 2]])
        assert engine.ingest("u", [[1, 2]]).accepted == 1
        engine.close()
    (tmp_path / "journal/streams/s").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "journal/streams/s")
    engine = Engine(str(tmp_path))
    assert engine.ingest("s", [[1, 2]]).accepted == 1
    engine.close()


@pytest.mark.parametrize("name", ["n" * 201, "ä" * 70])
def test_names_that_no_folder_can_have_are_refused(name):
    engine = Engine()
    engine.execute("CREATE STREAM s (v INT)")
    for sql in (f'CREATE STREAM "{name}" (v INT)', f'CREATE QUERY "{name}" AS SELECT v FROM s'):
        with pytest.raises(UsageError, match=r"DS415: the name .* is too long"):
            engine.execute(sql)


def test_a_stream_made_anew_has_had_no_frames(tmp_path):
    world = World(tmp_path)
    world.open()
    made = "CREATE STREAM z (v INT, t TIMESTAMP) TIMESTAMP BY t"
    world.engine.execute(made)
    for repeated in (False, True):
        assert world.engine.ingest("z", [[1, 1]], client="w", seq=1).repeated == repeated
    world.engine.execute(f"DROP STREAM z; {made}")
    assert world.engine.ingest("z", [[1, 1]], client="w", seq=1).accepted == 1
    world.crash()
    world.open()
    assert world.engine.ingest("z", [[1, 1]], client="w", seq=1).repeated
