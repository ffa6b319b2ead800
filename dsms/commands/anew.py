"""Registered queries bound again, as their owners would bind them now."""

from __future__ import annotations

from dataclasses import replace

from dsms.rights.model import Rights
from dsms.rights.seen import seen
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_query
from dsms.sql.binder.feeding import feeding
from dsms.sql.catalog import Catalog, QueryDef, StreamDef
from dsms.sql.parser import parse_one


def bound_again(runtime: Runtime, query: Registered) -> tuple[QueryDef, lp.Output]:
    """What a query was declared as, with what its owner may read now.  Raises what binding it
    raises."""
    statement = parse_one(query.definition.sql)
    assert isinstance(statement, ast.CreateQuery)
    catalog = known_to(runtime, query, runtime.catalog, runtime.rights)
    definition, bound = bind_create_query(
        replace(statement, if_not_exists=False), catalog, query.definition.sql
    )
    assert bound is not None
    definition = replace(definition, place=query.definition.place)
    feeds, places = query.definition.feeds, query.definition.places
    if feeds is not None and statement.into is None:  # the query of a derived stream
        return replace(definition, feeds=feeds, places=places), feeding(statement, bound)
    return definition, bound


def known_to(runtime: Runtime, query: Registered, there: Catalog, rights: Rights) -> Catalog:
    """Of a catalog, what the text of a query is bound to, by its owner's rights."""
    over = {Catalog.key(name) for name in query.definition.over}
    read = {key: found for key, found in there.queries.items() if key in over}
    known = Catalog(as_read(there.streams, query), there.tables, read, there.plans, there.moved)
    return seen(known, rights, rights.owners.get(query.home))


def as_read(streams: dict[str, StreamDef], query: Registered) -> dict[str, StreamDef]:
    """The streams with the columns that the query was registered with."""
    scans = [n for n in lp.leaves_of(query.output) if isinstance(n, lp.StreamScan)]
    widths = {scan.stream.home: len(scan.stream.schema) for scan in scans}
    found = {key: streams[key] for key in widths if key in streams}
    return {
        **streams,
        **{key: replace(s, schema=s.schema[: widths[key]]) for key, s in found.items()},
    }
