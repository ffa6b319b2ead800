"""A script, statement by statement: each is parsed, handed to who does it, and done in slices."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from dsms.api import Cancel, Done, Result
from dsms.commands import (
    altering,
    change,
    clocks,
    commenting,
    connectors,
    define,
    dropping,
    explain,
    insert,
    like_file,
    lookup,
    own_functions,
    pausing,
    renaming,
    rights,
    select,
    sessions,
    settings,
    show,
    show_create,
)
from dsms.commands.add_column import add_column, adding_column
from dsms.commands.planning import is_big
from dsms.commands.points import PointRead, selecting
from dsms.commands.quotas import GROWING, check_state
from dsms.commands.registering import Registering
from dsms.commands.reopen import reopen
from dsms.commands.set_clock import set_clock
from dsms.commands.set_since import set_since
from dsms.commands.set_stream import set_stream
from dsms.commands.slices import Apart, OneSlice, Pieces, SeveralSlices, Statement
from dsms.commands.stops import Stops
from dsms.commands.store import Store, Write
from dsms.errors import DsmsError, InternalError, QueryError, UsageError
from dsms.operators.pieces import finished
from dsms.python_functions.cutting import CUT, cuttable
from dsms.rights.check import check_statement
from dsms.running.first_answers import anew, arriving
from dsms.running.runtime import Runtime
from dsms.running.writers import Writers
from dsms.secret_texts import hide
from dsms.sessions import Caller
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.parameters import Parameters, Values
from dsms.sql.parser import parse_piece, parsing_piece
from dsms.sql.printer import to_sql
from dsms.sql.script import Piece, pieces

LONG = 1 << 14  # characters of a script whose statements are looked for apart
READING = select.Selection | PointRead


class Commanded(clocks.Clocked, Protocol):
    """The engine, as far as statements need it (`dsms.engine.Engine`)."""

    now: int | None
    writers: Writers
    stops: Stops

    def copy_on(self) -> bool: ...

    def store(self, write: Write, kind: str, body: bytes) -> None: ...

    def store_by(self, user: str | None) -> Store: ...

    def heartbeat_of(self, key: str, ts: int, cancel: Cancel | None = None) -> None: ...

    def punctuate_of(
        self,
        key: str,
        columns: tuple[int, ...],
        values: tuple[pa.Array, ...],
        upto: int,
    ) -> None: ...


def slices(
    engine: Commanded,
    text: str,
    cancel: Cancel | None,
    priority: int,
    caller: Caller | None,
    user: str | None,
    params: Values | None,
) -> Generator[Statement, None, list[Result]]:
    """Run a script, one slice of work at a time: see `dsms.engine.Engine.slices`."""
    results: list[Result] = []
    try:
        values = None if params is None else Parameters(params, text)
        for piece in (yield from _scanned(text)):
            if cancel is not None:
                cancel.check()
            with _hidden(piece.text):
                piece, looked = yield from like_file.plain(engine.runtime, piece, cancel, user)
                with like_file.as_typed(looked):
                    parsed = yield from _told(piece, cancel, caller, values)
                    if not isinstance(parsed, ast.SelectStatement):
                        yield from _whole(engine, cancel)
                    yield from _arrived(engine.runtime, parsed, cancel)
                    sql = piece.text if values is None else to_sql(parsed)
                    statement = _begun(engine, parsed, sql, priority, cancel, caller, user)
                    try:
                        if statement.ready:
                            yield statement
                        while True:
                            if not (isinstance(statement, READING) and statement.reads_rows):
                                yield from _whole(engine, cancel)
                            with cuttable(cancel):
                                done = statement.step()
                            if done:
                                break
                            yield statement
                    finally:
                        statement.close()
                        engine.stops.write(engine.runtime, engine.store)
            assert statement.result is not None
            statement.result = like_file.told(statement.result, looked)
            results.append(statement.result)
            yield statement
    except DsmsError as problem:
        error = _cancelled(problem)
        error.statement = len(results)
        error.done = results  # type: ignore[attr-defined]
        raise error from problem.__cause__
    return results


def _cancelled(problem: DsmsError) -> DsmsError:
    """What ended a statement: where a function in Python was cut off, that it was cancelled."""
    cut = problem.code == CUT
    return UsageError("DS610", "the statement was cancelled") if cut else problem


def _scanned(text: str) -> Generator[Statement, None, Iterable[Piece]]:
    """The statements of a script; those of a long one are looked for apart."""
    if len(text) <= LONG:
        return pieces(text)
    found: list[Piece] = []
    error: list[DsmsError] = []

    def look() -> None:
        try:
            found.extend(pieces(text))
        except DsmsError as problem:  # behind those before it
            error.append(problem)

    def looking() -> Pieces[Result]:
        yield Apart(look)
        return Done("")

    scanning = SeveralSlices(looking())
    while not scanning.step():
        yield scanning
        scanning.run()
    return _then(found, error)


def _then(found: Iterable[Piece], error: Sequence[DsmsError]) -> Iterator[Piece]:
    yield from found
    for problem in error:
        raise problem


@contextmanager
def _hidden(text: str) -> Iterator[None]:
    """Errors repeat no password or token of the statement."""
    try:
        yield
    except DsmsError as error:
        error.message, error.hint = hide(error.message, text) or "", hide(error.hint, text)
        raise
    except RecursionError:
        raise QueryError(
            "DS105",
            "the plan of this statement is nested too deep",
            1,
            1,
            "join fewer relations, and nest fewer subqueries, in one statement",
        ) from None


def _told(
    piece: Piece, cancel: Cancel | None, caller: Caller | None, values: Parameters | None
) -> Generator[Statement, None, ast.Statement]:
    """Parse a statement; whoever it comes from is told of it, and may let it wait."""
    if caller is not None:
        caller.begins(piece.text, None)
    parsed = yield from _parsing(piece, cancel, values)
    if caller is not None and caller.begins(piece.text, parsed):
        yield OneSlice(lambda: Done(""))
    return parsed


def _parsing(
    piece: Piece, cancel: Cancel | None, values: Parameters | None
) -> Generator[Statement, None, ast.Statement]:
    reading = OneSlice(lambda: Done(""))  # what is at work meanwhile
    parsing = parsing_piece(piece, values)
    while True:
        try:
            next(parsing)
        except StopIteration as end:
            parsed: ast.Statement = end.value
            return parsed
        if cancel is not None:
            cancel.check()
        yield reading


def _whole(engine: Commanded, cancel: Cancel | None) -> Generator[Statement, None, None]:
    """Let the state be copied for a checkpoint, if it is."""
    while engine.copy_on():
        yield OneSlice(lambda: Done(""))
        if cancel is not None:
            cancel.check()


def _arrived(
    runtime: Runtime, statement: ast.Statement, cancel: Cancel | None
) -> Generator[Statement, None, None]:
    """Let queries that it names and that are registered anew come to their first answer."""
    if not runtime.beginnings:
        return
    names = [p.text for p in ast.walk(statement) if isinstance(p, ast.Ident)]
    for _ in arriving(runtime, anew(runtime, map(runtime.catalog.key_of, names))):
        yield OneSlice(lambda: Done(""))
        if cancel is not None:
            cancel.check()


def begin(engine: Commanded, sql: str, priority: int, cancel: Cancel | None) -> Statement:
    """One statement, to be done by `step`s: see `dsms.engine.Engine.begin`."""
    found = list(pieces(sql))
    if len(found) != 1:
        raise UsageError(
            "DS400",
            f"one statement at a time is begun, not {len(found)}",
            hint="`execute` runs scripts",
        )
    statement = parse_piece(found[0])
    finished(_arrived(engine.runtime, statement, cancel))
    return _begun(engine, statement, found[0].text, priority, cancel)


def _begun(
    engine: Commanded,
    statement: ast.Statement,
    sql: str,
    priority: int,
    cancel: Cancel | None,
    caller: Caller | None = None,
    user: str | None = None,
) -> Statement:
    runtime = engine.runtime

    def see() -> Catalog:
        return check_statement(runtime.rights, runtime.catalog, user, statement)

    catalog, memory = see(), runtime.settings.memory
    statement, sql = own_functions.plainly(statement, sql, catalog)
    if memory is not None and isinstance(statement, GROWING):
        memory.check("a statement that takes more")
    if user is not None and isinstance(statement, GROWING):
        check_state(runtime, user, statement)
    if isinstance(statement, ast.SelectStatement):
        return selecting(runtime, statement, sql, see, priority, cancel)
    if isinstance(statement, ast.Insert):
        inserting = insert.Inserting(runtime, engine.store, statement, sql, see, cancel)
        if statement.query is not None:
            return SeveralSlices(inserting.selected())
        if len(statement.rows) > insert.ROWS:
            return SeveralSlices(inserting.values())
    if isinstance(statement, ast.Insert | ast.Update | ast.Delete):
        return SeveralSlices(change.change_table(runtime, engine.store, statement, see, cancel))
    if isinstance(statement, ast.Heartbeat | ast.EndStream | ast.Punctuate):
        return SeveralSlices(clocks.tell(engine, statement, catalog, cancel))
    if isinstance(statement, ast.CreateQuery):
        store, big = engine.store_by(catalog.user), is_big(statement, sql)
        return SeveralSlices(Registering(runtime, store, statement, sql, see, cancel, big).pieces())
    if isinstance(statement, ast.Explain) and is_big(statement, sql):
        return SeveralSlices(explain.explaining(runtime, statement, see, cancel, big=True))
    if isinstance(statement, ast.AddColumn):
        store = engine.store_by(catalog.user)
        return SeveralSlices(adding_column(runtime, store, statement, see))
    if isinstance(statement, ast.AlterStream):
        store = engine.store_by(catalog.user)
        return SeveralSlices(set_clock(runtime, store, statement, engine.now, see))
    if isinstance(statement, ast.ResumeQuery):
        store = engine.store_by(catalog.user)
        return SeveralSlices(pausing.resumed(runtime, store, statement, catalog, cancel))
    if isinstance(statement, ast.Show):
        return SeveralSlices(show.showing(runtime, statement, catalog, see, caller))
    if isinstance(statement, ast.ShowCreate):
        return SeveralSlices(show_create.show_create(runtime, statement, catalog))
    if isinstance(statement, rights.Statement):
        return rights.Change(runtime, engine.store, statement, see)
    return OneSlice(lambda: run(engine, statement, sql, catalog, cancel, caller))


def run(
    engine: Commanded,
    statement: ast.Statement,
    sql: str,
    catalog: Catalog,
    cancel: Cancel | None,
    caller: Caller | None = None,
) -> Result:
    """Do a statement that is no SELECT in one go, for whoever sees that catalog."""
    runtime, store = engine.runtime, engine.store_by(catalog.user)
    match statement:
        case ast.CreateStream():
            return define.create_stream(
                runtime, store, statement, sql, catalog, engine.heartbeat_of
            )
        case ast.CreateTable():
            return define.create_table(runtime, store, statement, sql, catalog)
        case ast.CreateQuery():
            made = Registering(runtime, store, statement, sql, lambda: catalog, cancel)
            return finished(made.pieces())
        case ast.CreateFunction():
            return own_functions.create_function(runtime, store, statement, catalog)
        case ast.DropFunction():
            return own_functions.drop_own(runtime, store, statement, sql, catalog)
        case ast.AlterStream():
            return finished(set_clock(runtime, store, statement, engine.now, lambda: catalog))
        case ast.AddColumn():
            return add_column(runtime, store, statement, catalog)
        case ast.Rename():
            return renaming.rename_object(runtime, store, statement, catalog)
        case ast.RenameColumn():
            return renaming.rename_column(runtime, store, statement, catalog)
        case ast.SetSince():
            return set_since(runtime, store, statement, engine.now, catalog)
        case ast.SetStream():
            return set_stream(runtime, store, statement, catalog)
        case ast.Reopen():
            return reopen(runtime, store, statement, catalog)
        case ast.Heartbeat() | ast.EndStream() | ast.Punctuate():
            return finished(clocks.tell(engine, statement, catalog, cancel))
        case ast.PauseQuery():
            return pausing.pause(runtime, store, statement, catalog)
        case ast.RenameQuery():
            return altering.rename_query(runtime, store, statement, catalog)
        case ast.SetQuery():
            return altering.set_query(runtime, store, statement, catalog)
        case ast.Comment():
            return commenting.comment(runtime, store, statement, catalog)
        case ast.ResumeQuery():
            return finished(pausing.resumed(runtime, store, statement, catalog, cancel))
        case ast.Drop():
            return dropping.drop(
                runtime,
                store,
                statement,
                sql,
                catalog,
                engine.writers,
                lambda one: check_statement(runtime.rights, runtime.catalog, catalog.user, one),
            )
        case ast.Insert() | ast.Update() | ast.Delete():
            return finished(change.change_table(runtime, store, statement, lambda: catalog, cancel))
        case ast.Explain():
            return finished(
                explain.explaining(runtime, statement, lambda: catalog, cancel, big=False)
            )
        case ast.Show():
            return finished(show.showing(runtime, statement, catalog, lambda: catalog, caller))
        case ast.ShowCreate():
            return finished(show_create.show_create(runtime, statement, catalog))
        case ast.Describe():
            return show.describe(runtime, statement, catalog)
        case ast.Set():
            return settings.set_setting(runtime, statement, caller)
        case ast.CancelSession():
            return sessions.cancel_session(runtime, statement, catalog)
        case ast.Lookup():
            return lookup.lookup(runtime, statement, catalog, cancel)
        case (
            ast.CreateConnector()
            | ast.DropConnector()
            | ast.PauseConnector()
            | ast.ResumeConnector()
        ):
            return connectors.change(runtime, store, statement, sql, catalog, engine.writers)
    raise InternalError("DS901", f"nothing runs {type(statement).__name__}; please report this")
