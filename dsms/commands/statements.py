"""A script, statement by statement: each is parsed, handed to who does it, and done in slices."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from dsms.api import Cancel, Done, Result
from dsms.commands import change, define, explain, lookup, select, sessions, settings, show
from dsms.commands.select import Statement
from dsms.commands.store import Write
from dsms.errors import DsmsError, InternalError, UsageError
from dsms.running.runtime import Runtime
from dsms.running.writers import Writers
from dsms.sessions import Caller
from dsms.sql import ast
from dsms.sql.parser import parse_piece, parsing_piece
from dsms.sql.script import Piece, pieces

GROWING = (
    ast.CreateStream
    | ast.CreateTable
    | ast.CreateQuery
    | ast.Insert
    | ast.Update
    | ast.SelectStatement
)


class Commanded(Protocol):
    """The engine, as far as statements need it (`dsms.engine.Engine`)."""

    runtime: Runtime
    writers: Writers

    def store(self, write: Write, kind: str, body: bytes) -> None: ...

    def heartbeat_of(self, key: str, ts: int) -> None: ...


def slices(
    engine: Commanded, text: str, cancel: Cancel | None, priority: int, caller: Caller | None
) -> Generator[Statement, None, list[Result]]:
    """Run a script, one slice of work at a time: see `dsms.engine.Engine.slices`."""
    results: list[Result] = []
    try:
        for piece in pieces(text):
            if cancel is not None:
                cancel.check()
            parsed = yield from _parsing(piece, cancel)
            statement = _begun(engine, parsed, piece.text, priority, cancel, caller)
            try:
                while not statement.step():
                    yield statement
            finally:
                statement.close()
            assert statement.result is not None
            results.append(statement.result)
            yield statement
    except DsmsError as error:
        error.statement = len(results)
        error.done = results  # type: ignore[attr-defined]
        raise
    return results


def _parsing(piece: Piece, cancel: Cancel | None) -> Generator[Statement, None, ast.Statement]:
    reading = select.OneSlice(lambda: Done(""))  # what is at work meanwhile
    parsing = parsing_piece(piece)
    while True:
        try:
            next(parsing)
        except StopIteration as end:
            parsed: ast.Statement = end.value
            return parsed
        if cancel is not None:
            cancel.check()
        yield reading


def begin(engine: Commanded, sql: str, priority: int, cancel: Cancel | None) -> Statement:
    """One statement, to be done by `step`s: see `dsms.engine.Engine.begin`."""
    found = list(pieces(sql))
    if len(found) != 1:
        raise UsageError(
            "DS400",
            f"one statement at a time is begun, not {len(found)}",
            hint="`execute` runs scripts",
        )
    return _begun(engine, parse_piece(found[0]), found[0].text, priority, cancel)


def _begun(
    engine: Commanded,
    statement: ast.Statement,
    sql: str,
    priority: int,
    cancel: Cancel | None,
    caller: Caller | None = None,
) -> Statement:
    memory = engine.runtime.settings.memory
    if memory is not None and isinstance(statement, GROWING):
        memory.check("a statement that takes more")
    if isinstance(statement, ast.SelectStatement):
        return select.Selection(engine.runtime, statement, priority, cancel)
    if isinstance(statement, ast.Insert) and len(statement.rows) > change.ROWS:
        return select.SeveralSlices(
            change.inserting(engine.runtime, engine.store, statement, cancel)
        )
    return select.OneSlice(lambda: run(engine, statement, sql, cancel, caller))


def run(
    engine: Commanded,
    statement: ast.Statement,
    sql: str,
    cancel: Cancel | None,
    caller: Caller | None = None,
) -> Result:
    """Do a statement that is no SELECT in one go."""
    runtime = engine.runtime
    match statement:
        case ast.CreateStream():
            return define.create_stream(runtime, engine.store, statement, sql, engine.heartbeat_of)
        case ast.CreateTable():
            return define.create_table(runtime, engine.store, statement, sql)
        case ast.CreateQuery():
            return define.create_query(runtime, engine.store, statement, sql, cancel)
        case ast.Drop():
            return define.drop(runtime, engine.store, statement, sql, engine.writers)
        case ast.Insert() | ast.Update() | ast.Delete():
            return change.change_table(runtime, engine.store, statement, cancel)
        case ast.Explain():
            return explain.explain_statement(runtime, statement)
        case ast.Show():
            return show.show(runtime, statement, caller)
        case ast.Describe():
            return show.describe(runtime, statement)
        case ast.Set():
            return settings.set_setting(runtime, statement, caller)
        case ast.CancelSession():
            return sessions.cancel_session(runtime, statement)
        case ast.Lookup():
            return lookup.lookup(runtime, statement, cancel)
    raise InternalError("DS901", f"nothing runs {type(statement).__name__}; please report this")
