"""SHOW SESSIONS, CANCEL SESSION, CLOSE SESSION, and what SET changes for one session alone."""

from __future__ import annotations

from dsms.api import Done, Rows
from dsms.commands.rows import as_rows
from dsms.errors import UsageError
from dsms.lengths import interval_of
from dsms.running.runtime import Runtime
from dsms.sessions import Caller, SessionLine, Sessions, no_session
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.codes import error
from dsms.sql.types import FLOAT, INT, STRING, TIMESTAMP

SECOND = 1_000_000  # µs


def show_sessions(runtime: Runtime, catalog: Catalog) -> Rows:
    """A line for each session of the server that the user may know of; none without a server."""
    lines = _known(runtime.settings.sessions, catalog)
    return as_rows(
        [
            ("session", INT, [s.id for s in lines]),
            ("user", STRING, [s.user for s in lines]),
            ("client", STRING, [s.client for s in lines]),
            ("peer", STRING, [s.peer for s in lines]),
            ("since", TIMESTAMP, [s.since for s in lines]),
            ("state", STRING, [s.state for s in lines]),
            ("statement", STRING, [s.statement for s in lines]),
            ("seconds", FLOAT, [s.seconds for s in lines]),
            ("rows_in", INT, [s.rows_in for s in lines]),
            ("rows_out", INT, [s.rows_out for s in lines]),
            ("waiting_bytes", INT, [s.waiting_bytes for s in lines]),
            ("subscriptions", INT, [s.subscriptions for s in lines]),
        ]
    )


def _known(sessions: Sessions | None, catalog: Catalog) -> list[SessionLine]:
    """One's own, and to an administrator all."""
    lines = [] if sessions is None else sessions.lines()
    return lines if catalog.sees_all else [s for s in lines if s.user == catalog.user]


def cancel_session(runtime: Runtime, statement: ast.CancelSession, catalog: Catalog) -> Done:
    """Raises DS660 (no such session), DS661 (there are none)."""
    sessions = runtime.settings.sessions
    if sessions is None:
        raise _none("a session is cancelled")
    if not catalog.sees_all and statement.session not in (s.id for s in _known(sessions, catalog)):
        raise no_session(statement.session)
    return Done(sessions.cancel(statement.session, statement.close))


def set_timeout(option: ast.Option, caller: Caller | None) -> Done:
    """SET statement_timeout.  Raises DS215 for what is no length, DS661 where there is no
    session."""
    seconds = _seconds(option)
    if caller is None:
        raise _none("statement_timeout is set")
    caller.statement_timeout = seconds
    return Done(f"statement_timeout is {timeout_text(seconds)}")


def timeout_text(seconds: float) -> str:
    """As SET takes it."""
    return f"{seconds:g} s" if seconds else "0"


def _seconds(option: ast.Option) -> float:
    match option.value:
        case ast.Duration(micros=micros, months=0):
            found: int | None = micros
        case str(text):
            found = 0 if text.strip() == "0" else interval_of(text.strip())
        case 0 if option.value is not False:
            found = 0
        case _:
            found = None
    if found is None or found < 0:
        raise error(
            "DS215",
            "statement_timeout takes a length of time",
            option,
            "write '5 s', or 0 for none",
        )
    return found / SECOND


def _none(what: str) -> UsageError:
    message = f"{what} where a server runs: an engine in a program has no sessions"
    return UsageError(
        "DS661", message, hint="a program ends a statement by the `cancel` that it gave with it"
    )
