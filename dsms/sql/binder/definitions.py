"""CREATE STREAM, CREATE TABLE and CREATE QUERY: from the syntax tree to definitions for the
catalog.

With IF NOT EXISTS, a name taken by an object of the same kind gives that object back, unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.computed import bind_computed, default_of, with_timestamp
from dsms.sql.binder.durations import fixed, maybe_fixed
from dsms.sql.binder.feeding import bind_feeding
from dsms.sql.binder.keyed import check_no_key, keyed
from dsms.sql.binder.objects import column_index, kind_of
from dsms.sql.binder.options import check_options
from dsms.sql.binder.query import bind_query
from dsms.sql.binder.shedding import weighted
from dsms.sql.binder.typenames import type_of
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.codes import error, suggest
from dsms.sql.logical import Output, Sort
from dsms.sql.open_values import expressions, parts, types_of
from dsms.sql.plan_reads import answers_of, own_reads
from dsms.sql.printer import to_sql
from dsms.sql.types import INT, TIMESTAMP, Default, Field, Kind, Schema, Type

UNITS = ("s", "ms", "us", "ns")
UNINDEXED = (Kind.BOOL,)  # two values alone


def bind_create_stream(statement: ast.CreateStream, catalog: Catalog, sql: str = "") -> StreamDef:
    """The stream that the statement declares; `sql` is its text, kept for the catalog."""
    taken = taken_by(statement, statement.name, StreamDef, catalog)
    if isinstance(taken, StreamDef):
        return taken
    schema = with_timestamp(statement, _schema(statement.columns, catalog), catalog)
    _check_event_time(statement)
    key: tuple[int, ...] = ()
    if statement.key:
        key, schema = keyed(statement, schema)
    timestamp, unit = _timestamp(statement.timestamp, schema)
    schema, weight = weighted(statement, schema)
    made = replace(stream_def(statement, schema, timestamp, unit, catalog, sql), weight=weight)
    return replace(made, computed=bind_computed(statement, schema, catalog), key=key)


def stream_def(
    statement: ast.CreateStream,
    schema: Schema,
    timestamp: int | None,
    unit: str | None,
    catalog: Catalog,
    sql: str,
) -> StreamDef:
    """The stream of these columns, and what the clauses say of it."""
    archive, secret = statement.archive, statement.confidential
    return StreamDef(
        statement.name.text,
        schema,
        timestamp,
        unit,
        slack=0 if statement.slack is None else fixed(statement.slack, "SLACK", zero=True),
        late_into=_late_into(statement.late, schema, catalog),
        max_future=maybe_fixed(statement.max_future, "MAX FUTURE"),
        idle_timeout=maybe_fixed(statement.idle_timeout, "IDLE TIMEOUT"),
        subwindow=maybe_fixed(statement.subwindow, "SUBWINDOW"),
        retain=maybe_fixed(statement.retain, "RETAIN"),
        index_by=_index_by(statement.index_by, schema),
        archive=archive is not None,
        archive_for=maybe_fixed(archive.keep, "ARCHIVE FOR") if archive else None,
        archive_cluster=_cluster(archive, schema),
        archive_every=maybe_fixed(archive.update_every, "UPDATE EVERY") if archive else None,
        confidential_for=None if secret is None else fixed(secret.length, "CONFIDENTIAL FOR"),
        confidential_to=None if secret is None else secret.role.text,
        options=check_options(statement.options, "stream"),
        sql=sql,
    )


def bind_create_table(statement: ast.CreateTable, catalog: Catalog, sql: str = "") -> TableDef:
    """The table that the statement declares; columns of its primary key are NOT NULL."""
    taken = taken_by(statement, statement.name, TableDef, catalog)
    if isinstance(taken, TableDef):
        return taken
    schema = _schema(statement.columns, catalog)
    key = [column_index(schema, name, "PRIMARY KEY") for name in statement.primary_key]
    for at, name in enumerate(statement.primary_key):
        if key[at] in key[:at]:
            raise error(
                "DS226", f"PRIMARY KEY names `{name.text}` twice", name, "name each key column once"
            )
    check_options(statement.options, "table")
    fields = [
        Field(f.name, f.type, None, f.nullable and i not in key) for i, f in enumerate(schema)
    ]
    return TableDef(
        statement.name.text, tuple(fields), tuple(key), not statement.non_retroactive, sql
    )


def bind_create_query(
    statement: ast.CreateQuery, catalog: Catalog, sql: str = ""
) -> tuple[QueryDef, Output] | tuple[QueryDef, None]:
    """The registered query and its plan; the plan is None if IF NOT EXISTS found the query
    there.  What OR REPLACE found is no concern here."""
    taken = taken_by(statement, statement.name, QueryDef, catalog)
    if isinstance(taken, QueryDef) and not statement.or_replace:
        return taken, None
    if statement.or_replace:
        statement = replace(statement, or_replace=False)
        sql = to_sql(statement)
    archive = statement.archive
    if archive is not None and statement.on_lookup:
        raise error(
            "DS329",
            "a query that is answered by LOOKUP alone has no results to archive",
            archive,
            "leave ARCHIVE out, or ON LOOKUP",
        )
    plan = bind_query(statement, catalog)
    options = check_options(statement.options, "query")
    feeds: str | None = None
    places: tuple[int, ...] = ()
    if statement.into is not None:
        plan, feeds, places = bind_feeding(statement, statement.into, plan, catalog)
    made = QueryDef(
        statement.name.text,
        sql or to_sql(statement),
        plan.schema,
        options,
        statement.on_lookup,
        parameters=_parameters(plan) if statement.on_lookup else (),
        archive=archive is not None,
        archive_for=maybe_fixed(archive.keep, "ARCHIVE FOR", zero=True) if archive else None,
        archive_cluster=_cluster(archive, plan.schema),
        archive_every=maybe_fixed(archive.update_every, "UPDATE EVERY") if archive else None,
        feeds=feeds,
        places=places,
    )
    return with_reads(made, plan), plan


def _parameters(plan: Output) -> tuple[Type, ...]:
    """The types of what LOOKUP gives values for."""
    below = plan.child.child if isinstance(plan.child, Sort) else plan.child
    return types_of(expressions(parts(below)[1]))


def with_reads(query: QueryDef, plan: Output) -> QueryDef:
    """The query, with what its plan reads where it reads queries."""
    over = tuple(dict.fromkeys(found.query for found in answers_of(plan)))
    return replace(query, over=over, beside=own_reads(plan) if over else ())


def taken_by(
    statement: ast.CreateStream | ast.CreateTable | ast.CreateQuery,
    name: ast.Ident,
    kind: type,
    catalog: Catalog,
) -> StreamDef | TableDef | QueryDef | None:
    """The object of that name, if IF NOT EXISTS lets it stand or OR REPLACE finds it; DS213 if the
    name is taken otherwise."""
    found = catalog.find(name.text)  # unquoted: names that differ in case only would be a trap
    if found is None and catalog.hides(name.text):
        raise error("DS213", f"the name {name.text} is taken", name, "choose another name")
    if found is None:
        return None
    replaced = isinstance(statement, ast.CreateQuery) and statement.or_replace
    if (statement.if_not_exists or replaced) and isinstance(found, kind):
        return found
    what = kind_of(found)
    hint = f"choose another name, or DROP {what.upper()} {found.name} first"
    raise error("DS213", f"the name {name.text} is taken by a {what}", name, hint)


def _schema(columns: Sequence[ast.ColumnDef], catalog: Catalog) -> Schema:
    seen: set[str] = set()
    fields = []
    for column in columns:
        if column.name.text.casefold() in seen:
            raise error(
                "DS212",
                f"column `{column.name.text}` is declared twice",
                column.name,
                "rename one of them",
            )
        seen.add(column.name.text.casefold())
        fields.append(_field(column, catalog))
    return tuple(fields)


def bind_column(column: ast.ColumnDef, stream: StreamDef, catalog: Catalog) -> Field:
    """A column that is added to a stream: rows may leave it out.  Raises DS212."""
    name = column.name.text
    if any(f.name.casefold() == name.casefold() for f in stream.schema):
        message = f"stream {stream.name} has a column `{name}` already"
        raise error("DS212", message, column.name, "choose another name")
    made = _field(column, catalog)
    return made if made.default is not None else replace(made, default=Default(None))


def _field(column: ast.ColumnDef, catalog: Catalog) -> Field:
    made = Field(column.name.text, type_of(column.type), None, not column.not_null)
    if column.default is None:
        return made
    return replace(made, default=Default(default_of(column.default, made, catalog)))


def _index_by(names: Sequence[ast.Ident], schema: Schema) -> tuple[int, ...]:
    """The columns of INDEX BY.  Raises DS229."""
    found: list[int] = []
    for name in names:
        at = column_index(schema, name, "INDEX BY")
        field = schema[at]
        if at in found:
            message = f"INDEX BY names `{field.name}` twice"
            raise error("DS229", message, name, "name each column once")
        if field.type.kind in UNINDEXED:
            message = f"{field.name} is {field.type}, which can't be indexed"
            hint = "INDEX BY takes columns that many one-time queries ask for by =, IN or a range"
            raise error("DS229", message, name, hint)
        found.append(at)
    return tuple(found)


# ---------------------------------------------------------------- time


def _timestamp(by: ast.TimestampBy | None, schema: Schema) -> tuple[int | None, str | None]:
    if by is None:
        return None, None
    index = column_index(schema, by.column, "TIMESTAMP BY")
    column = schema[index]
    if column.type == TIMESTAMP:
        if by.unit is not None:
            hint = "leave UNIT out: it is for INT columns"
            raise error(
                "DS224", f"{column.name} is a TIMESTAMP, whose unit is known", by.column, hint
            )
        return index, None
    if column.type != INT:
        message = (
            f"TIMESTAMP BY needs a TIMESTAMP or INT column, and {column.name} is {column.type}"
        )
        raise error("DS223", message, by.column, "declare the column TIMESTAMP, or INT with a UNIT")
    if by.unit not in UNITS:
        got = "none is given" if by.unit is None else f"{by.unit} is none"
        message = f"{column.name} is INT: it needs a UNIT, and {got}"
        raise error(
            "DS224", message, by.column, f"write TIMESTAMP BY {column.name} UNIT s (or ms, us, ns)"
        )
    return index, by.unit


def _check_event_time(statement: ast.CreateStream) -> None:
    """Rows stamped on arrival are never late and never early."""
    if statement.timestamp is not None:
        return
    clauses = (
        ("SLACK", statement.slack),
        ("LATE", statement.late),
        ("MAX FUTURE", statement.max_future),
    )
    for name, clause in clauses:
        if clause is not None:
            hint = "add TIMESTAMP BY column, or leave it out"
            raise error(
                "DS228", f"{name} needs event time: this stream is stamped on arrival", clause, hint
            )


def _late_into(late: ast.Late | None, schema: Schema, catalog: Catalog) -> str | None:
    if late is None or late.into is None:
        return None
    found = catalog.find(late.into.text, late.into.quoted)
    if found is None:
        hint = suggest(late.into.text, [s.name for s in catalog.streams.values()], "streams")
        raise error(
            "DS203",
            f"LATE INTO: unknown stream `{late.into.text}`",
            late.into,
            hint or "declare it first",
        )
    if not isinstance(found, StreamDef):
        raise error(
            "DS216", f"LATE INTO: {found.name} is a {kind_of(found)}", late.into, "name a stream"
        )
    check_no_key(found, late.into, "late rows of others")
    if found.computed:
        message = f"columns of {found.name} are computed, and late rows have all of theirs"
        raise error("DS225", message, late.into, "declare that stream without AS (...)")
    if [f.type for f in found.schema] != [f.type for f in schema]:
        wanted = ", ".join(str(f.type) for f in schema)
        has = ", ".join(str(f.type) for f in found.schema)
        message = f"late rows have the columns ({wanted}), and {found.name} has ({has})"
        raise error(
            "DS225",
            message,
            late.into,
            "declare that stream with the same column types in the same order",
        )
    return found.address


def check_late_places(late: ast.Late | None, definition: StreamDef, catalog: Catalog) -> None:
    """Raise DS225 where a column of one name stands at two places: late rows go by places.  Streams
    that were declared before this was looked at stay as they are."""
    if late is None or late.into is None:
        return
    into, schema = late.into, definition.schema
    found = catalog.find(into.text, into.quoted)
    assert isinstance(found, StreamDef)
    places = {f.name.casefold(): k for k, f in enumerate(found.schema)}
    for k, field in enumerate(schema):
        there = places.get(field.name.casefold(), k)
        if there != k:
            raise error(
                "DS225",
                f"late rows have `{field.name}` as column {k + 1}, and {found.name} has it as "
                f"column {there + 1}",
                into,
                "values go by their places: declare both streams with their columns in one order",
            )


def _cluster(archive: ast.Archive | None, schema: Schema) -> str | None:
    if archive is None or archive.cluster_by is None:
        return None
    return schema[column_index(schema, archive.cluster_by, "CLUSTER BY")].name
