"""Descriptors of an engine with a data folder: none for what was dropped, and no more logs open
than may be."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.storage.files import Files, RealFiles
from dsms.storage.journal import Journal
from dsms.storage.log import LogWriter
from dsms.storage.open_logs import LEAST, SHARE, OpenLogs, allowed
from tests.faults.simfiles import Plan, SimFiles

DURABILITIES = ("sync", "interval", "none")
STREAM = (
    "CREATE STREAM {name} (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR WITH (durability "
    "= {durability})"
)


def descriptors() -> set[str]:
    """What this process has open, of files and folders."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the listing itself
            continue
    return found


def open_logs(folder: Path) -> int:
    """How many logs of streams below the folder this process has open."""
    return sum("/streams/" in path for path in descriptors() if path.startswith(str(folder)))


def journal(files: Files, folder: str, most: int) -> Journal:
    """One that may have so many logs open."""
    files.make_folder(folder)
    return Journal(files, folder, open=OpenLogs(lambda: most))


def read_back(files: Files, folder: str) -> dict[str, list[bytes]]:
    """What the journal in the folder holds of each stream."""
    again = journal(files, folder, 100)
    found: dict[str, list[bytes]] = {}
    for entry in again.entries(0, {}, {}):
        assert again.follows(entry)
        found.setdefault(entry.stream, []).append(bytes(entry.payload))
    return found


def test_what_was_made_and_dropped_keeps_no_descriptor(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path))
    engine.execute(STREAM.format(name="first", durability="sync"))
    engine.ingest("first", [(1, 1)])
    before = len(os.listdir("/proc/self/fd"))
    for i in range(300):
        engine.execute(STREAM.format(name=f"s{i}", durability=DURABILITIES[i % 3]))
        kind = (
            "SELECT v FROM {} [NOW]" if i % 2 else "SELECT SUM(v) FROM {} [RANGE 10 s SLIDE 10 s]"
        )
        engine.execute(f"CREATE QUERY q{i} AS {kind.format(f's{i}')}")
        engine.ingest(f"s{i}", [(n, n * 5_000_000) for n in range(5)])
        if i % 100 == 50:
            assert engine.saver is not None and engine.saver.checkpoint()
        engine.execute(f"DROP QUERY q{i}; DROP STREAM s{i}")
    engine.ingest("first", [(2, 2)])  # its log was begun anew with each checkpoint
    assert len(os.listdir("/proc/self/fd")) == before
    assert open_logs(tmp_path) == 1
    engine.close()
    assert Engine(str(tmp_path)).recovered.notes == []  # type: ignore[union-attr]


def test_logs_that_are_dropped_after_a_checkpoint_are_closed_too(tmp_path: Path) -> None:
    kept = journal(RealFiles(), str(tmp_path), 100)
    kept.append("s", 1, [b"one"])
    kept.rotate()  # as a checkpoint does; nothing has been synced
    kept.append("s", 1, [b"two"])
    assert open_logs(tmp_path) == 2
    kept.forget("s")
    assert open_logs(tmp_path) == 0 and not kept.pending()


def test_late_rows_of_a_dropped_stream_outlive_a_power_failure(tmp_path: Path) -> None:
    for seed in range(20):
        files = SimFiles()
        engine = Engine(str(tmp_path / str(seed)), disk=files)
        engine.execute(
            "CREATE STREAM late (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR WITH "
            "(durability = sync)"
        )
        engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO late")
        engine.ingest("s", [(1, 10_000_000), (2, 1_000_000)])
        engine.execute("DROP STREAM s")
        engine.saver.catalog.close()  # type: ignore[union-attr]
        again = Engine(str(tmp_path / str(seed)), disk=files.crash("power", Random(seed)))
        again.end("late")
        (found,) = again.execute("SELECT v FROM late [RANGE 1 HOUR]")
        assert found.data.column(0).to_pylist() == [2]  # type: ignore[union-attr]
        again.saver.catalog.close()  # type: ignore[union-attr]


def test_no_more_logs_are_open_than_may_be(tmp_path: Path) -> None:
    kept = journal(RealFiles(), str(tmp_path), 4)
    random, told = Random(1), dict[str, list[bytes]]()
    for i in range(400):
        stream, payload = f"s{random.randrange(20)}", b"%d" % i
        kept.append(stream, 1, [payload])
        told.setdefault(stream, []).append(payload)
        assert open_logs(tmp_path) <= 4
        if i % 90 == 60:
            kept.commit()
        if i % 150 == 100:
            kept.rotate()
    kept.close()
    assert open_logs(tmp_path) == 0
    assert read_back(RealFiles(), str(tmp_path)) == told


def test_a_log_that_is_let_go_of_is_on_the_disk() -> None:
    for seed in range(20):
        files = SimFiles()
        kept = journal(files, "/j", 2)
        for stream in "abcde":
            kept.append(stream, 1, [stream.encode() * 100])
        found = read_back(files.crash("power", Random(seed)), "/j")
        assert {s: found.get(s) for s in "abc"} == {s: [s.encode() * 100] for s in "abc"}


def test_logs_that_are_on_the_disk_go_first(tmp_path: Path) -> None:
    kept = journal(RealFiles(), str(tmp_path), 3)
    kept.policies.update(a="interval", b="sync", c="interval")
    for stream in "abc":
        kept.append(stream, 1, [b"x"])
    kept.commit("sync")
    kept.append("d", 1, [b"x"])
    assert {s: log.is_open for s, log in kept._logs.items()} == {
        "a": True,
        "b": False,
        "c": True,
        "d": True,
    }


def test_a_stream_whose_log_cannot_be_synced_takes_no_rows() -> None:
    files = SimFiles()
    kept = journal(files, "/j", 1)
    kept.append("a", 1, [b"x"])
    files.plan = Plan(at=files.count, error=errno.EIO)  # the next thing that is done is that sync
    kept.append("b", 1, [b"x"])
    with pytest.raises(UsageError, match="stream a takes no rows"):
        kept.append("a", 1, [b"x"])
    kept.append("b", 1, [b"x"])


def test_a_log_goes_on_where_it_ended_although_an_older_one_is_below(tmp_path: Path) -> None:
    files, path = RealFiles(), str(tmp_path / "log")
    old = LogWriter(files, str(tmp_path / "old"), None, 1)
    old.append(1, 1, [b"o" * 5000])
    old.close()
    log = LogWriter(files, path, old.path, 7)
    for lsn in (7, 8):
        at = log.position
        log.append(lsn, 1, [b"n"], lsn - 1 if at else 0)
        log.sync()
        log.rest()
        assert not log.is_open and log.position > at
    assert os.path.getsize(path) > 5000 > log.position


def test_a_log_that_was_cut_short_while_nobody_had_it_is_not_written(tmp_path: Path) -> None:
    kept = journal(RealFiles(), str(tmp_path), 1)
    for stream in "ab":
        kept.append(stream, 1, [b"x" * 100])
    ((_, path),) = kept.logs("a")
    os.truncate(path, 50)
    with pytest.raises(UsageError, match=r"DS553: .*it was cut short, or removed"):
        kept.append("a", 1, [b"x"])
    assert os.path.getsize(path) == 50


@contextmanager
def limit(soft: int) -> Iterator[None]:
    """Within it the process may have that many descriptors."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_share_of_the_descriptors_is_for_logs(tmp_path: Path) -> None:
    with limit(1024):
        assert allowed() == 1024 // SHARE
        assert Engine(str(tmp_path)).log_files() == 1024 // SHARE and Engine().log_files() == 0
    with limit(LEAST):
        assert allowed() == LEAST
