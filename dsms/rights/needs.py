"""What right each statement and each request of the protocol needs, and on what.  The one table of
it.

A statement that is not in `ast.AnyStatement`, or has no arm here, is a type error; a request
without an entry is refused (`tests/test_rights.py` holds both against the grammar and the
protocol).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

from dsms.settings import OF_SESSION
from dsms.sql import ast
from dsms.sql.ast import Right, ShowKind

Kind = Literal["stream", "query", "stream or table"]


@dataclass(frozen=True, slots=True)
class Need:
    """`right` on `object` (None: on ALL); None as right: any, so that it may be known of.  `whole`:
    of SELECT, on all rows and columns.."""

    right: Right | None
    object: ast.Ident | None = None
    whole: bool = False


ADMINISTER = (Need(Right.ADMIN),)
_CREATE = Need(Right.CREATE)


def needs(statement: ast.AnyStatement) -> tuple[Need, ...]:
    """All that is needed; empty: nothing."""
    match statement:
        case ast.SelectStatement():
            return _reads(statement.query)
        case ast.CreateStream(late=late, query=query):
            return (
                _CREATE,
                *([Need(Right.INSERT, late.into)] if late is not None and late.into else []),
                *(_reads(query) if query is not None else ()),
            )
        case ast.CreateTable() | ast.CreateFunction():
            return (_CREATE,)
        case ast.DropFunction():
            return ()  # whose it is, judged by `drop_own`
        case ast.CreateQuery(into=into):
            fed = () if into is None else (Need(Right.INSERT, into.stream),)
            there = (Need(Right.ADMIN, statement.name),) if statement.or_replace else ()
            return (_CREATE, *there, *fed, *_reads(statement.query))
        case ast.Drop() | ast.AlterStream() | ast.SetSince() | ast.Reopen() | ast.AddColumn():
            return (Need(Right.ADMIN, statement.name),)
        case ast.Rename() | ast.RenameColumn() | ast.SetStream():
            return (Need(Right.ADMIN, statement.name),)
        case ast.PauseQuery() | ast.ResumeQuery():
            return (Need(Right.ADMIN, statement.name),)
        case ast.RenameQuery() | ast.SetQuery() | ast.Comment():
            return (Need(Right.ADMIN, statement.name),)
        case ast.Describe(kind=ast.FunctionKind()):
            return ()  # all may call them
        case ast.Describe():
            return (Need(None, statement.name),)
        case ast.Show():
            return _shown(statement.what)
        case ast.ShowCreate():
            return _read_back(statement)
        case ast.Heartbeat() | ast.EndStream() | ast.Punctuate():  # as the requests of the protocol
            return (Need(Right.INSERT, statement.name),)
        case ast.Insert(conflict=conflict):
            seen = conflict is not None and bool(conflict.assignments)  # as UPDATE does
            return (
                Need(Right.INSERT, statement.table),
                *((Need(Right.SELECT, statement.table, whole=True),) if seen else ()),
                *(_reads(statement.query) if statement.query else ()),
            )
        case ast.Update() | ast.Delete():  # how many rows a condition meets says what they hold
            return (
                Need(Right.INSERT, statement.table),
                Need(Right.SELECT, statement.table, whole=True),
            )
        case ast.Explain(target=target):
            return _explained(target)
        case ast.Set(option) if option.name.text.casefold() in OF_SESSION:
            return ()
        case ast.Set():
            return ADMINISTER
        case ast.CancelSession():
            return ()  # one's own; those of others: judged by `cancel_session`
        case ast.Lookup():
            return (Need(Right.SELECT, statement.name, whole=True),)
        case ast.Grant() | ast.Revoke():
            return (Need(Right.ADMIN, statement.object),)
        case ast.AlterUser():
            return ()  # one's own; that of another: judged by `may_alter`
        case ast.AlterQuota():
            return ADMINISTER
        case ast.CreateUser() | ast.DropUser() | ast.CreateRole() | ast.DropRole():
            return ADMINISTER
        case ast.GrantRole() | ast.RevokeRole():
            return ADMINISTER
        case ast.CreateConnector() | ast.DropConnector():  # the server acts in its own name
            return ADMINISTER
        case ast.PauseConnector() | ast.ResumeConnector():
            return ADMINISTER
        case _:
            assert_never(statement)


def _reads(query: ast.Query) -> tuple[Need, ...]:
    """SELECT on all that stands in FROM, at whatever depth."""
    return tuple(
        Need(Right.SELECT, part.name) for part in ast.walk(query) if isinstance(part, ast.TableRef)
    )


def _explained(target: ast.SelectStatement | ast.CreateQuery | ast.Ident) -> tuple[Need, ...]:
    match target:
        case ast.Ident():  # its plan tells what it reads, and which rows of it
            return (Need(Right.ADMIN, target),)
        case ast.CreateQuery(if_not_exists=True):  # shows the plan of the one that is there
            return (Need(Right.ADMIN, target.name), *_reads(target.query))
        case ast.SelectStatement() | ast.CreateQuery():
            return _reads(target.query)


def _read_back(statement: ast.ShowCreate) -> tuple[Need, ...]:
    match statement.kind:
        case None | ast.MadeKind.SOURCE | ast.MadeKind.SINK:
            return ADMINISTER
        case ast.MadeKind.QUERY:  # as of EXPLAIN QUERY; the rest is judged by `show_create`
            return (Need(Right.ADMIN, statement.name),)
        case ast.MadeKind.STREAM | ast.MadeKind.TABLE:
            return (Need(None, statement.name),)
        case ast.MadeKind.ROLE:
            return ()  # those that one has oneself
        case ast.MadeKind.AGGREGATE | ast.MadeKind.FUNCTION:
            return ()  # all may call them


def _shown(what: ShowKind) -> tuple[Need, ...]:
    match what:
        case (
            ShowKind.WINDOWS | ShowKind.SHARING | ShowKind.MEMORY
        ):  # what queries of all users have in common
            return ADMINISTER
        case ShowKind.SOURCES | ShowKind.SINKS:  # errors and positions tell of the other side
            return ADMINISTER
        case (
            ShowKind.STREAMS
            | ShowKind.TABLES
            | ShowKind.QUERIES
            | ShowKind.ARCHIVES
            | ShowKind.GRANTS
            | ShowKind.QUOTAS
        ):
            return ()  # lines of what one has no right on are left out
        case ShowKind.FUNCTIONS | ShowKind.AGGREGATES:
            return ()  # all may call them
        case ShowKind.USERS | ShowKind.SETTINGS | ShowKind.SESSIONS:
            return ()  # of users and sessions, one's own
        case _:
            assert_never(what)


@dataclass(frozen=True, slots=True)
class OpNeed:
    """`right` on the stream or query that the request names in `field`; None: a request needs
    nothing, or what its statements need."""

    right: Right | None = None
    kind: Kind = "stream"


OPS: dict[str, OpNeed] = {
    "hello": OpNeed(),
    "execute": OpNeed(),  # as its statements
    "ingest": OpNeed(Right.INSERT, "stream or table"),
    "heartbeat": OpNeed(Right.INSERT),
    "end": OpNeed(Right.INSERT),
    "subscribe": OpNeed(Right.SUBSCRIBE, "query"),
    "unsubscribe": OpNeed(),  # of the session itself
    "cancel": OpNeed(),
    "ping": OpNeed(),
    "names": OpNeed(),  # those of which one may know
}
