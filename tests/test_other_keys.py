"""Another key for a data folder, and the command that makes and changes keys."""

from __future__ import annotations

import json
import shutil
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from dsms import state_key
from dsms.errors import UsageError
from dsms.storage import rekeying
from dsms.storage.rekeying import rekey
from dsms_client.cli import main
from tests.effort import effort
from tests.encrypted_world import MARK, answers, copied, files, kill, opened, send, shows, used
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


# ---------------------------------------------------------------- other keys


@pytest.mark.parametrize(("old", "new"), [(None, KEY), (KEY, OTHER), (KEY, None), (KEY, KEY)])
def test_a_folder_gets_another_key(tmp_path, wanted, old, new):
    folder = used(tmp_path / "data", old)
    (folder / "archive").mkdir()
    (folder / "archive" / "a.parquet").write_bytes(b"not ours")
    before = files(folder)
    rekey(str(folder), old, new)
    after = files(folder)
    assert after.pop("archive/a.parquet") == b"not ours"
    assert new is None or [name for name, data in after.items() if shows(data)] == []
    assert not set(after) - set(before) - {"key.json"}
    assert all(after[n] != before[n] for n in after if n.endswith((".state", ".arrow", ".log")))
    assert (folder / "key.json").exists() == (new is not None)
    if new != old:
        with pytest.raises(UsageError, match=r"DS54[789]"):
            opened(folder, old)
    engine = opened(folder, new)
    assert engine.saver is not None and engine.saver.recovered.notes == []
    assert answers(engine) == wanted
    kill(engine)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("name", ["mkdir", "rename", "remove", "rmdir", "fsync", "rmtree"])
def test_a_change_of_key_that_is_interrupted_has_happened_or_has_not(
    folder, wanted, tmp_path, monkeypatch, name
):
    """At each operation of that kind."""
    place = shutil if name == "rmtree" else rekeying.os
    plain, ends = getattr(place, name), set()
    for at in range(0, 60, 1 if effort() else 5):
        copy, count = copied(folder, tmp_path / f"{name}{at}"), 0

        def failing(*args, at=at, **options):
            nonlocal count
            count += 1
            if count == at + 1:
                raise Killed
            return plain(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(place, name, failing)
            with suppress(Killed):
                rekey(str(copy), KEY, OTHER)
        if count <= at:
            break
        key = _key_of(copy)
        ends.add(key)
        engine = opened(copy, key)
        assert engine.saver is not None and engine.saver.recovered.notes == []
        assert answers(engine) == wanted
        kill(engine)
        assert not {p.name for p in copy.iterdir()} & {"rekey", "rekeyed"}
        shutil.rmtree(copy)
    assert ends


def _key_of(folder: Path) -> bytes:
    """The one key that opens it."""
    for key, other in ((KEY, OTHER), (OTHER, KEY)):
        try:
            kill(opened(folder, key))
        except UsageError as error:
            assert error.code == "DS548"
            continue
        with pytest.raises(UsageError, match="DS548"):
            opened(folder, other)
        return key
    raise AssertionError("no key opens it")


def test_a_folder_that_is_in_use_or_damaged_keeps_its_key(folder, tmp_path):
    copy = copied(folder, tmp_path / "data")
    engine = opened(copy)
    with pytest.raises(UsageError, match="DS542"):
        rekey(str(copy), KEY, OTHER)
    kill(engine)
    newest = max(copy.rglob("*.state"))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-1])
    before = files(copy)
    with pytest.raises(UsageError, match="DS545"):
        rekey(str(copy), KEY, OTHER)
    assert {n: d for n, d in files(copy).items() if "catalog" not in n} == {
        n: d for n, d in before.items() if "catalog" not in n
    }
    newest.write_bytes(whole)
    with pytest.raises(UsageError, match="DS548"):
        rekey(str(copy), OTHER, KEY)
    with pytest.raises(UsageError, match="DS553"):
        rekey(str(tmp_path), None, KEY)
    kill(opened(copy))


def test_nobody_opens_a_folder_whose_key_is_being_changed(folder, tmp_path):
    copy = copied(folder, tmp_path / "data")
    with rekeying.alone(str(copy)), pytest.raises(UsageError, match="DS542"):
        opened(copy)
    kill(opened(copy))


def test_damage_in_a_log_stays_damage_under_another_key(folder, tmp_path):
    copy = copied(folder, tmp_path / "data")
    newest = max(p for p in copy.rglob("*.log") if "streams" in str(p))
    data = bytearray(newest.read_bytes())
    data[len(data) // 3] ^= 1
    newest.write_bytes(data)
    rekey(str(copy), KEY, OTHER)
    engine = opened(copy, OTHER)
    with pytest.raises(UsageError, match=f"DS555: stream {MARK}s takes no rows"):
        send(engine, 100, 1)
    kill(engine)


# ---------------------------------------------------------------- the command


def test_the_command_makes_and_changes_keys(tmp_path, capsys, wanted):
    first, second, data = (str(tmp_path / name) for name in ("a.key", "b.key", "data"))
    used(Path(data), None)
    assert main(["rekey", "--new", first]) == main(["rekey", "--new", second]) == 0
    assert stat.S_IMODE(Path(first).stat().st_mode) == 0o600
    assert main(["rekey", "--new", first]) == 2  # never written over
    assert main(["rekey", data, "--to", first]) == 0
    assert main(["rekey", data, "--from", first, "--to", second]) == 0
    kill(opened(Path(data), state_key.read(second)))
    assert main(["rekey", data, "--from", first, "--decrypt"]) == 2
    assert "DS548" in capsys.readouterr().err
    for wrong in ([], [data], [data, "--from", second], [data, "--to", first, "--decrypt"]):
        assert main(["rekey", *wrong]) == 2
        assert "DS640" in capsys.readouterr().err
    assert main(["rekey", data, "--from", second, "--decrypt"]) == 0
    engine = opened(Path(data), None)
    assert answers(engine) == wanted
    kill(engine)


def test_the_shell_and_its_engine_take_a_key(tmp_path, capsys, monkeypatch):
    key, data = str(tmp_path / "k"), str(tmp_path / "data")
    state_key.write_new(key)
    words = ["shell", "--embedded", "--data", data]
    assert main([*words, "--state-key-file", key, "-c", f"CREATE STREAM {MARK} (v INT)"]) == 0
    assert json.loads((tmp_path / "data" / "key.json").read_text())["version"] == 1
    assert [name for name, found in files(tmp_path / "data").items() if shows(found)] == []
    assert main([*words, "-c", "SHOW STREAMS"]) == 2
    assert "DS547" in capsys.readouterr().err
    monkeypatch.setenv("DSMS_STATE_KEY_FILE", key)
    assert main([*words, "-c", "SHOW STREAMS"]) == 0
    assert MARK in capsys.readouterr().out


def test_what_a_killed_change_of_key_has_left_is_removed(folder, wanted, tmp_path):
    copy = copied(folder, tmp_path / "data")
    (copy / "rekey" / "journal").mkdir(parents=True)
    (copy / "rekey" / "journal" / "manifest.json").write_bytes(b"{}")
    engine = opened(copy)
    assert answers(engine) == wanted and not (copy / "rekey").exists()
    kill(engine)
