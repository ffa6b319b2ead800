"""Archives are read with the rights of who asks, too.  (Without Spark.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from dsms.errors import DsmsError
from tests.test_archive_seam import S, archiving, ask

DDL = (
    "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t ARCHIVE CLUSTER BY k UPDATE "
    "EVERY 10 s"
)
SEEN = [(second % 3, second, second * S) for second in range(90)]
QUERIES = [
    "SELECT k, v FROM ARCHIVE s ORDER BY v",
    "SELECT k, v FROM ARCHIVE s WHERE k < 2 ORDER BY v",
    "SELECT COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 80 s ARCHIVE]",
    "SELECT v FROM s [ROWS 40 ARCHIVE] ORDER BY v",
    "SELECT k, MAX(v) AS x FROM s [RANGE UNBOUNDED ARCHIVE] GROUP BY k ORDER BY k",
    "SELECT k, v FROM s [PARTITION BY k ROWS 2 ARCHIVE] ORDER BY v",
    "SELECT v FROM s [RANGE 60 s ARCHIVE] a WHERE NOT EXISTS (SELECT * FROM s [RANGE 9 s ARCHIVE] "
    "b WHERE a.v = b.v)",
]


def filled(folder: Path, whole: bool):
    engine, runner = archiving(folder, DDL)
    rows = [row for row in SEEN if whole or row[1] % 3 != 1]
    for first in range(0, 90, 10):
        engine.ingest("s", [list(row) for row in rows if first <= row[1] < first + 10])
        engine.heartbeat("s", (first + 10) * S - 1)
    return engine, runner


@pytest.mark.parametrize("text", QUERIES)
def test_an_archive_in_part(text: str, tmp_path: Path):
    whole, _ = filled(tmp_path / "whole", True)
    part, _ = filled(tmp_path / "part", False)
    whole.execute("CREATE USER alice TOKEN; GRANT SELECT ON s TO alice WHERE k <> 1")
    (rows,) = whole.execute(text, user="alice")
    found = list(zip(*(c.to_pylist() for c in rows.data.columns), strict=True)), rows.as_of
    assert found == ask(part, text)
    assert found[0] != ask(whole, text)[0]


def test_nobody_goes_on_with_the_archive_of_another(tmp_path: Path):
    engine, _ = filled(tmp_path, True)
    engine.execute("CREATE USER alice TOKEN; GRANT CREATE ON ALL TO alice; DROP STREAM s")
    with pytest.raises(DsmsError, match=r"DS670.*the archive of an earlier s is there"):
        engine.execute(DDL, user="alice")
    engine.execute(DDL)
