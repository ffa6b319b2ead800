"""CREATE OR REPLACE QUERY of what other queries read, and of what reads others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dsms.api import Done
from dsms.engine import Engine
from dsms.errors import DsmsError
from tests.changing_world import Reading, come, engine
from tests.oracle.values import canons
from tests.test_replacing import GROUPED, SUMS, replaced

# ---------------------------------------------------------------- queries over queries


def test_one_whose_answer_others_read_stays() -> None:
    db = engine(GROUPED)
    db.execute("CREATE QUERY r AS SELECT k FROM q WHERE n > 1")
    come(db, 0, 6)
    for text, code in (
        (f"CREATE OR REPLACE QUERY q AS {SUMS}", "DS438"),
        ("CREATE OR REPLACE QUERY r AS SELECT k FROM r", "DS438"),
        ("PAUSE QUERY q", "DS431"),
        ("ALTER QUERY q RENAME TO z", "DS433"),
    ):
        with pytest.raises(DsmsError, match=code):
            db.execute(text)
    assert replaced(db, GROUPED) == Done("query q is as it was")
    db.execute("ALTER QUERY q SET (result_log = 9)")


def test_one_that_reads_others_is_changed(tmp_path: Path) -> None:
    db = engine(GROUPED, folder=str(tmp_path / "db"))
    db.execute("CREATE QUERY r AS SELECT k, n FROM q WHERE n > 1")
    come(db, 0, 6)
    db.execute("PAUSE QUERY r")
    come(db, 6, 4)
    with pytest.raises(DsmsError, match="DS405"):
        db.execute("DROP QUERY q")
    db.execute("RESUME QUERY r; ALTER QUERY r RENAME TO z")
    come(db, 10, 1)
    db.execute("CREATE OR REPLACE QUERY z AS SELECT k + 1 AS k, n FROM q WHERE n > 1")
    come(db, 11, 1)
    for again in (False, True):
        if again:
            db.close()
            db = Engine(str(tmp_path / "db"))
        reading = Reading(db.subscribe("z", 0), seq=0)
        reading.take()
        assert reading.view == Counter([canons((1, 2)), canons((2, 2))])
    db.execute("DROP QUERY z; DROP QUERY q")
