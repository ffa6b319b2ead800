"""ALTER STREAM s SET CLOCK where rows or answers are archived."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.settings import Settings

S = 1_000_000
T = 1_700_000_000 * S
YEAR = 365 * 86_400 * S


def test_an_archive_that_has_not_come_so_far_goes_on(tmp_path: Path) -> None:
    engine = Engine(settings=Settings(archive=str(tmp_path)))
    engine.execute("CREATE STREAM s (v INT) RETAIN 20 s SUBWINDOW 1 s ARCHIVE UPDATE EVERY 5 s")
    for k in range(30):
        engine.advance(T + k * S)
        engine.ingest("s", [[k]])
    engine.advance(T + 45 * S)  # which takes rows up to 25 s there
    engine.ingest("s", [[30]])
    some = _rows_landed(tmp_path)
    assert set(range(20)) <= set(some) and 29 not in some
    engine.advance(T + 31 * S)
    engine.execute("ALTER STREAM s SET CLOCK TO NOW")
    for k in range(31, 60):
        engine.advance(T + k * S)
        engine.ingest("s", [[k]])
    assert len(_rows_landed(tmp_path)) > len(some)
    engine.execute("DROP STREAM s")  # all goes to the archive
    assert sorted(_rows_landed(tmp_path)) == list(range(60))


def test_rows_that_wait_to_be_archived_are_handed_on_again(tmp_path: Path) -> None:
    engine = Engine(settings=Settings(archive=str(tmp_path)))
    engine.execute("CREATE STREAM s (v INT) SUBWINDOW 1 s ARCHIVE UPDATE EVERY 1 h")
    for k, at in enumerate((0, 1, 100, 101, 102)):
        engine.advance(T + at * S)
        engine.ingest("s", [[k]])
    assert engine.runtime.archivings["s"].taken >= T + 101 * S and not _rows_landed(tmp_path)
    engine.execute(f"ALTER STREAM s SET CLOCK TO {T // S + 5} s")
    engine.advance(T + 6 * S)
    engine.ingest("s", [[5]])
    engine.execute("DROP STREAM s")
    assert sorted(_rows_landed(tmp_path)) == list(range(6))


def _rows_landed(folder: Path) -> list[int]:
    return [
        v for path in folder.rglob("*.parquet") for v in pq.read_table(path).column("v").to_pylist()
    ]


def test_an_archive_that_is_complete_further_refuses(tmp_path: Path) -> None:
    engine = Engine(settings=Settings(archive=str(tmp_path)))
    engine.execute("CREATE STREAM s (v INT) SUBWINDOW 1 s ARCHIVE UPDATE EVERY 10 s")
    engine.advance(T)
    engine.ingest("s", [[1]])
    engine.advance(T + YEAR)
    with pytest.raises(UsageError, match="is complete up to") as raised:
        engine.execute(f"ALTER STREAM s SET CLOCK TO {T // S + 1} s")
    assert raised.value.code == "DS417" and engine.stamped_after(T + YEAR - 1) == {"s": T + YEAR}


def test_queries_that_are_archived_are_dropped_first(tmp_path: Path) -> None:
    engine = Engine(settings=Settings(archive=str(tmp_path)))
    engine.execute("CREATE STREAM s (v INT); CREATE QUERY q AS SELECT v FROM s [RANGE 1 s] ARCHIVE")
    engine.advance(T + YEAR)
    with pytest.raises(UsageError, match="results of q are archived") as raised:
        engine.execute(f"ALTER STREAM s SET CLOCK TO {T // S} s")
    assert raised.value.code == "DS417"
    engine.execute(f"DROP QUERY q; ALTER STREAM s SET CLOCK TO {T // S} s")
    assert engine.stamped_after(T) == {}
