"""A small world with users, whose rights tests ask about."""

from __future__ import annotations

from dsms.engine import Engine
from dsms.errors import DsmsError

SECOND = 1_000_000


DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR MAX FUTURE 1 HOUR;
CREATE STREAM late (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE d (k STRING PRIMARY KEY, n INT);
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 MIN] GROUP BY k;
CREATE QUERY ready AS SELECT SUM(v) AS x FROM s [RANGE 1 MIN] ON LOOKUP;
CREATE USER alice TOKEN; CREATE USER bob TOKEN; CREATE ROLE staff;
"""


def declared() -> Engine:
    """An engine with some objects, rows and users."""
    made = Engine()
    made.execute(DECLARED)
    made.ingest("s", {"k": ["a", "b", "c"], "v": [1, 3, 5], "t": [0, SECOND, 2 * SECOND]})
    made.heartbeat("s", 3 * SECOND)
    return made


def told(engine: Engine, text: str, user: str | None = "alice") -> str:
    """The code of the refusal, and all that it says; empty if there is none."""
    try:
        engine.execute(text, user=user)
    except DsmsError as error:
        return f"{error.code} {error.message} {error.hint}"
    return ""


def rows(engine: Engine, text: str, user: str | None = "alice") -> list[dict]:
    return engine.execute(text, user=user)[-1].data.to_pylist()
