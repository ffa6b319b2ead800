"""Queries that feed a stream: CREATE QUERY ... AS INSERT INTO s SELECT, and the one that CREATE
STREAM ... AS SELECT stands on."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.objects import column_index, kind_of
from dsms.sql.binder.options import check_options
from dsms.sql.binder.properties import append_only
from dsms.sql.catalog import INSTANT, NOTHING, Catalog, StreamDef
from dsms.sql.codes import error, suggest
from dsms.sql.logical import Output, StreamScan, leaves_of
from dsms.sql.types import NULL, Schema

Fed = tuple[Output, str, tuple[int, ...]]
HINT = "write Istream(...) around the select list (what enters its answer), or Dstream(...)"


def bind_feeding(statement: ast.CreateQuery, into: ast.Into, plan: Output, catalog: Catalog) -> Fed:
    """The plan, the stream that it feeds, and what stands in each column there."""
    found = catalog.find(into.stream.text, into.stream.quoted)
    if found is None:
        known = [s.name for s in catalog.streams.values()]
        hint = suggest(into.stream.text, known, "streams") or "declare it first"
        raise error("DS203", f"unknown stream `{into.stream.text}`", into.stream, hint)
    if not isinstance(found, StreamDef):
        what = kind_of(found)
        hint = "a query feeds streams; a table is filled by INSERT, UPDATE and DELETE"
        raise error("DS216", f"{found.name} is a {what}", into.stream, hint)
    plan = feeding(statement, plan)
    if found.derived is not None:
        hint = "insert into a stream that was declared with its columns"
        message = f"stream {found.name} consists of what enters the answer of its own query"
        raise error("DS330", message, into.stream, hint)
    if found.stamped:
        message = f"rows of {found.name} are stamped on arrival, and those of a query have instants"
        hint = "declare it TIMESTAMP BY a column, in which the instants are put"
        raise error("DS330", message, into.stream, hint)
    if found.computed:
        message = f"columns of {found.name} are computed: {', '.join(found.made)}"
        hint = "compute them in the query, and feed a stream that is declared without AS (...)"
        raise error("DS330", message, into.stream, hint)
    if found.weight is not None:
        message = f"rows of {found.name} are weighted as they come from outside"
        hint = "feed a stream that is declared without shed"
        raise error("DS360", message, into.stream, hint)
    into_names = {Catalog.key(s.late_into) for s in catalog.streams.values() if s.late_into}
    if found.home in into_names:
        message = f"late rows of other streams go into {found.name}"
        raise error("DS225", message, into.stream, "feed a stream of its own")
    return plan, found.address, _places(statement, into, plan.schema, found)


def feeding(statement: ast.CreateQuery, plan: Output) -> Output:
    """The plan of a query that feeds a stream; DS330 for one that can't."""
    if statement.on_lookup:
        raise error("DS329", "ON LOOKUP tells nothing by itself", statement, "leave it out")
    if not any(isinstance(leaf, StreamScan) for leaf in leaves_of(plan)):
        message = "it reads no stream, and so has no clock"
        raise error("DS330", message, statement.query, "read a stream")
    if dict(check_options(statement.options, "query")).get("boundaries") == "elastic":
        message = "boundaries that are left out under load would be missing in the stream"
        raise error("DS330", message, statement, "write boundaries = every, or leave it out")
    if not plan.explicit and append_only(plan.child):
        return replace(plan, kind="istream", explicit=True)
    if plan.kind == "rstream":
        message = "a stream is fed with rows that enter or leave an answer, not with whole answers"
        raise error("DS330", message, statement.query, HINT)
    return plan


def _places(
    statement: ast.CreateQuery, into: ast.Into, schema: Schema, stream: StreamDef
) -> tuple[int, ...]:
    unsaid = {stream.timestamp, stream.operation if stream.key else None}
    targets = [k for k in range(len(stream.schema)) if k not in unsaid]
    if into.columns:
        targets = [column_index(stream.schema, name, "INSERT INTO") for name in into.columns]
    for at, name in enumerate(into.columns):
        if targets[at] == stream.timestamp:
            message = f"column `{name.text}` is the timestamp: the instants are put there"
            raise error("DS330", message, name, "leave it out")
        if targets[at] in targets[:at]:
            raise error(
                "DS212", f"column `{name.text}` is named twice", name, "name each column once"
            )
    if len(targets) != len(schema):
        names = ", ".join(stream.schema[k].name for k in targets)
        hint = "select one value per column; the timestamp is the instant, and is not selected"
        message = f"{len(schema)} values for {len(targets)} columns ({names})"
        raise error("DS217", message, statement.query, hint)
    places = [NOTHING] * len(stream.schema)
    for n, k in enumerate(targets):
        wanted, has = stream.schema[k], schema[n].type
        if has != wanted.type:
            message = f"column {wanted.name} is {wanted.type}, and the value is {has}"
            hint = f"convert it: CAST(x AS {wanted.type})"
            raise error("DS218", message, statement.query, hint)
        places[k] = n
    if stream.timestamp is not None:
        places[stream.timestamp] = INSTANT
    for column, place in zip(stream.schema, places, strict=True):
        if place == NOTHING and not column.nullable and column.default is None:
            message = f"column {column.name} is NOT NULL and gets no value"
            raise error("DS218", message, into, "give it a value")
    return tuple(places)


def check_columns(statement: ast.CreateStream, schema: Schema) -> None:
    """The columns of a stream that a query gives it: named apart, and typed."""
    assert statement.query is not None
    seen: set[str] = set()
    for f in schema:
        if f.name.casefold() in seen:
            message = f"two columns are called `{f.name}`"
            raise error("DS212", message, statement.query, "name one of them otherwise: ... AS b")
        if f.type == NULL:
            hint = "write CAST(NULL AS type)"
            raise error("DS330", f"column {f.name} has no type", statement.query, hint)
        seen.add(f.name.casefold())
