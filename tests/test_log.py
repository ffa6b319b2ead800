"""Logs against a model: what was synced comes back after any crash, and nothing that was not
written."""

from __future__ import annotations

import errno
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.errors import UsageError
from dsms.storage.files import RealFiles
from dsms.storage.log import LogWriter, read_log
from dsms.storage.synced import MOST, Synced
from tests.faults.simfiles import Plan, SimFiles

PAYLOADS = st.lists(st.binary(max_size=300), max_size=3)
FIRST = 7


def filled(
    files: SimFiles, payloads: list[list[bytes]], path: str = "/log", over: str | None = None
) -> LogWriter:
    log = LogWriter(files, path, over, FIRST)
    for i, buffers in enumerate(payloads):
        assert log.append(FIRST + i, i % 5, buffers, i, 0) == log.position
    return log


def kept(files: SimFiles, path: str = "/log") -> list[tuple[int, int, bytes]]:
    """The records in front of the first one that is missing."""
    found = [(r.lsn, r.kind, bytes(r.payload)) for r in read_log(files, path, FIRST)]
    return [r for i, r in enumerate(found) if r[0] == FIRST + i]


def told(payloads: list[list[bytes]]) -> list[tuple[int, int, bytes]]:
    return [(FIRST + i, i % 5, b"".join(p)) for i, p in enumerate(payloads)]


def old_log(files: SimFiles, size: int) -> str:
    """A log with records of higher numbers than those to come, which are not needed any more."""
    log = LogWriter(files, "/old", None, 3)
    for i in range(size):
        log.append(100 + i, 1, [b"old" * 20])
    log.sync()
    return "/old"


@given(
    st.lists(PAYLOADS, max_size=8),
    st.lists(PAYLOADS, max_size=8),
    st.sampled_from(["kill", "power"]),
    st.integers(0, 2**32),
    st.integers(0, 12),
)
def test_a_crash_takes_only_what_was_not_synced(before, behind, kind, seed, older):
    files = SimFiles()
    log = filled(files, before, over=old_log(files, older) if older else None)
    files.sync_folder("/")
    log.sync()
    for i, buffers in enumerate(behind, len(before)):
        log.append(FIRST + i, i % 5, buffers)
    scan = read_log(left := files.crash(kind, Random(seed)), "/log", FIRST)
    found, all_of_it = kept(left), told(before + behind)
    assert found == all_of_it[: len(found)] and len(found) >= len(before)
    assert not scan.foreign
    if kind == "kill":
        assert found == all_of_it and scan.end == log.position


@given(st.lists(PAYLOADS, min_size=1, max_size=5), st.data())
def test_a_log_cut_anywhere_gives_the_records_before_the_cut(payloads, data):
    files = SimFiles()
    log = LogWriter(files, "/log", None, FIRST)
    ends = [log.append(FIRST + i, i % 5, b) for i, b in enumerate(payloads)]
    log.sync()
    cut, zeros = data.draw(st.integers(0, log.position)), data.draw(st.integers(0, 50))
    held = files.names["/log"].data
    whole = bytes(held)
    held[cut:] = bytes(zeros)
    scan = read_log(files, "/log", FIRST)
    assert [r.lsn for r in scan] == [
        FIRST + i for i, end in enumerate(ends) if whole[:end] == held[:end]
    ]
    assert not scan.foreign and scan.torn == (scan.end < cut + zeros)


@given(st.lists(PAYLOADS, min_size=1, max_size=6), st.data())
def test_a_flipped_bit_takes_one_record_and_those_behind_it_are_found(payloads, data):
    files = SimFiles()
    log = LogWriter(files, "/log", None, FIRST)
    ends = [log.append(FIRST + i, i % 5, buffers) for i, buffers in enumerate(payloads)]
    place, bit = data.draw(st.integers(0, ends[-1] - 1)), data.draw(st.integers(0, 7))
    files.names["/log"].data[place] ^= 1 << bit
    scan = read_log(files, "/log", FIRST)
    if place < 4:
        assert scan.foreign and not scan.records
        return
    hit = sum(end <= place for end in ends)
    assert [r.lsn for r in scan] == [FIRST + i for i in range(len(ends)) if i != hit]
    assert scan.torn and scan.end == ([0, *ends][hit])


def test_a_record_says_what_was_before_it_and_what_was_known():
    files = SimFiles()
    log = LogWriter(files, "/log", None, FIRST)
    log.append(FIRST, 1, [b"a"], 3, 2)
    log.append(FIRST + 4, 1, [b"b"], FIRST, FIRST)
    assert [(r.lsn, r.before, r.known) for r in read_log(files, "/log", FIRST)] == [
        (7, 3, 2),
        (11, 7, 7),
    ]
    assert (log.sync(), log.last) == (11, 11)


def test_a_file_of_something_else_is_told_from_a_log():
    files = SimFiles()
    files.append("/log").write([b"PAR1 and more of it"])
    scan = read_log(files, "/log")
    assert scan.foreign and not scan.records and scan.end == 0


def test_a_log_under_another_logs_name_is_not_that_one():
    """A rename may be undone: the older name then shows what was written over it."""
    files = SimFiles()
    filled(files, [[b"a"], [b"b"]])
    scan = read_log(files, "/log", FIRST - 1)
    assert scan.records == [] and not scan.foreign


@given(
    st.lists(PAYLOADS, min_size=1, max_size=4),
    st.binary(min_size=50, max_size=200),
    st.integers(0, 60),
)
def test_a_full_disk_leaves_the_log_as_it_was(payloads, more, room):
    files = SimFiles()
    log = filled(files, payloads)
    position, files.plan.room = log.position, room
    with pytest.raises(UsageError, match="DS550"):
        log.append(99, 1, [more])
    assert log.position == position == files.size("/log") and kept(files) == told(payloads)
    files.plan.room = None
    log.append(FIRST + len(payloads), len(payloads) % 5, [more])
    assert kept(files) == told([*payloads, [more]])


def test_what_cannot_be_cut_off_is_written_over():
    files = SimFiles()
    log = filled(files, [[b"a"]])
    files.plan = Plan(at=files.count + 1, error=errno.EIO, room=30)
    with pytest.raises(UsageError, match="DS550"):
        log.append(99, 1, [b"long" * 20])
    assert files.size("/log") > log.position
    files.plan = Plan()
    log.append(FIRST + 1, 1, [b"b"])
    assert kept(files) == told([[b"a"], [b"b"]]) and not read_log(files, "/log", FIRST).torn


def test_a_sync_that_fails_says_so_and_nothing_counts_as_synced():
    files = SimFiles()
    log = filled(files, [[b"a"]])
    files.plan = Plan(at=files.count, error=errno.EIO)
    with pytest.raises(UsageError, match="DS552"):
        log.sync()
    assert log.synced == 0


def test_logs_of_the_operating_system(tmp_path):
    files, path, over = RealFiles(), str(tmp_path / "b.log"), str(tmp_path / "a.log")
    old = LogWriter(files, over, None, 1)
    for i in range(2000):
        old.append(1 + i, 1, [b"old" * 100])
    old.close()
    log = LogWriter(files, path, over, FIRST)
    # more buffers than one call takes
    parts = [[bytes([i % 256]) * i for i in range(600)], [b""], []]
    for i, buffers in enumerate(parts):
        log.append(FIRST + i, i, buffers)
    log.sync()
    assert log.synced == log.position
    scan = read_log(files, path, FIRST)
    assert [bytes(r.payload) for r in scan] == [b"".join(p) for p in parts]
    assert (scan.end, scan.torn, scan.foreign) == (log.position, True, False)
    log.close()
    with pytest.raises(UsageError, match=r"DS553: .*a\.log: it is missing"):
        read_log(files, over)


# ---------------------------------------------------------------- what is known to be on the disk


def test_notes_of_what_has_been_synced():
    files = SimFiles()
    synced = Synced(files, "")
    assert synced.read() == {}
    for stream, number in [("a", 1), ("b c/ä", 2), ("a", 7)]:
        synced.note(stream, number)
    synced.rotate(9)
    synced.note("a", 8)
    synced.note("", 12)
    assert Synced(files, "").read() == {"a": 8, "b c/ä": 2, "": 12}
    synced.trim(8)
    assert len(files.names) == 2
    synced.trim(9)
    assert synced.read() == {"a": 8, "": 12}
    other = Synced(files, "", 9)  # the next life begins where this one did
    other.note("a", 10)
    assert Synced(files, "").read() == {"a": 10, "": 12}


def test_old_notes_are_left_out_of_long_files():
    files = SimFiles()
    synced = Synced(files, "")
    for i in range(3 * MOST):
        synced.note("abc"[i % 3], i)
    assert synced.read() == {"a": 3 * MOST - 3, "b": 3 * MOST - 2, "c": 3 * MOST - 1}
    assert len(files.names) == 1 and len(read_log(files, next(iter(files.names))).records) <= MOST


def test_notes_that_a_full_disk_refuses_are_no_error():
    files = SimFiles()
    synced = Synced(files, "")
    synced.note("a", 1)
    files.plan.room = 20
    synced.note("a", 2)
    assert synced.read() == {"a": 1}
    files.plan.room = None
    synced.note("a", 3)
    assert synced.read() == {"a": 3}
