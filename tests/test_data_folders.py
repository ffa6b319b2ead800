"""Data folders of all earlier layouts open, and go on with the numbers and answers that they
should.

`tests/folders/make.py` made them, each with the code of its time; see CONTRIBUTING, "A stored
class".
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsms import Engine
from dsms.python_functions import Functions, host
from dsms.storage import records
from dsms.storage.files import RealFiles
from dsms.storage.log import read_log
from tests.effort import thinned
from tests.folders.play import answers, play, results

HERE = Path(__file__).parent / "folders"
FOLDERS = sorted(HERE.glob("*.tar.xz"))
LONG = 120.0  # seconds that no call of a function in Python takes


@pytest.fixture(scope="module", autouse=True)
def _functions() -> Iterator[None]:
    """Those in Python that some queries call."""
    host.name(Functions(str(HERE / "functions"), LONG))
    yield
    host.close()


def test_there_are_folders():
    assert FOLDERS


def test_frames_that_were_written_down_together_stand_in_a_folder(tmp_path: Path) -> None:
    """Behind its checkpoint, so that they are applied again."""
    with tarfile.open(HERE / "users.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    logs = sorted((tmp_path / "killed/journal/streams/s").glob("*.log"))
    found = [r.kind for r in read_log(RealFiles(), str(logs[-1]), int(logs[-1].stem))]
    assert found.count(records.GROUP) > 3


@thinned()
@pytest.mark.parametrize("kind", ["killed", "stopped"])
@pytest.mark.parametrize("archive", FOLDERS, ids=lambda p: p.name.partition(".")[0])
def test_an_older_folder_goes_on(archive: Path, kind: str, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    expected = json.loads((tmp_path / "expected.json").read_text(encoding="utf-8"))[kind]
    folder = str(tmp_path / kind)
    engine = Engine(folder)
    assert engine.saver is not None and engine.saver.recovered.checkpoint > 0
    assert engine.saver.recovered.notes == []
    for text, answer, *user in expected["asked"]:
        assert answers(engine, text, *user) == answer, (text, user)
    half = len(expected["after"]) // 2
    play(engine, expected["after"][:half])
    engine.close()
    again = Engine(folder)  # now from a checkpoint of the present layout
    play(again, expected["after"][half:])
    told = results(again, list(expected["results"]))
    for query, rows in expected["results"].items():
        rows = [r for r in rows if not r[2].startswith("DS9")]  # faults of the code of that time
        assert told[query][: len(rows)] == rows, query
        # today the end of a stream answers boundaries until its last row has left the windows, and
        # look-ups say that they have no subscribers
        more = told[query][len(rows) :]
        assert [r for r in more if r[1] not in ("result", "DS329")] == [], query
    again.close()
    shutil.rmtree(tmp_path)
