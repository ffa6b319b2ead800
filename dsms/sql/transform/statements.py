"""Statements: definitions, changes of tables, and the small ones."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.foreign import instead
from dsms.sql.literals import bad
from dsms.sql.suggest import nearest
from dsms.sql.transform.alterations import Alterations
from dsms.sql.transform.changes import Changes
from dsms.sql.transform.connectors import Connectors
from dsms.sql.transform.functions import Functions
from dsms.sql.transform.inspections import Inspections
from dsms.sql.transform.options import Options
from dsms.sql.transform.rights import Rights
from dsms.sql.transform.rules import (
    Clause,
    Parts,
    clause,
    constant,
    listed,
    node,
    only,
    place_of,
    rule,
    token_rule,
)
from dsms.sql.transform.windows import once

_E = TypeVar("_E", bound=StrEnum)

_STREAM_FIELDS = {
    "TIMESTAMP BY": "timestamp",
    "KEY": "key",
    "SLACK": "slack",
    "LATE": "late",
    "MAX FUTURE": "max_future",
    "IDLE TIMEOUT": "idle_timeout",
    "SUBWINDOW": "subwindow",
    "RETAIN": "retain",
    "INDEX BY": "index_by",
    "ARCHIVE": "archive",
    "CONFIDENTIAL": "confidential",
    "WITH": "options",
}


def _choice(kinds: type[_E], token: Token, what: str) -> _E:
    """The member of `kinds` that a word names, in any case."""
    known = [kind.value for kind in kinds]
    if token.upper() in known:
        return kinds(token.upper())
    near = nearest(token, known)
    hint = instead(token, "show") or (f"did you mean {near}?" if near else None)
    raise bad(
        "DS112",
        place_of([token]),
        f"{what} takes {', '.join(known[:-1])} or {known[-1]}, not {token}",
        hint,
    )


def _query(
    pos: Pos,
    replacing: bool | None,
    absent: bool | None,
    name: ast.Ident,
    query: ast.Query,
    clauses: tuple[Clause, ...],
    into: ast.Into | None,
) -> ast.CreateQuery:
    if replacing and absent:
        raise bad("DS109", pos, "a query that is there is replaced or let be, not both")
    said = once(clauses)
    return ast.CreateQuery(
        name,
        query,
        bool(absent),
        "ON LOOKUP" in said,
        _value(said, "ARCHIVE"),
        _value(said, "WITH") or (),
        into,
        bool(replacing),
        pos=pos,
    )


def _value(clauses: dict[str, Clause], name: str) -> Any:
    return clauses[name].value if name in clauses else None


def _fixed(clauses: dict[str, Clause]) -> dict[str, Clause]:
    for one in clauses.values():
        if isinstance(one.value, ast.Duration) and one.value.unit in literals.MONTHS:
            raise bad(
                "DS107",
                one.value.pos,
                f"{one.name} takes a fixed length, and months and years have none",
                "write DAYS",
            )
    return clauses


class Definitions(Options):
    """CREATE STREAM, CREATE TABLE, CREATE QUERY."""

    if_not_exists = if_exists = yes = full = constant(True)
    not_null = clause("NOT NULL")
    nullable = clause("NULL")
    inline_key = clause("PRIMARY KEY")
    computed = clause("AS")
    default = clause("DEFAULT")
    columns = table_elements = listed

    @rule
    def column_def(
        self, pos: Pos, name: ast.Ident, type_: ast.TypeName, *constraints: Clause | None
    ) -> Clause:
        said = once(tuple(c for c in constraints if c is not None))
        if "NULL" in said and len(said) > 1:
            other = " and ".join(sorted(said.keys() - {"NULL"}))
            raise bad("DS109", said["NULL"].pos, f"{name.text} can't be both NULL and {other}")
        if {"AS", "DEFAULT"} <= said.keys():
            what = f"{name.text} is computed, so it has no DEFAULT"
            raise bad("DS109", said["DEFAULT"].pos, what)
        expr, default = _value(said, "AS"), _value(said, "DEFAULT")
        made = ast.ColumnDef(name, type_, "NOT NULL" in said, expr, default, pos=pos)
        return Clause("PRIMARY KEY" if "PRIMARY KEY" in said else "column", made, pos)

    @rule
    def table_key(self, pos: Pos, names: tuple[ast.Ident, ...]) -> Clause:
        return Clause("PRIMARY KEY", names, pos)

    @rule
    def late_drop(self, pos: Pos) -> Clause:
        return Clause("LATE", ast.Late(pos=pos), pos)

    @rule
    def late_into(self, pos: Pos, stream: ast.Ident) -> Clause:
        return Clause("LATE", ast.Late(stream, pos=pos), pos)

    unit_clause = token_rule("NAME")(lambda self, pos, token: token.lower())

    @rule
    def timestamp_by(self, pos: Pos, column: ast.Ident, unit: str | None) -> Clause:
        return Clause("TIMESTAMP BY", ast.TimestampBy(column, unit, pos=pos), pos)

    @rule
    def timestamp_computed(
        self, pos: Pos, expr: ast.Expr, column: ast.Ident, unit: str | None
    ) -> Clause:
        return Clause("TIMESTAMP BY", ast.TimestampBy(column, unit, expr, pos=pos), pos)

    slack = clause("SLACK")
    max_future = clause("MAX FUTURE")
    idle_timeout = clause("IDLE TIMEOUT")
    subwindow = clause("SUBWINDOW")
    retain = clause("RETAIN")
    keyed = clause("KEY")
    index_by = clause("INDEX BY")
    archive_for = clause("FOR")
    archive_cluster = clause("CLUSTER BY")
    archive_every = clause("UPDATE EVERY")

    @rule
    def confidential(self, pos: Pos, length: ast.Duration, role: ast.Ident) -> Clause:
        return Clause("CONFIDENTIAL", ast.Confidential(length, role, pos=pos), pos)

    non_retroactive = clause("NON RETROACTIVE")
    retroactive = clause("RETROACTIVE")
    on_lookup = clause("ON LOOKUP")

    @rule
    def archive(self, pos: Pos, *clauses: Clause) -> Clause:
        said = _fixed(once(clauses))
        parts = (_value(said, name) for name in ("FOR", "CLUSTER BY", "UPDATE EVERY"))
        return Clause("ARCHIVE", ast.Archive(*parts, pos=pos), pos)

    @rule
    def create_stream(
        self, pos: Pos, absent: bool | None, name: ast.Ident, columns: Any, *clauses: Clause
    ) -> Any:
        for column in columns:
            if column.name == "PRIMARY KEY":
                raise bad(
                    "DS110", column.pos, "a stream has no PRIMARY KEY", "tables have: CREATE TABLE"
                )
        said = _fixed(once(clauses))
        fields = {field: said[name].value for name, field in _STREAM_FIELDS.items() if name in said}
        return ast.CreateStream(
            name, tuple(c.value for c in columns), bool(absent), **fields, pos=pos
        )

    @rule
    def derived_stream(self, pos: Pos, absent: bool | None, name: ast.Ident, *parts: Any) -> Any:
        *clauses, query = parts
        said = _fixed(once(tuple(clauses)))
        fields = {field: said[key].value for key, field in _STREAM_FIELDS.items() if key in said}
        return ast.CreateStream(name, (), bool(absent), **fields, query=query, pos=pos)

    @rule
    def create_table(
        self, pos: Pos, absent: bool | None, name: ast.Ident, elements: Any, *clauses: Clause
    ) -> Any:
        keys = [e for e in elements if e.name == "PRIMARY KEY"]
        if len(keys) > 1:
            raise bad(
                "DS109",
                keys[1].pos,
                "a table has one PRIMARY KEY, and here is a second",
                "for a key of several columns write PRIMARY KEY (a, b) after the columns",
            )
        columns = tuple(e.value for e in elements if isinstance(e.value, ast.ColumnDef))
        for column in columns:
            if column.computed is not None or column.default is not None:
                what = "no computed columns" if column.computed is not None else "no DEFAULT"
                raise bad("DS110", column.pos, f"a table has {what}", "streams have")
        key = next(
            ((k.value.name,) if isinstance(k.value, ast.ColumnDef) else k.value for k in keys), ()
        )
        if not columns:
            raise bad("DS110", pos, f"the table {name.text} has no columns")
        said = once(clauses)
        if {"RETROACTIVE", "NON RETROACTIVE"} <= said.keys():
            raise bad(
                "DS109",
                said["NON RETROACTIVE"].pos,
                "a table is RETROACTIVE or NON RETROACTIVE, not both",
            )
        return ast.CreateTable(
            name,
            columns,
            key,
            "NON RETROACTIVE" in said,
            bool(absent),
            _value(said, "WITH") or (),
            pos=pos,
        )

    @rule
    def create_query(
        self,
        pos: Pos,
        replacing: bool | None,
        absent: bool | None,
        name: ast.Ident,
        query: ast.Query,
        *clauses: Clause,
    ) -> Any:
        return _query(pos, replacing, absent, name, query, clauses, None)

    @rule
    def feeding_query(
        self,
        pos: Pos,
        replacing: bool | None,
        absent: bool | None,
        name: ast.Ident,
        stream: ast.Ident,
        columns: Any,
        query: ast.Query,
        *clauses: Clause,
    ) -> Any:
        into = ast.Into(stream, columns or (), pos=stream.pos)
        return _query(pos, replacing, absent, name, query, clauses, into)


class Statements(Definitions, Alterations, Changes, Rights, Inspections, Functions, Connectors):
    """All rules of the grammar."""

    @rule
    def select_statement(
        self, pos: Pos, query: ast.Query, options: Clause | None
    ) -> ast.SelectStatement:
        return ast.SelectStatement(query, options.value if options else (), pos=pos)

    @token_rule("STREAM", "TABLE", "QUERY")
    def object_kind(self, pos: Pos, token: Token) -> ast.ObjectKind:
        return ast.ObjectKind(token.type)

    @rule
    def drop(
        self,
        pos: Pos,
        kind: ast.ObjectKind,
        present: bool | None,
        name: ast.Ident,
        cascade: bool | None,
    ) -> ast.Drop:
        return ast.Drop(kind, name, bool(present), bool(cascade), pos=pos)

    @rule
    def describe(self, pos: Pos, kind: Any, name: ast.Ident) -> ast.Describe:
        return ast.Describe(name, kind, pos=pos)

    def show(self, parts: Parts) -> ast.Show:
        what, full, of = _choice(ast.ShowKind, parts[1], "SHOW"), parts[2], parts[4]
        if full is not None and what is not ast.ShowKind.QUERIES:
            message = f"SHOW {what} has no other form"
            raise bad("DS110", place_of(parts), message, "SHOW QUERIES FULL has all its columns")
        if of is not None and what not in (ast.ShowKind.GRANTS, ast.ShowKind.QUOTAS):
            raise bad(
                "DS110",
                place_of([of]),
                f"SHOW {what} is not for one user",
                "SHOW GRANTS FOR name is, and SHOW QUOTAS FOR name",
            )
        like = literals.unquote(parts[6]) if parts[6] is not None else None
        return ast.Show(what, like, of, full is not None, parts[7], pos=place_of(parts))

    lookup = node(ast.Lookup)
    heartbeat = node(ast.Heartbeat)
    end_stream = node(ast.EndStream)
    punctuate = node(ast.Punctuate)

    def cancel_session(self, parts: Parts) -> ast.CancelSession:
        number = literals.integer(parts[2], place_of(parts[2:]))
        return ast.CancelSession(number, parts[0].type == "CLOSE", pos=place_of(parts))

    analyze = clause("ANALYZE")
    registered = only

    def format(self, parts: Parts) -> Clause:
        return Clause("FORMAT", _choice(ast.ExplainFormat, parts[1], "FORMAT"), place_of(parts))

    @rule
    def explain(self, pos: Pos, *parts: Any) -> ast.Explain:
        said = once(parts[:-1])
        return ast.Explain(
            parts[-1], "ANALYZE" in said, _value(said, "FORMAT") or ast.ExplainFormat.TEXT, pos=pos
        )

    column_names = only
    row = listed
    assignment = node(ast.Assignment)
    at = upto = only

    @rule
    def insert_values(self, pos: Pos, table: ast.Ident, columns: Any, *rest: Any) -> ast.Insert:
        return ast.Insert(table, columns or (), rest[:-2], None, rest[-1], rest[-2], pos=pos)

    @rule
    def insert_query(
        self, pos: Pos, table: ast.Ident, columns: Any, query: ast.Query, conflict: Any, at: Any
    ) -> ast.Insert:
        return ast.Insert(table, columns or (), (), query, at, conflict, pos=pos)

    @rule
    def conflict_nothing(self, pos: Pos, key: Any) -> ast.Conflict:
        return ast.Conflict(key or (), pos=pos)

    @rule
    def conflict_update(self, pos: Pos, key: Any, *rest: Any) -> ast.Conflict:
        return ast.Conflict(key or (), rest[:-1], rest[-1], pos=pos)

    @rule
    def update(self, pos: Pos, table: ast.Ident, *rest: Any) -> ast.Update:
        return ast.Update(table, rest[:-2], *rest[-2:], pos=pos)

    delete = node(ast.Delete)
