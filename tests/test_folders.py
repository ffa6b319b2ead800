"""Names of streams as names of folders: none leads elsewhere, and all of them come back after a
crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dsms
from dsms.storage.folders import folder_name

NAMES = (".", "..", "../up", "a", "a/landing", ".x", "é ~")
CHILD = """
import os, sys, dsms
engine = dsms.Engine(sys.argv[1])
for name in sys.argv[2:]:
    engine.execute(f'CREATE STREAM "{name}" (x INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h ARCHIVE FOR 1 day')
    engine.ingest(name, [[i, i * 1_000_000] for i in range(100)])
os._exit(9)
"""  # noqa: E501


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("flights", "flights"),
        ("a.b c", "a.b c"),
        (".", "~2e"),
        ("..", "~2e."),
        ("../up", "~2e.~2fup"),
        ("~", "~7e"),
    ],
)
def test_what_could_lead_elsewhere_is_written_out(name: str, folder: str) -> None:
    assert folder_name(name) == folder


def test_streams_of_any_name_come_back_with_their_windows(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(data), *NAMES], capture_output=True, text=True
    )
    assert ended.returncode == 9, ended.stderr
    engine = dsms.Engine(str(data))
    for name in NAMES:
        (counted,) = engine.execute(f'SELECT COUNT(*) AS n FROM "{name}" [RANGE 59 min]')
        assert counted.data.to_pylist() == [{"n": 99}], name
    engine.close()
    assert {p.name for p in tmp_path.iterdir()} == {"data"}
    assert {p.name for p in (data / "archive").iterdir()} == {folder_name(name) for name in NAMES}
