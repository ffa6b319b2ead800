"""A stream that takes late rows of another owner's stream can be dropped by its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError

COLUMNS = "(v INT, t TIMESTAMP) TIMESTAMP BY t"
DECLARED = """
CREATE USER alice TOKEN; CREATE USER bob TOKEN; GRANT CREATE ON ALL TO alice, bob;
"""


def declared(data: Path | None = None) -> Engine:
    """Late rows of bob's `s`, and of alice's `mine`, go to alice's `l`."""
    engine = Engine(None if data is None else str(data))
    engine.execute(DECLARED)
    engine.execute(f"CREATE STREAM l {COLUMNS}; GRANT INSERT ON l TO bob", user="alice")
    engine.execute(f"CREATE STREAM s {COLUMNS} LATE INTO l", user="bob")
    return engine


def test_an_owner_drops_it_and_late_rows_of_others_are_dropped() -> None:
    engine = declared()
    engine.ingest("s", [(1, 10), (2, 5)])
    assert engine.stats()["streams"]["l"]["accepted"] == 1
    (done,) = engine.execute("DROP STREAM l", user="alice")
    assert done.warnings == ("late rows of streams of others are dropped from now on",)
    report = engine.ingest("s", [(3, 5), (4, 11)])
    assert (report.accepted, report.late) == (1, 1)
    (shown,) = engine.execute("DESCRIBE s")
    assert "LATE INTO" not in str(shown.data.to_pylist())
    # another stream of that name has nothing to do with it
    engine.execute(f"CREATE STREAM l {COLUMNS}", user="alice")
    engine.ingest("s", [(5, 5)])
    assert engine.stats()["streams"]["l"]["accepted"] == 0


def test_who_sees_the_other_stream_is_told_its_name() -> None:
    engine = declared()
    (done,) = engine.execute("DROP STREAM l")
    assert done.warnings == ("late rows of s are dropped from now on",)


def test_ones_own_streams_go_first() -> None:
    engine = declared()
    engine.execute(f"CREATE STREAM mine {COLUMNS} LATE INTO l", user="alice")
    with pytest.raises(DsmsError, match="late rows of mine go into stream l") as problem:
        engine.execute("DROP STREAM l", user="alice")
    assert problem.value.code == "DS405"
    engine.execute("DROP STREAM mine; DROP STREAM l", user="alice")


def test_without_users_it_is_as_ever() -> None:
    engine = Engine()
    engine.execute(f"CREATE STREAM l {COLUMNS}; CREATE STREAM s {COLUMNS} LATE INTO l")
    with pytest.raises(DsmsError, match="late rows of s go into stream l"):
        engine.execute("DROP STREAM l")


@pytest.mark.parametrize("how", ["closed", "checkpoint before", "crash"])
def test_it_stays_so_after_a_restart(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "data"
    engine = declared(folder)
    engine.ingest("s", [(1, 10), (2, 5)])
    if how == "checkpoint before":
        assert engine.saver is not None and engine.saver.checkpoint()
    engine.execute("DROP STREAM l", user="alice")
    engine.execute(f"CREATE STREAM l {COLUMNS}", user="alice")
    engine.ingest("s", [(3, 5)])
    if how != "closed":
        engine.sync()
        shutil.copytree(folder, tmp_path / "copy")
        folder = tmp_path / "copy"
    engine.close()
    again = Engine(str(folder))
    assert again.ingest("s", [(4, 5)]).late == 1
    streams = again.stats()["streams"]
    assert (streams["l"]["accepted"], streams["s"]["late"]) == (0, 3)
    assert again.runtime.catalog.streams["s"].late_into is None
    again.close()
