"""`dsms migrate`: folders of all earlier layouts are brought to today's, and a copy is kept."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsms import Engine
from dsms.python_functions import Functions, host
from dsms.recovering.migrating import layout_of
from dsms.storage.catalog import VERSION
from dsms_client.cli import main
from tests.effort import thinned
from tests.folders.play import answers

HERE = Path(__file__).parent / "folders"
FOLDERS = sorted(HERE.glob("*.tar.xz"))


def contents(folder: Path) -> dict[str, str]:
    """Every file's bytes, by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def unpacked(archive: Path, place: Path) -> dict:
    with tarfile.open(archive) as tar:
        tar.extractall(place, filter="data")
    return json.loads((place / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture
def functions() -> Iterator[None]:
    """The folder of functions in Python is named that some of the queries call."""
    host.name(Functions(str(HERE / "functions")))
    yield
    host.close()


@thinned(2)
@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize("archive", FOLDERS, ids=lambda p: p.name.partition(".")[0])
def test_an_older_folder_is_brought_to_todays_layout(archive, tmp_path, capsys):
    asked = unpacked(archive, tmp_path)["stopped"]["asked"]
    folder = tmp_path / "stopped"
    before, old = contents(folder), layout_of(str(folder), None)
    assert main(["migrate", str(folder)]) == 0
    out = capsys.readouterr().out
    backup = tmp_path / "stopped.backup"
    assert out.startswith(f"{folder} was copied to {backup}\n")
    # the catalog's leftovers of SQLite come and go
    assert {k: v for k, v in contents(backup).items() if "sqlite" not in k} == {
        k: v for k, v in before.items() if "sqlite" not in k
    }
    new = layout_of(str(folder), None)
    assert (new.catalog, new.older, new.legacy) == (VERSION, {}, False)
    for tag, version in old.older.items():
        assert f"state: {tag}, version {version}, is of today's now\n" in out
    if old.legacy:
        assert "under names of modules" in out
    for place in (folder, backup):  # the way back opens, too
        engine = Engine(str(place))
        for text, answer, *user in asked[:3]:
            assert answers(engine, text, *user) == answer, (text, user)
        engine.close()
    assert main(["migrate", str(folder)]) == 2
    assert "DS424" in capsys.readouterr().err


def test_a_dry_run_changes_nothing(tmp_path, capsys):
    unpacked(FOLDERS[0].with_name("tagged.tar.xz"), tmp_path)
    folder = tmp_path / "killed"
    before = contents(folder)
    assert main(["migrate", str(folder), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "recovered: the checkpoint at record" in out and "catalog: layout 2, now" in out
    assert out.endswith(f"that was a dry run: {folder} is as it was\n")
    assert contents(folder) == before and not (tmp_path / "killed.backup").exists()


def test_what_is_no_folder_or_in_use_or_damaged_stays_as_it_is(tmp_path, capsys):
    assert main(["migrate", str(tmp_path)]) == 2
    folder = tmp_path / "data"
    engine = Engine(str(folder))
    engine.execute("CREATE STREAM s (k INT)")
    assert main(["migrate", str(folder)]) == 2
    engine.close()
    assert main(["migrate", "--dry-run"]) == 2
    config = tmp_path / "dsms.toml"
    config.write_text(f'data = "{folder}"\narchive = "/elsewhere"\n')
    assert main(["migrate", "--config", str(config), "--dry-run"]) == 2
    errors = capsys.readouterr().err
    assert [code for code in ("DS553", "DS542", "DS640") if code not in errors] == []
    manifest = folder / "journal" / "manifest.json"
    manifest.write_text("{}")
    assert main(["migrate", str(folder), "--dry-run"]) == 2
    assert "DS545" in capsys.readouterr().err
    assert manifest.read_text() == "{}" and not (tmp_path / "data.backup").exists()


def test_one_of_today_is_told_to_be_so(tmp_path, capsys):
    folder = tmp_path / "data"
    engine = Engine(str(folder))
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.ingest("s", [(1, 1_000_000)])
    engine.close()
    assert main(["migrate", str(folder), "--backup", str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out
    assert "it has 1 streams, 0 tables, 0 queries\n" in out
    assert out.endswith("it was in today's layout already\n")
