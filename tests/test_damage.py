"""Logs that are changed, cut short, swapped or removed: noticed, named, contained, and mended."""

from __future__ import annotations

from random import Random

import pytest

from dsms.errors import UsageError
from tests.effort import effort, sampled, thinned
from tests.recovery_world import (
    QUERIES,
    World,
    count,
    ends,
    finish,
    flip,
    logs,
    opened,
    refuses,
    run,
    stopped,
    undisturbed_rows,
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple]]:
    return undisturbed_rows(tmp_path_factory.mktemp("data"))


def test_a_sync_that_fails_stops_the_stream_and_no_other(tmp_path):
    world = opened(tmp_path, "sync", checkpoint_bytes=0, steps=5)
    log = world.engine.saver.durable.journal._logs["s"]
    getattr(log._file, "file", log._file).broken = True  # below the encryption, if there is one
    for _ in range(2):
        with pytest.raises(
            UsageError, match=r"DS552: stream s takes no rows: .*reading or writing it failed"
        ):
            world.engine.ingest("s", [["a", 1, 10**9]])
    assert world.engine.ingest("u", [["a", 1, 10**9]]).accepted == 1
    (shown,) = world.engine.execute("SHOW STREAMS")
    first, second = shown.data.column("durability").to_pylist()
    assert first.startswith("takes no rows: ") and second == "sync"


def test_a_damaged_log_is_named_and_its_stream_takes_no_rows(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=9)
    world.engine.saver.durable.journal.commit()
    run(world, 10)
    world.crash()
    path = next(p for p in world.files.names if "/s/" in p and p.endswith(".log"))
    world.files.damage(path, flip)
    world.open()
    assert any("damaged" in note and path in note for note in world.engine.saver.recovered.notes)
    with pytest.raises(UsageError, match=r"DS555: stream s takes no rows: .*damaged"):
        world.engine.ingest("s", [["a", 1, 10**9]])
    assert world.engine.ingest("u", [["a", 1, 10**9]]).accepted == 1
    for name in QUERIES:
        world.engine.execute(f"DROP QUERY {name}")
    world.engine.execute("DROP STREAM s; CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t")
    assert world.engine.ingest("s", [[1, 10**9]]).accepted == 1


def test_a_torn_tail_is_no_damage(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    world.crash()
    for path in [p for p in world.files.names if p.endswith(".log")]:
        world.files.damage(path, lambda data: data.extend(data[:31]))
    world.open()
    assert world.engine.saver.recovered.notes == []
    assert finish(world) == undisturbed


@thinned()
@pytest.mark.parametrize("durability", ["interval", "sync"])
@pytest.mark.parametrize(
    "how",
    ["gone", "folder gone", "cut between records", "cut in a record", "empty", "zeros", "last"],
)
def test_whatever_becomes_of_the_newest_log_is_noticed(tmp_path, durability, how):
    world = opened(tmp_path, durability, checkpoint_bytes=0, steps=10)
    stopped(world)
    (path,) = logs(world, "s")
    data = world.files.names[path].data
    match how:
        case "gone":
            del world.files.names[path]
        case "folder gone":
            world.files.names = {
                p: n for p, n in world.files.names.items() if "/streams/s/" not in p
            }
            world.files.folders.discard(f"{tmp_path}/journal/streams/s")
        case "cut between records":
            del data[ends(world, path)[-2] :]
        case "cut in a record":
            del data[ends(world, path)[-2] + 7 :]
        case "empty":
            data.clear()
        case "zeros":
            data[:] = bytes(len(data))
        case "last":
            data[-1] ^= 1
    world.open()
    refuses(world)
    assert any("stream s takes no rows" in note for note in world.engine.saver.recovered.notes)
    assert world.engine.ingest("u", [["a", 1, 10**9]]).accepted == 1
    assert count(world, "SELECT COUNT(*) FROM r") == 3
    if how.startswith(("cut", "last")):
        assert 30 < count(world, "SELECT COUNT(*) FROM s [RANGE 1 min]") <= 45


def test_a_log_in_the_middle_is_missed_and_what_follows_it_is_not_applied(tmp_path):
    """There are two: the newest checkpoint can't be read."""
    world = opened(tmp_path, checkpoint_bytes=0)
    for steps in (3, 6):
        run(world, steps)
        world.engine.saver.checkpoint()
    run(world, 9)
    stopped(world)
    world.files.damage(max(p for p in world.files.names if p.endswith(".state")), flip)
    del world.files.names[logs(world, "s")[-2]]
    world.open()
    refuses(world)
    assert count(world, "SELECT COUNT(*) FROM s [RANGE 1 min]") == 14


def test_what_no_state_needs_may_go(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0)
    for steps in (3, 6):
        run(world, steps)
        world.engine.saver.checkpoint()
    run(world, 9)
    stopped(world)
    del world.files.names[logs(world, "s")[0]]
    world.open()
    assert world.engine.saver.recovered.notes == []
    assert finish(world) == undisturbed


@pytest.mark.parametrize("between", [0, 1, 3])
def test_a_file_that_comes_back_makes_the_stream_whole(tmp_path, undisturbed, between):
    """However often the engine ran and saved its state without it."""
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    stopped(world)
    (path,) = logs(world, "s")
    kept = world.files.names.pop(path)
    for _ in range(between):
        world.open()
        refuses(world)
        world.engine.execute("INSERT INTO r VALUES ('z', 1); DELETE FROM r WHERE k = 'z'")
        world.engine.saver.checkpoint()
        world.engine.saver.checkpoint()
        world.crash()
    world.files.names[path] = kept
    world.open()
    assert world.engine.saver.recovered.notes == []
    assert finish(world) == undisturbed
    world.crash()
    world.open()
    assert world.engine.saver.recovered.notes == []


def test_part_of_it_that_comes_back_is_taken_in_and_the_rest_still_missed(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    stopped(world)
    (path,) = logs(world, "s")
    kept, places = bytes(world.files.names[path].data), ends(world, path)
    for upto in (2, 5):
        world.files.names[path].data[:] = kept[: places[upto - 1]]
        world.open()
        refuses(world)
        world.engine.saver.checkpoint()
        world.crash()
    assert (
        world.engine.writers.applied("w", "s", 4) is None
        and world.engine.writers.applied("w", "s", 5) is not None
    )


def test_the_loss_can_be_accepted(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    stopped(world)
    path = logs(world, "s")[0]
    del world.files.names[path].data[ends(world, path)[4] :]
    world.open("S", "nobody")
    first, second = world.engine.saver.recovered.notes
    assert first.startswith("stream s goes on, as was asked, without what it has lost: a log in ")
    assert second == "there is no stream nobody whose loss could be accepted"
    assert (
        world.engine.ingest("s", {"k": ["a"], "v": [1], "t": [10**9]}, client="w", seq=5).accepted
        == 1
    )
    for _ in range(2):
        stopped(world)
        world.open()
        assert world.engine.saver.recovered.notes == []
    assert world.engine.ingest(
        "s", {"k": ["a"], "v": [1], "t": [10**9]}, client="w", seq=5
    ).repeated


def test_a_damaged_stream_can_be_dropped_and_made_anew(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    stopped(world)
    world.files.damage(logs(world, "s")[0], flip)
    world.open()
    refuses(world)
    for name in QUERIES:
        world.engine.execute(f"DROP QUERY {name}")
    world.engine.execute(
        "DROP STREAM s; CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min"
    )
    for i in range(3):
        assert world.engine.ingest("s", [[i, 10**6 * i]]).accepted == 1
        stopped(world)
        world.open()
        assert world.engine.saver.recovered.notes == []
        if i == 1:
            world.engine.saver.checkpoint()
    assert count(world, "SELECT COUNT(*) FROM s [RANGE 1 min]") == 2
    world.engine.saver.checkpoint()
    world.engine.saver.checkpoint()
    assert len(logs(world, "s")) <= 1, "nothing of the damaged one is kept"


def test_the_clock_of_a_damaged_stream_stands_and_hurts_nobody(tmp_path):
    world = World(tmp_path, checkpoint_bytes=0)
    world.open()
    world.engine.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t IDLE TIMEOUT 1 s; "
        "CREATE STREAM u (v INT, t TIMESTAMP) TIMESTAMP BY t; "
        "CREATE QUERY q AS SELECT COUNT(*) FROM s, u WHERE s.v = u.v"
    )
    world.engine.ingest("s", [[1, 1]])
    stopped(world)
    del world.files.names[logs(world, "s")[0]]
    world.open()
    for second in range(1, 5):
        world.engine.advance(second * 10**6)
        assert world.engine.ingest("u", [[1, second * 10**6]]).accepted == 1
    (streams,) = world.engine.execute("SHOW STREAMS")
    assert streams.data.column("complete")[0].as_py() is None


def test_what_is_lost_of_the_system_time_is_told_and_rows_come(tmp_path):
    world = World(tmp_path, checkpoint_bytes=0)
    world.open()
    world.engine.execute("CREATE STREAM c (v INT)")
    for second in range(1, 4):
        world.engine.advance(second * 10**6)
        world.engine.ingest("c", [[second]])
    stopped(world)
    del world.files.names[logs(world, "%")[0]]
    world.open()
    (note,) = world.engine.saver.recovered.notes
    assert note.endswith("how the system time went on is lost") and "/% is damaged or gone" in note
    assert world.engine.ingest("c", [[4]]).accepted == 1


def test_the_system_time_stands_still_where_it_cannot_be_written_down(tmp_path):
    world = World(tmp_path, checkpoint_bytes=0)
    world.open()
    world.engine.execute(
        "CREATE STREAM c (v INT); CREATE STREAM e (v INT, t TIMESTAMP) TIMESTAMP BY t"
    )
    world.engine.advance(10**6)
    world.files.plan.room = 10
    world.engine.advance(2 * 10**6)
    assert world.engine.now == 10**6
    shown = world.engine.execute("SHOW STREAMS")[0].data.column("durability").to_pylist()
    assert (
        shown[0].startswith("the system time stands still: it refused the last rows: ")
        and shown[1] == "interval"
    )
    with pytest.raises(UsageError, match="DS550"):
        world.engine.ingest("e", [[1, 1]])
    shown = world.engine.execute("SHOW STREAMS")[0].data.column("durability").to_pylist()
    assert shown[1].startswith("refused the last rows: ") and "the disk is full" in shown[1]
    world.files.plan.room = None
    world.engine.advance(3 * 10**6)
    world.engine.ingest("e", [[1, 1]])
    assert world.engine.execute("SHOW STREAMS")[0].data.column("durability").to_pylist() == [
        "interval",
        "interval",
    ]


@thinned(2)
@pytest.mark.parametrize("seed", sampled(range(30), 5))
def test_any_change_of_any_log_is_noticed_where_it_takes_something(
    tmp_path, undisturbed, seed, request
):
    """Random stories of steps, checkpoints and kills; then a log is changed.  Either nothing of it
    was needed, and all is as if it had never happened, or its stream says so; the other one has all
    its rows."""
    fuzz = request.config.getoption("--fuzz")
    for part in range(20 if fuzz else 1):
        random = Random(seed * 1000 + part)
        world = opened(
            tmp_path / str(part), random.choice(("interval", "sync")), checkpoint_bytes=0
        )
        for _ in range(random.randint(1, 4)):
            run(world, world.sent + random.randint(0, 4))
            match random.randrange(3):
                case 0:
                    world.engine.saver.checkpoint()
                case 1:
                    world.crash()
                    world.open()
        stopped(world)
        stream = random.choice("su")
        if not logs(world, stream):
            continue
        path = random.choice(logs(world, stream))
        changed = tampered(world, path, random)
        world.open()
        saver = world.engine.saver
        assert not set(saver.durable.journal.failures) - {stream}
        for name in {"s", "u"} - {stream}:
            assert (
                world.sent == 0 or world.engine.writers.applied("w", name, world.sent - 1) is None
            )
        if stream in saver.durable.journal.failures:
            assert changed
            continue
        assert saver.recovered.notes == []
        assert finish(world) == undisturbed


def tampered(world: World, path: str, random: Random) -> bool:
    """Change a log; whether it is another one."""
    data = world.files.names[path].data
    before = bytes(data)
    match random.randrange(4):
        case 0:
            del world.files.names[path]
            return True
        case 1:
            del data[random.choice([0, *ends(world, path)]) :]
        case 2:
            del data[random.randint(0, len(data)) :]
        case _ if data:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data) != before


def test_rows_that_a_power_failure_took_between_two_logs_are_told_with_those_behind(tmp_path):
    """The end of the older log was not on the disk yet, the newer one was: nothing of that was
    known to be there."""
    world = opened(tmp_path, checkpoint_bytes=0, steps=4)
    journal = world.engine.saver.durable.journal
    journal.commit()
    run(world, 6)
    journal.rotate()
    run(world, 8)
    older, _ = logs(world, "s")
    world.crash()
    places = ends(world, older)
    del world.files.names[older].data[places[-1] - 3 :]
    world.open()
    assert world.engine.saver.recovered.notes == [
        "stream s: 2 records are lost behind number 19: one before was not yet on the disk when "
        "the power failed"
    ]
    assert not world.engine.saver.durable.journal.failures
    world.rows.clear()
    world.sent = 5
    for _ in range(2):  # they are sent again, in logs of their own, and stay
        run(world, world.sent + 3)
        stopped(world)
        world.open()
        assert world.engine.writers.applied("w", "s", world.sent - 1) is None
        assert not world.engine.saver.durable.journal.failures


def test_what_a_restart_has_read_a_power_failure_does_not_take(tmp_path, undisturbed):
    """A writer that repeats rows which had not been acknowledged gets the answer that they are
    there: then they are."""
    for seed in range(8 if effort() else 2):
        world = opened(tmp_path / str(seed), "interval", checkpoint_bytes=0, steps=4)
        world.engine.saver.checkpoint()
        run(world, 12)
        for kind in ("kill", "power"):
            world.crash(kind, seed)
            world.open()
            assert world.engine.saver.recovered.rows == 8 * 7
        assert finish(world) == undisturbed


def test_missing_notes_are_told(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0, steps=10)
    world.engine.saver.checkpoint()
    stopped(world)
    for path in [p for p in world.files.names if "/synced-" in p]:
        del world.files.names[path]
    world.open()
    (note,) = world.engine.saver.recovered.notes
    assert note.endswith("can't be told from whole ones") and "synced-*" in note
    assert finish(world) == undisturbed


def test_a_log_that_was_removed_before_it_was_synced_is_told_of_its_stream(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=0, steps=5)
    world.crash()
    del world.files.names[logs(world, "s")[0]]
    world.open()
    (note,) = world.engine.saver.recovered.notes
    assert note.startswith("stream s: its records behind number 0, from 10 on, are missing: ")
    assert world.engine.ingest("s", [["a", 1, 10**9]]).accepted == 1
