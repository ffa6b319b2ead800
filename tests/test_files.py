"""File operations, of the system and of the simulation: they do alike, and their errors say what to
do."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random

import pytest

from dsms.errors import UsageError
from dsms.storage.files import CODES, Files, RealFiles, explained
from tests.faults.simfiles import Crashed, Plan, SimFiles


@pytest.fixture(params=["real", "simulated"])
def place(request, tmp_path) -> tuple[Files, str]:
    if request.param == "real":
        return RealFiles(), str(tmp_path)
    files = SimFiles()
    files.make_folder("/data")
    return files, "/data"


def test_files_are_written_on_from_where_they_ended(place):
    files, root = place
    out = files.append(f"{root}/a")
    out.write([b"one ", memoryview(b"two "), b""])
    out.sync()
    out.close()
    again = files.append(f"{root}/a")
    assert again.size == 8
    again.write([b"three"])
    again.truncate(7)
    again.write([b"!"])
    again.close()
    assert (bytes(files.read(f"{root}/a")), bytes(files.map(f"{root}/a"))) == (
        b"one two!",
        b"one two!",
    )
    assert files.size(f"{root}/a") == 8


def test_an_empty_file_can_be_mapped(place):
    files, root = place
    files.append(f"{root}/a").close()
    assert files.map(f"{root}/a").size == 0


def test_what_is_mapped_shows_what_is_written_over_it(place):
    files, root = place
    files.write_atomic(f"{root}/old", [b"x" * 100])
    seen = files.map(f"{root}/old")
    out = files.recycle(f"{root}/old", f"{root}/new")
    assert out.size == 0 and not files.exists(f"{root}/old")
    out.write([b"yyy"])
    assert bytes(seen) == b"yyy" + b"x" * 97 == bytes(files.read(f"{root}/new"))
    out.close()


def test_names_and_folders(place):
    files, root = place
    files.make_folder(f"{root}/f/g")
    files.write_atomic(f"{root}/f/a", [b"1"], sync=False)
    files.write_atomic(f"{root}/f/a", [b"22"])
    files.rename(f"{root}/f/a", f"{root}/f/b")
    assert files.list(f"{root}/f") == ["b", "g"] and files.exists(f"{root}/f/b")
    files.sync(f"{root}/f/b")
    files.remove(f"{root}/f/b")
    files.remove_folder(f"{root}/f/g")
    assert files.list(f"{root}/f") == []


def test_missing_files_are_named(place):
    files, root = place
    for ask in (files.read, files.map, files.size, files.remove):
        with pytest.raises(UsageError, match=rf"DS553: {root}/none: it is missing"):
            ask(f"{root}/none")
    with pytest.raises(UsageError, match="DS553"):
        files.append(f"{root}/no folder/a")


def test_every_error_of_the_system_says_what_to_do():
    for number in (*CODES, errno.EIO):
        with pytest.raises(UsageError, match=r"DS55[0-3]: a file: ") as caught, explained("a file"):
            raise OSError(number, os.strerror(number))
        assert caught.value.hint


def test_a_write_that_the_system_takes_in_parts_is_whole(tmp_path, monkeypatch):
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, views, at: real(fd, [views[0][:3]], at))
    out = RealFiles().append(str(tmp_path / "a"))
    out.write([b"abcdefg", b"", b"hi"])
    assert RealFiles().read(str(tmp_path / "a")) == b"abcdefghi" and out.size == 9
    out.close()


def test_an_atomic_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    files, path = RealFiles(), str(tmp_path / "a")
    files.write_atomic(path, [b"old"])

    def full(fd, views, at):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(UsageError, match="DS550"):
        files.write_atomic(path, [b"new"])
    assert files.read(path) == b"old" and files.list(str(tmp_path)) == ["a"]


@pytest.mark.parametrize("kind", ["kill", "power"])
def test_a_crash_at_any_operation_of_an_atomic_write_leaves_the_old_file_or_the_new_one(kind):
    for at in range(8):
        for seed in range(20):
            files = SimFiles()
            files.write_atomic("/a", [b"old"])
            files.plan = Plan(files.count + at, None, bool(seed % 2))
            done = False
            try:
                files.write_atomic("/a", [b"new"])
                done = True
            except Crashed:
                pass
            found = files.crash(kind, Random(seed)).read("/a")
            assert found in ((b"new",) if done else (b"old", b"new"))


def test_power_takes_pages_of_what_was_not_synced_and_nothing_else():
    files = SimFiles()
    out = files.append("/a")
    out.write([b"s" * 100])
    out.sync()
    files.sync_folder("/")
    out.write([b"n" * 1000])
    left = [bytes(files.crash("power", Random(seed)).names["/a"].data) for seed in range(100)]
    assert all(held[:100] == b"s" * 100 for held in left)
    assert any(b"\0" in held and held.rstrip(b"\0").endswith(b"n") for held in left)
    assert {len(held) for held in left} >= {100, 1100}
    assert bytes(files.crash("kill", Random(0)).names["/a"].data) == b"s" * 100 + b"n" * 1000


def test_what_is_written_whole_is_made_as_it_is_written(tmp_path: Path, monkeypatch) -> None:
    """A file may be larger than memory."""
    monkeypatch.setattr("dsms.storage.files.AT_ONCE", 1000)
    place, alive, most = RealFiles(), 0, 0

    class Piece(bytearray):
        def __init__(self) -> None:
            nonlocal alive, most
            super().__init__(b"x" * 600)
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    place.write_atomic(f"{tmp_path}/whole", (Piece() for _ in range(100)))
    assert place.read(f"{tmp_path}/whole") == b"x" * 60_000
    assert most <= 4


def test_what_fails_to_be_made_leaves_what_was_there(tmp_path: Path) -> None:
    place, path = RealFiles(), f"{tmp_path}/whole"
    place.write_atomic(path, [b"old"])

    def broken():
        yield b"new" * 1_000_000
        raise ValueError

    with pytest.raises(ValueError):
        place.write_atomic(path, broken())
    assert place.read(path) == b"old" and place.list(str(tmp_path)) == ["whole"]
