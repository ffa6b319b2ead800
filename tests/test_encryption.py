"""Bytes under a key: read back, or noticed as not what was written there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

from dsms.errors import UsageError
from dsms.storage import encryption
from dsms.storage.encrypted_files import EncryptedFiles
from dsms.storage.encryption import CHUNK, HEAD, TAG, FolderKey, NotAuthentic, decrypted, encrypted
from dsms.storage.files import Files, RealFiles
from dsms.storage.log import LogWriter, read_log
from tests.faults.simfiles import Crashed, Plan, SimFiles
from tests.keys import KEY, OTHER

A, B = (FolderKey.of(KEY, name) for name in (b"a", b"b"))


def under(files: Files, key: FolderKey = A, folder: str = "") -> EncryptedFiles:
    return EncryptedFiles(files, folder or "/", key)


def written(data: list[bytes], name: str = "x", key: FolderKey = A) -> bytearray:
    return bytearray(b"".join(encrypted(key, name, data)))


# ---------------------------------------------------------------- whole files


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 5])
def test_a_file_comes_back_however_it_was_cut(size):
    random, data = Random(size), Random(size).randbytes(size)
    cuts = sorted(random.randrange(size + 1) for _ in range(5))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    assert decrypted(A, "x", written(pieces)).to_pybytes() == data
    assert decrypted(A, "x", written([data])).to_pybytes() == data


def test_a_file_of_arrays_is_aligned():
    found = decrypted(A, "x", written([b"123"]))
    assert isinstance(found, pa.Buffer) and found.address % 64 == 0


BIG = Random(5).randbytes(2 * CHUNK + 100)
CHANGES: dict[str, Callable[[bytearray], object]] = {
    "a bit of the mark": lambda d: d.__setitem__(0, d[0] ^ 1),
    "a bit of the salt": lambda d: d.__setitem__(10, d[10] ^ 1),
    "a bit": lambda d: d.__setitem__(HEAD + CHUNK, d[HEAD + CHUNK] ^ 1),
    "a bit of the tag": lambda d: d.__setitem__(-1, d[-1] ^ 1),
    "cut": lambda d: d.__delitem__(slice(-1, None)),
    "cut between chunks": lambda d: d.__delitem__(slice(HEAD + 2 * (CHUNK + TAG), None)),
    "cut to the head": lambda d: d.__delitem__(slice(HEAD, None)),
    "empty": lambda d: d.clear(),
    "longer": lambda d: d.extend(bytes(100)),
    "chunks swapped": lambda d: d.__setitem__(
        slice(HEAD, None),
        d[HEAD + CHUNK + TAG : HEAD + 2 * (CHUNK + TAG)]
        + d[HEAD : HEAD + CHUNK + TAG]
        + d[HEAD + 2 * (CHUNK + TAG) :],
    ),
    "a chunk of another version": lambda d: d.__setitem__(
        slice(HEAD, HEAD + CHUNK), written([BIG])[HEAD : HEAD + CHUNK]
    ),
}


@pytest.mark.parametrize("how", CHANGES)
def test_whatever_becomes_of_a_file_is_noticed(how):
    data = written([BIG])
    CHANGES[how](data)
    with pytest.raises(NotAuthentic):
        decrypted(A, "x", data)


@pytest.mark.parametrize(("name", "key"), [("y", A), ("x", B), ("x", FolderKey.of(OTHER, b"a"))])
def test_a_file_of_another_place_folder_or_key_is_none(name, key):
    with pytest.raises(NotAuthentic):
        decrypted(key, name, written([b"rows"]))


def test_nothing_is_encrypted_twice_alike():
    assert written([b"rows"]) != written([b"rows"])
    secret = A.secret("log")
    nonces = {secret.sealed(b"rows")[:12] for _ in range(1000)}
    assert len(nonces) == 1000


def test_a_key_does_not_show():
    assert KEY.hex() not in repr(A) and A.root.hex() not in repr(A) and str(A.root) not in repr(A)


def test_without_the_library_it_says_what_to_install(monkeypatch):
    import sys

    for name in [n for n in sys.modules if n.startswith("cryptography")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"DS556: .*cryptography") as caught:
        FolderKey.of(KEY, b"a")
    assert caught.value.hint == encryption.INSTALL


# ---------------------------------------------------------------- logs


def log(files: Files, path: str = "/1.log", over: str | None = None, count: int = 9) -> LogWriter:
    out = LogWriter(files, path, over)
    for i in range(1, count + 1):
        out.append(i, i % 3, [b"row %d " % i * i, pa.py_buffer(b"of arrow"), b""])
    return out


def numbers(files: Files, path: str = "/1.log") -> list[int]:
    return [r.lsn for r in read_log(files, path)]


def frames(data: bytearray) -> list[int]:
    """Where the frames of a log begin."""
    return [i for i in range(len(data)) if data[i : i + 4] == b"dsF1"]


def test_a_log_comes_back():
    plain, files = SimFiles(), SimFiles()
    log(plain), log(under(files))
    want, got = read_log(plain, "/1.log"), read_log(under(files), "/1.log")
    told = [[(r.lsn, r.kind, bytes(r.payload)) for r in scan] for scan in (want, got)]
    assert told[0] == told[1] and len(told[0]) == 9
    assert not got.torn and not got.foreign
    assert b"row" not in files.names["/1.log"].data


def test_a_long_record_is_several_frames(monkeypatch):
    monkeypatch.setattr("dsms.storage.encrypted_files.MOST", 10)
    files = SimFiles()
    log(under(files), count=3)
    assert numbers(under(files)) == [1, 2, 3]
    assert len(frames(files.names["/1.log"].data)) > 12


@pytest.mark.parametrize("at", [0, 4, 8, 20, -1])
def test_a_frame_that_was_changed_is_missing_and_no_other(at):
    files = SimFiles()
    log(under(files))
    data = files.names["/1.log"].data
    starts = [*frames(data), len(data)]
    data[starts[3 if at >= 0 else 4] + at] ^= 1
    scan = read_log(under(files), "/1.log")
    assert [r.lsn for r in scan] == [1, 2, 3, 5, 6, 7, 8, 9] and scan.torn


def test_frames_that_were_swapped_or_repeated_are_none():
    files = SimFiles()
    log(under(files), count=4)
    data = files.names["/1.log"].data
    starts = [*frames(data), len(data)]
    first, second, *rest = (bytes(data[a:b]) for a, b in pairwise(starts))
    for kept, want in (
        ([second, first, *rest], [3, 4]),
        ([first, first, second, *rest], [1]),
        ([second, *rest], []),
        ([first, *rest], [1]),
    ):
        data[:] = b"".join(kept)
        assert numbers(under(files)) == want


@pytest.mark.parametrize("key", [B, FolderKey.of(OTHER, b"a")])
def test_a_log_of_another_folder_key_or_name_holds_nothing(key):
    files = SimFiles()
    log(under(files))
    assert numbers(under(files, key)) == []
    files.names["/2.log"] = files.names["/1.log"]
    assert numbers(under(files), "/2.log") == []
    assert read_log(under(files, key), "/1.log").torn


def test_a_log_that_begins_like_none_is_foreign():
    files = SimFiles()
    log(under(files))
    files.names["/1.log"].data[0] ^= 1
    scan = read_log(under(files), "/1.log")
    assert scan.foreign and not scan.records
    files.names["/1.log"].data[:] = bytes(100)
    scan = read_log(under(files), "/1.log")
    assert scan.torn and not scan.foreign


def test_what_is_left_of_an_older_log_is_not_its_own():
    files = SimFiles()
    log(under(files))
    log(under(files), "/2.log", over="/1.log", count=2)
    scan = read_log(under(files), "/2.log")
    assert [r.lsn for r in scan] == [1, 2] and scan.torn


def test_after_a_write_that_failed_the_next_record_takes_its_place():
    files = SimFiles()
    out = log(under(files), count=2)
    files.plan.room = 30
    with pytest.raises(UsageError, match="DS550"):
        out.append(3, 0, [b"x" * 100])
    files.plan.room = None
    failed = bytes(files.names["/1.log"].data[out.position :])
    out.append(3, 0, [b"x" * 100])
    assert numbers(under(files)) == [1, 2, 3]
    assert failed == b"" and not read_log(under(files), "/1.log").torn


@pytest.mark.parametrize("kind", ["kill", "power"])
def test_a_crash_leaves_whole_records(kind):
    for at in range(30):
        files = SimFiles(Plan(at, None, after=bool(at % 2)))
        synced = 0
        try:
            out = LogWriter(under(files), "/1.log")
            for i in range(1, 9):
                out.append(i, 0, [b"row" * i])
                synced = out.sync() if i % 3 == 0 else synced
        except Crashed:
            pass
        after = files.crash(kind, Random(at))
        found = numbers(under(after)) if after.exists("/1.log") else []
        assert found[:synced] == list(range(1, synced + 1)) or kind == "power"
        assert found == sorted(set(found))


def test_a_folder_that_was_moved_is_the_same(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    files = under(RealFiles(), folder=str(tmp_path / "a"))
    files.write_atomic(f"{tmp_path}/a/m.json", [b"{}"])
    log(files, f"{tmp_path}/a/1.log").close()
    for file in (tmp_path / "a").iterdir():
        file.rename(tmp_path / "b" / file.name)
    moved = under(RealFiles(), folder=str(tmp_path / "b"))
    assert moved.read(f"{tmp_path}/b/m.json") == b"{}"
    assert numbers(moved, f"{tmp_path}/b/1.log") == list(range(1, 10))
