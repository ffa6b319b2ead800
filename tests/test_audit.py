"""The audit log without a server: its lines, its file, the thread that writes, and what is summed
up."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from dsms.errors import UsageError
from dsms_server import config
from dsms_server.audit import events
from dsms_server.audit.events import Event, line
from dsms_server.audit.file import AuditFile
from dsms_server.audit.sums import MOST_KEYS, OTHERS, Sums
from dsms_server.audit.writer import PATIENCE, AuditWriter
from tests.waiting import WAIT, wait_until

SECOND = 1_000_000


def lines(path: Path) -> list[dict]:
    return [json.loads(found) for found in path.read_bytes().splitlines()]


def numbers(*paths: Path) -> list[int]:
    return [found["n"] for path in paths for found in lines(path)]


# -- lines


@pytest.mark.parametrize(
    "text", ["a\nb", '"}\n{"event":"login"}', "\x1b[2J\r\x00\x7f", "\u2028\u202e\ud800", "ö 中"]
)
def test_no_text_can_forge_a_line_or_steer_a_terminal(text: str):
    who = {"user": text, "client": text}
    written = line(Event("change", 0, who, {"stream": text}, text), "run", 1)
    assert written.count(b"\n") == 1 and written.endswith(b"\n")
    assert all(32 <= byte < 127 for byte in written[:-1])
    found = json.loads(written)
    assert {found["user"], found["client"], found["stream"], found["text"]} == {text}


def test_a_line_has_utc_and_its_number():
    found = json.loads(line(Event("start", 1_500_000), "abc", 7))
    assert found == {"time": "1970-01-01T00:00:01.500000Z", "run": "abc", "n": 7, "event": "start"}


def test_texts_are_bounded_and_secrets_are_gone():
    text, characters = events.of_text("SELECT '" + "x" * 100_000)
    found = json.loads(line(Event("select", 0, {"user": "u" * 1000}, {}, text), "run", 1))
    assert len(found["text"]) == events.MOST_TEXT and characters == 100_008
    assert len(found["user"]) == events.MOST_NAME
    told = line(Event("rights", 0, {}, {}, "CREATE USER a PASSWORD 'correct horse'"), "run", 1)
    assert b"correct" not in told and b"CREATE USER a" in told


def test_groups_hold_every_kind_and_know_what_was_refused():
    assert events.chosen(("all",)) == events.chosen(
        ("logins", "statements", "subscriptions", "ingest", "refused")
    )
    refused = Event("select", 0, said={"outcome": "DS670"})
    assert refused.groups & events.chosen(("refused",))
    assert not refused.groups & events.chosen(("logins",))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"audit": ("nothing",)}, "it knows all, changes"),
        ({"audit": ()}, "names nothing"),
        ({"audit_required": True}, "no audit log"),
        ({"audit_keep": 0}, "at least 1"),
    ],
)
def test_options_that_make_no_sense(options: dict, told: str):
    with pytest.raises(UsageError, match=told) as found:
        config.build(options)
    assert found.value.code == "DS640"


# -- the file


def opened(path: Path, most: int = 0, keep: int = 2) -> AuditFile:
    file = AuditFile(str(path), most, keep)
    file.begin()
    return file


def test_a_new_file_is_its_owners_and_one_that_is_there_stays_as_it_is(tmp_path: Path):
    file = opened(tmp_path / "a")
    file.write([b"1\n"])
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o600
    file.close()
    os.chmod(tmp_path / "a", 0o640)
    opened(tmp_path / "a").write([b"2\n"])
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o640
    assert (tmp_path / "a").read_bytes() == b"1\n2\n"


def test_files_are_rotated_by_size_between_lines(tmp_path: Path):
    file = opened(tmp_path / "a", most=10)
    assert file.write([b"%d234\n" % n for n in range(7)]) == 7
    assert (tmp_path / "a").read_bytes() == b"6234\n"
    assert (tmp_path / "a.1").read_bytes() == b"4234\n5234\n"
    assert (tmp_path / "a.2").read_bytes() == b"2234\n3234\n"
    assert sorted(os.listdir(tmp_path)) == ["a", "a.1", "a.2"]
    file.write([b"x" * 50 + b"\n", b"y\n"])  # a line is never cut
    assert (tmp_path / "a").read_bytes() == b"y\n"
    assert all(
        stat.S_IMODE(os.stat(tmp_path / name).st_mode) == 0o600 for name in os.listdir(tmp_path)
    )


def test_a_file_that_cannot_be_rotated_grows(tmp_path: Path):
    (tmp_path / "a.1").mkdir()
    (tmp_path / "a.1" / "x").touch()
    (tmp_path / "a.2").mkdir()
    (tmp_path / "a.2" / "x").touch()
    file = opened(tmp_path / "a", most=4)
    assert file.write([b"123\n", b"456\n"]) == 2
    assert (tmp_path / "a").read_bytes() == b"123\n456\n"


@pytest.mark.parametrize("how", ["moved", "removed", "truncated"])
def test_somebody_else_may_rotate(tmp_path: Path, how: str):
    file = opened(tmp_path / "a", most=100)
    file.write([b"before\n"])
    if how == "moved":
        os.rename(tmp_path / "a", tmp_path / "b")
    elif how == "removed":
        os.remove(tmp_path / "a")
    else:
        os.truncate(tmp_path / "a", 0)
    file.write([b"behind\n"])
    assert (tmp_path / "a").read_bytes() == b"behind\n"
    file.open()  # SIGHUP, when it is the same file
    file.write([b"more\n"])
    assert (tmp_path / "a").read_bytes() == b"behind\nmore\n"


def test_a_line_that_was_cut_short_spoils_no_other(tmp_path: Path):
    (tmp_path / "a").write_bytes(b'{"n":1}\n{"n":')
    opened(tmp_path / "a").write([b'{"n":3}\n'])
    assert (tmp_path / "a").read_bytes() == b'{"n":1}\n{"n":\n{"n":3}\n'


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = opened(tmp_path / "a")
    file.write([b"1\n"])
    room, write = 3, os.write

    def full(fd: int, data: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(fd, data[:room])
        room -= done
        return done

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        file.write([b"22\n", b"33\n"])
    assert (tmp_path / "a").read_bytes() == b"1\n"
    room = 100
    assert file.write([b"22\n", b"33\n"]) == 2
    assert (tmp_path / "a").read_bytes() == b"1\n22\n33\n"


def test_what_is_no_file_and_what_another_writes_is_refused(tmp_path: Path):
    file = opened(tmp_path / "a")
    for path, why in (("a", "another server"), (".", "no file"), ("no/a", "No such file")):
        with pytest.raises(UsageError, match=why) as found:
            opened(tmp_path / path)
        assert found.value.code == "DS640"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no file"):
        opened(tmp_path / "pipe")
    file.close()


# -- the thread


class Disk:
    """Lines in memory; `gate` closed: it hangs; `full`: nothing can be written; `unsure`: nothing
    gets to the disk."""

    def __init__(self) -> None:
        self.lines: list[dict] = []
        self.full = self.unsure = False
        self.opened = self.syncs = 0
        self.asked = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def open(self) -> None:
        self.opened += 1

    def close(self) -> None: ...

    def write(self, found: list[bytes]) -> int:
        self.asked.set()
        assert self.gate.wait(WAIT)
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.lines += map(json.loads, found)
        return len(found)

    def sync(self) -> None:
        self.syncs += 1
        if self.unsure:
            raise OSError(errno.EIO, "Input/output error")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def writing(disk: Disk, clock: Clock, sync: bool = False, **options) -> AuditWriter:
    writer = AuditWriter(disk, "run", sync, clock, lambda: int(clock.now * SECOND), **options)
    writer.start()
    return writer


def test_what_is_put_is_written_in_order():
    disk, clock = Disk(), Clock()
    writer = writing(disk, clock)
    for n in range(2500):
        writer.put(Event("change", n))
    writer.stop(WAIT)
    assert [found["n"] for found in disk.lines] == list(range(1, 2501))
    assert (writer.lines, writer.lost, writer.waiting, disk.syncs) == (2500, 0, 0, 0)


def test_a_disk_that_hangs_holds_nobody_and_what_is_lost_is_counted():
    disk, clock = Disk(), Clock()
    disk.gate.clear()
    writer = writing(disk, clock, most=(5, 1 << 20))
    writer.put(Event("change", 0))
    assert disk.asked.wait(WAIT)
    clock.now = 2.0
    for _ in range(9):
        writer.put(Event("change", 2 * SECOND))
    assert (writer.lost, writer.waiting, writer.full) == (5, 5, True)
    assert "more waits" in writer.complaint
    disk.gate.set()
    wait_until(lambda: len(disk.lines) == 6)
    lost = disk.lines[-1]
    assert (lost["event"], lost["count"], lost["n"]) == ("lost", 5, 11)
    assert lost["since"] == "1970-01-01T00:00:02.000000Z"
    assert [found["n"] for found in disk.lines[:5]] == [1, 2, 3, 4, 5]
    assert not writer.complaint
    writer.stop(WAIT)


def test_the_bytes_that_wait_are_bounded_too():
    disk, clock = Disk(), Clock()
    disk.gate.clear()
    writer = writing(disk, clock, most=(1000, 4096))
    for _ in range(10):
        writer.put(Event("change", 0, text="x" * 1500))
    assert writer.waiting == 3 and writer.lost == 7
    disk.gate.set()
    writer.stop(WAIT)


def test_a_full_disk_is_tried_again_and_nothing_is_written_twice():
    disk, clock = Disk(), Clock()
    disk.full = True
    writer = writing(disk, clock, again=0.001)
    kept = writer.put(Event("change", 0), wait=True)
    assert kept is not None and kept.result(WAIT) is False
    wait_until(lambda: "No space" in writer.complaint)
    writer.put(Event("change", 1))
    disk.full = False
    wait_until(lambda: len(disk.lines) == 2)
    wait_until(lambda: not writer.complaint)
    writer.stop(WAIT)
    assert [found["n"] for found in disk.lines] == [1, 2] and writer.lost == 0


def test_who_waits_is_told_once_it_is_on_the_disk():
    disk, clock = Disk(), Clock()
    writer = writing(disk, clock, sync=True, again=0.001)
    kept = writer.put(Event("change", 0), wait=True)
    assert kept is not None and kept.result(WAIT) is True and disk.syncs == 1
    disk.unsure = True
    kept = writer.put(Event("change", 0), wait=True)
    assert kept is not None and kept.result(WAIT) is False
    wait_until(lambda: "Input/output" in writer.complaint)
    disk.unsure = False
    wait_until(lambda: not writer.complaint)  # it finds out by itself
    writer.stop(WAIT)
    assert [found["n"] for found in disk.lines] == [1, 2]


def test_nobody_waits_for_a_disk_that_hangs():
    disk, clock = Disk(), Clock()
    disk.gate.clear()
    writer = writing(disk, clock, sync=True)
    kept = writer.put(Event("change", 0), wait=True)
    assert kept is not None
    clock.now = PATIENCE - 0.1
    writer.sweep()
    assert not kept.done()
    clock.now = PATIENCE
    writer.sweep()
    assert kept.result(WAIT) is False
    disk.gate.set()
    writer.stop(WAIT)


def test_it_is_opened_anew_on_demand():
    disk, clock = Disk(), Clock()
    writer = writing(disk, clock)
    writer.reopen()
    wait_until(lambda: disk.opened == 1)
    writer.stop(WAIT)


def test_the_stop_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture):
    disk, clock = Disk(), Clock()
    disk.full = True
    writer = writing(disk, clock)
    writer.put(Event("change", 0))
    writer.stop(WAIT)  # it is tried once more
    assert "misses 1 events" in caplog.text


# -- what is summed up


def test_the_first_is_told_at_once_and_the_rest_as_one():
    sums = Sums()
    key = (1, "ingest", "s")
    first = sums.add(key, {"user": "u"}, 5, {"frames": 1, "accepted": 10})
    assert first is not None and first.said() == {"frames": 1, "accepted": 10, "errors": None}
    assert sums.add(key, {}, 6, {"frames": 1, "accepted": 20}) is None
    assert sums.add(key, {}, 7, {"frames": 1, "DS501": 1}) is None
    ((found, rest),) = sums.take()
    assert found == key and rest.since == 5
    assert rest.said() == {"frames": 2, "accepted": 20, "errors": {"DS501": 1}}
    assert list(sums.take()) == []
    assert sums.add(key, {}, 8, {"frames": 1}) is not None  # an interval begins


def test_who_names_a_thousand_streams_gets_no_line_for_each_of_them():
    sums = Sums()
    told = [sums.add((1, "ingest", f"s{n}"), {}, n, {"frames": 1}) for n in range(MOST_KEYS + 50)]
    assert sum(found is not None for found in told) == MOST_KEYS + 1
    assert sums.add((2, "ingest", "s"), {}, 0, {"frames": 1}) is not None
    ((key, rest),) = sums.take(1)
    assert key == (1, "ingest", OTHERS) and rest.counts["frames"] == 49
