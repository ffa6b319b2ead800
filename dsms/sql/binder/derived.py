"""CREATE STREAM ... AS SELECT: the stream, and the query that it consists of."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.definitions import stream_def, taken_by, with_reads
from dsms.sql.binder.feeding import check_columns, feeding
from dsms.sql.binder.options import OPTIONS, check_options
from dsms.sql.binder.query import bind_query
from dsms.sql.binder.shedding import SHEDDING
from dsms.sql.catalog import INSTANT, Catalog, QueryDef, StreamDef
from dsms.sql.codes import error
from dsms.sql.logical import Output
from dsms.sql.printer import to_sql
from dsms.sql.types import TIMESTAMP, Field

SUFFIX = "_feed"  # behind the name of the stream: the name of its query


def bind_derived_stream(
    statement: ast.CreateStream, catalog: Catalog, sql: str
) -> tuple[StreamDef, QueryDef, Output] | tuple[StreamDef, None, None]:
    """The stream, its query and the plan of that; without them where IF NOT EXISTS has found it.

    The columns are those of the SELECT; TIMESTAMP BY adds one, which has the instants."""
    taken = taken_by(statement, statement.name, StreamDef, catalog)
    if isinstance(taken, StreamDef):
        return taken, None, None
    _check_clauses(statement)
    assert statement.query is not None
    name = ast.Ident(statement.name.text + SUFFIX, quoted=True, pos=statement.name.pos)
    own = tuple(o for o in statement.options if _of_queries(o))
    query = ast.CreateQuery(name, statement.query, options=own, pos=statement.pos)
    statement = replace(statement, options=tuple(o for o in statement.options if o not in own))
    taken_by(query, name, QueryDef, catalog)
    plan = feeding(query, bind_query(query, catalog))
    schema = tuple(Field(f.name, f.type) for f in plan.schema)
    places = tuple(range(len(schema)))
    at = None if statement.timestamp is None else len(schema)
    if statement.timestamp is not None:
        schema = (*schema, Field(statement.timestamp.column.text, TIMESTAMP))
        places = (*places, INSTANT)
    check_columns(statement, schema)
    made = stream_def(statement, schema, at, None, catalog, sql)
    feeder = QueryDef(
        name.text,
        to_sql(query),
        plan.schema,
        check_options(own, "query"),
        feeds=statement.name.text,
        places=places,
    )
    return replace(made, derived=name.text), with_reads(feeder, plan), plan


def _of_queries(option: ast.Option) -> bool:
    """Whether it says how the query runs; others are of the stream."""
    known = OPTIONS.get(option.name.text.casefold())
    return known is not None and "stream" not in known.on


def _check_clauses(statement: ast.CreateStream) -> None:
    """Rows of a query are never out of order, and its clock is the stream's; DS230."""
    by = statement.timestamp
    clauses = (
        ("KEY", statement.key[0] if statement.key else None),
        ("SLACK", statement.slack),
        ("LATE", statement.late),
        ("MAX FUTURE", statement.max_future),
        ("IDLE TIMEOUT", statement.idle_timeout),
        ("UNIT", by if by is not None and by.unit is not None else None),
    )
    for word, clause in clauses:
        if clause is not None:
            message = f"{word} has no meaning here: the rows and the clock are those of a query"
            raise error("DS230", message, clause, "leave it out")
    for option in statement.options:
        if option.name.text.casefold() == "durability":
            message = "rows of a query are kept as those that it reads are"
            raise error("DS230", message, option, "leave durability out")
        if option.name.text.casefold() in SHEDDING:
            message = "rows of a query can't be shed: those that it reads may be"
            raise error("DS360", message, option, f"leave {option.name.text} out")
