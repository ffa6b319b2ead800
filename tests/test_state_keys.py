"""Data folders with a key: nothing can be read in them, nothing changed unnoticed; and the key
itself."""

from __future__ import annotations

import base64
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dsms import state_key
from dsms.errors import DsmsError, UsageError
from dsms.storage.encrypted_catalog import LEAST
from dsms.storage.rekeying import rekey
from dsms.storage.working import AtWork
from tests.effort import effort
from tests.encrypted_world import (
    DECLARED,
    MARK,
    answers,
    copied,
    files,
    kill,
    opened,
    send,
    shows,
    used,
)
from tests.keys import KEY, OTHER


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return used(tmp_path_factory.mktemp("encrypted") / "data")


@pytest.fixture(scope="module")
def wanted(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list:
    engine = opened(used(tmp_path_factory.mktemp("plain") / "data", None), None)
    try:
        return answers(engine)
    finally:
        kill(engine)


# ---------------------------------------------------------------- what lies in the files


def test_no_file_shows_rows_names_or_statements(folder, tmp_path):
    found = files(folder)
    kinds = {Path(name).suffix for name in found}
    assert kinds >= {".json", ".sqlite", ".state", ".arrow", ".log"}
    assert [name for name, data in found.items() if shows(data)] == []
    plain = {name for name, data in files(used(tmp_path / "p", None)).items() if shows(data)}
    assert {Path(name).suffix for name in plain} >= {".sqlite", ".state", ".log", ".json"}


def test_nothing_that_is_written_on_the_way_shows_them_either(tmp_path, monkeypatch):
    """Temporary files, too."""
    import os

    seen = bytearray()
    write, rename = os.pwritev, os.rename

    def pwritev(fd, buffers, at):
        seen.extend(b"".join(map(bytes, buffers)))
        return write(fd, buffers, at)

    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(os, "rename", lambda a, b: rename(a, b))
    used(tmp_path / "data")
    assert len(seen) > 10_000 and not shows(bytes(seen))


def test_what_the_engine_was_at_when_it_died_shows_no_names(tmp_path):
    folder = tmp_path / "data"
    for turn in range(3):
        engine = opened(folder)
        assert engine.saver is not None and engine.saver.at_work is not None
        assert turn < 2 or engine.saver.at_work.queries == {f"{MARK}q"}
        if not turn:
            engine.execute(DECLARED)
        engine.saver.at_work.record(7)
        engine.saver.at_work.query(f"{MARK}q")
        kill(engine)
        assert [name for name, data in files(folder).items() if shows(data)] == []


def test_a_record_that_is_set_aside_is_encrypted_and_can_be_decrypted(tmp_path):
    folder = tmp_path / "data"
    engine = opened(folder)
    engine.execute(DECLARED)
    send(engine, 0, 3)
    assert engine.saver is not None
    last = engine.saver.durable.journal.lsn
    cover = engine.saver.at_work.cover
    kill(engine)
    for _ in range(2):  # it comes so far and dies
        at_work = AtWork(str(folder), cover=cover)
        at_work.open()
        at_work.record(last)
    engine = opened(folder)
    assert engine.saver is not None
    assert any("is kept in" in note for note in engine.saver.recovered.notes)
    kill(engine)
    kept = folder / "set-aside" / f"record-{last}.bin"
    assert not shows(kept.read_bytes())
    rekey(str(folder), KEY, None)
    assert shows(kept.read_bytes())


def test_it_comes_back(folder, wanted, tmp_path):
    engine = opened(copied(folder, tmp_path / "data"))
    assert engine.saver is not None and engine.saver.recovered.notes == []
    assert answers(engine) == wanted
    engine.close()
    engine = opened(tmp_path / "data")
    assert answers(engine) == wanted
    kill(engine)


# ---------------------------------------------------------------- what becomes of files


def noticed(folder: Path, wanted: list) -> bool:
    """Whether the engine says that something is wrong, and if not, answers as ever."""
    try:
        engine = opened(folder)
    except DsmsError as error:
        return error.code in ("DS541", "DS545", "DS548", "DS549", "DS554")
    assert engine.saver is not None
    try:
        if engine.saver.recovered.notes:
            return True
        assert answers(engine) == wanted
        return False
    finally:
        kill(engine)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a bit": lambda d: d[: len(d) // 2] + bytes([d[len(d) // 2] ^ 4]) + d[len(d) // 2 + 1 :],
    "half": lambda d: d[: len(d) // 2],
    "empty": lambda d: b"",
}
# what may be lost without harm: notes of what is known, where everything is there
HARMLESS = ("synced-", "at-work")


@pytest.mark.parametrize("how", CHANGES)
def test_whatever_is_changed_is_noticed(folder, wanted, tmp_path, how):
    names = [n for n in files(folder) if not n.split("/")[-1].startswith(HARMLESS)]
    first = next(n for n in names if n.endswith(".arrow"))
    names = names if effort() else [n for n in names if not n.endswith(".arrow") or n == first]
    assert len(names) >= 7
    for k, name in enumerate(names):
        changed = copied(folder, tmp_path / str(k))
        (changed / name).write_bytes(CHANGES[how]((changed / name).read_bytes()))
        known = noticed(changed, wanted)
        # (a log, or state, from before all that is needed may be as it likes)
        assert known or _needless(folder, name), name
        shutil.rmtree(changed)


def _needless(folder: Path, name: str) -> bool:
    """Whether all is well without the file."""
    states = sorted(n for n in files(folder) if n.endswith(".state"))
    logs = sorted(n for n in files(folder) if n.endswith(".log") and "streams" in n)
    newest = states[-1].split("-")[-1].split(".")[0]
    if name.endswith(".arrow"):  # the rows are in the log, too
        return name.split("/")[-1][:20] > newest
    return name in states[:-1] or (name in logs and name != logs[-1]) or name.endswith("-shm")


def test_files_that_changed_places_are_noticed(folder, wanted, tmp_path):
    for k, kind in enumerate((".state", ".arrow")):
        changed = copied(folder, tmp_path / str(k))
        a, b = [changed / n for n in files(folder) if n.endswith(kind)][:2]
        a.rename(tmp_path / "a"), b.rename(a), (tmp_path / "a").rename(b)
        assert noticed(changed, wanted)


def test_files_of_another_folder_with_the_same_key_are_noticed(folder, wanted, tmp_path):
    other = files(used(tmp_path / "other"))
    same = [n for n in files(folder) if n in other and not n.split("/")[-1].startswith(HARMLESS)]
    assert {Path(n).suffix for n in same} >= {".json", ".sqlite", ".state", ".arrow", ".log"}
    for k, name in enumerate(same):
        changed = copied(folder, tmp_path / str(k))
        (changed / name).write_bytes(other[name])
        assert noticed(changed, wanted) or _needless(folder, name), name
        shutil.rmtree(changed)


def test_older_versions_of_files_are_noticed_or_lead_to_the_same_state(tmp_path):
    folder = tmp_path / "data"
    used(folder)
    older = copied(folder, tmp_path / "older")
    engine = opened(folder)
    send(engine, 90)
    engine.execute(f"INSERT INTO {MARK}r VALUES ('{MARK}3', 3)")
    assert engine.saver is not None and engine.saver.checkpoint()
    send(engine, 120)
    wanted = answers(engine)
    kill(engine)
    was, now, found = files(older), files(folder), {}
    for k, name in enumerate(n for n in now if n in was and now[n] != was[n]):
        changed = copied(folder, tmp_path / str(k))
        (changed / name).write_bytes(was[name])
        found[name] = noticed(changed, wanted)  # where it is not, the answers are the same
    assert found["catalog.sqlite"] and "journal/manifest.json" in found


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM entry WHERE id = 2",
        "DELETE FROM entry WHERE id = 1",
        "UPDATE entry SET kind = 1 - kind WHERE id = 2",
        "UPDATE entry SET body = (SELECT body FROM entry WHERE id = 3) WHERE id = 2",
        "UPDATE entry SET body = zeroblob(5) WHERE id = 2",
        "UPDATE entry SET body = 'text' WHERE id = 2",
        "DELETE FROM entry",
        "DELETE FROM entry WHERE id = (SELECT MAX(id) - 5 FROM entry)",
        "DELETE FROM entry WHERE id > 8",
        "DROP TABLE entry",
        "INSERT INTO entry SELECT MAX(id) + 1, kind, body FROM entry",
    ],
)
def test_entries_of_the_catalog_that_were_tampered_with_are_noticed(folder, tmp_path, change):
    changed = copied(folder, tmp_path / "data")
    with sqlite3.connect(changed / "catalog.sqlite") as db:
        db.execute(change)
    db.close()
    before = files(changed / "journal")
    with pytest.raises(UsageError, match=r"DS54[15]: .*catalog\.sqlite"):
        opened(changed)
    assert files(changed / "journal") == before


def test_a_catalog_of_many_changes_is_written_anew_and_comes_back(tmp_path):
    engine = opened(tmp_path / "data")
    engine.execute("CREATE TABLE r (k INT PRIMARY KEY, v STRING)")
    text = "x" * (LEAST // 40)
    for i in range(100):
        engine.execute(f"INSERT INTO r VALUES ({i}, '{text}')")
    with pytest.raises(DsmsError):
        engine.execute("INSERT INTO r VALUES (5, 'again')")
    kill(engine)
    with sqlite3.connect(tmp_path / "data" / "catalog.sqlite") as db:
        kinds = [k for (k,) in db.execute("SELECT kind FROM entry ORDER BY id")]
    db.close()
    assert 1 in kinds and len(kinds) < 100
    engine = opened(tmp_path / "data")
    (found,) = engine.execute("SELECT COUNT(*) AS n, MIN(v) AS v FROM r")
    assert found.data.to_pylist() == [{"n": 100, "v": text}]
    kill(engine)


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("folder_key", "given", "code"),
    [(KEY, None, "DS547"), (KEY, OTHER, "DS548"), (None, KEY, "DS549")],
)
def test_another_key_is_refused_before_anything_is_touched(tmp_path, folder_key, given, code):
    folder = used(tmp_path / "data", folder_key)
    before = files(folder)
    for _ in range(2):
        with pytest.raises(UsageError, match=code):
            opened(folder, given)
    assert files(folder) == before
    kill(opened(folder, folder_key))


def test_an_encrypted_folder_without_its_key_file_is_no_plain_one(folder, tmp_path):
    changed = copied(folder, tmp_path / "data")
    (changed / "key.json").unlink()
    for key, code in ((None, "DS547"), (KEY, "DS549")):
        with pytest.raises(UsageError, match=code):
            opened(changed, key)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version": 1, "folder": 5}', '{"version": 2}', "\xff"]
)
def test_a_damaged_key_file_is_named(folder, tmp_path, text):
    changed = copied(folder, tmp_path / "data")
    (changed / "key.json").write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=r"DS54[56]: .*key\.json"):
        opened(changed)


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        KEY.hex().encode(),
        KEY.hex().upper().encode() + b"\n",
        base64.b64encode(KEY) + b"\n",
        base64.urlsafe_b64encode(KEY),
        base64.encodebytes(KEY * 3),
    ],
)
def test_a_key_is_read_as_it_is_or_in_text(tmp_path, written):
    (tmp_path / "k").write_bytes(written)
    assert state_key.read(str(tmp_path / "k")) in (KEY, KEY * 3)


@pytest.mark.parametrize(
    "written",
    [b"", b"secret\n", KEY[:31], KEY.hex()[:62].encode(), b"0" * 64, bytes(32), KEY * 200],
)
def test_what_is_no_key_is_refused(tmp_path, written):
    (tmp_path / "k").write_bytes(written)
    with pytest.raises(UsageError, match="DS556"):
        state_key.read(str(tmp_path / "k"))


def test_an_engine_takes_no_short_key(tmp_path):
    with pytest.raises(UsageError, match="DS556"):
        opened(tmp_path / "data", b"secret")
    assert list((tmp_path / "data").iterdir()) == []
