"""HEARTBEAT and END STREAM do what the requests of these names do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from tests.folders.play import results
from tests.users import declared, told

DECLARED = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t SLACK 5 s MAX FUTURE 1 HOUR;
CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 3 s];
CREATE QUERY p AS SELECT COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s];
"""
SECOND = 1_000_000


def begun(data: Any = None) -> Engine:
    engine = Engine(data)
    engine.execute(DECLARED)
    engine.ingest("s", {"k": [1, 2, 3], "t": [0, SECOND, 3 * SECOND]})
    return engine


def test_statements_tell_what_requests_do(tmp_path: Path):
    asked, called = begun(str(tmp_path / "asked")), begun()
    asked.execute("HEARTBEAT s AT '1970-01-01 00:00:02'; HEARTBEAT S AT '1970-01-01 00:00:08'")
    called.heartbeat("s", 2 * SECOND)
    called.heartbeat("s", 8 * SECOND)
    assert results(asked, ["q", "p"]) == results(called, ["q", "p"])
    asked.execute("END STREAM s")
    called.end("s")
    expected = results(called, ["q", "p"])
    assert results(asked, ["q", "p"]) == expected
    asked.sync()
    asked.close()
    again = Engine(str(tmp_path / "asked"))
    assert results(again, ["q", "p"]) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("HEARTBEAT q AT '2000-01-01'", "DS401"),
        ("END STREAM zz", "DS401"),
        ("END STREAM s; HEARTBEAT s AT '1970-01-01'", "DS507"),
        ("CREATE STREAM d AS SELECT Istream(n) FROM q; END STREAM d", "DS513"),
        ("HEARTBEAT s", "DS102"),
    ],
)
def test_what_can_not_be(text: str, code: str):
    with pytest.raises(DsmsError) as found:
        begun().execute(text)
    assert found.value.code == code


def test_users_move_a_clock_no_further_than_the_stream_allows():
    engine = begun()
    engine.execute("CREATE USER ann TOKEN; GRANT INSERT ON s TO ann")
    text = "HEARTBEAT s AT '1970-01-01 02:00:00'"
    assert told(engine, text, "ann").startswith("DS508")
    engine.execute("GRANT ADMIN ON s TO ann")
    assert told(engine, text, "ann") == ""


def test_who_sends_rows_may_say_so():
    engine = declared()
    text = "HEARTBEAT s AT '1970-01-01 00:00:05'; END STREAM s"
    assert told(engine, text).startswith("DS401")
    engine.execute("GRANT SELECT ON s TO alice")
    assert told(engine, text).startswith("DS670")
    engine.execute("GRANT INSERT ON s TO alice")
    assert told(engine, text) == ""
