"""DROP of a stream that takes late rows of others (LATE INTO).

Its owner's own streams must go first, as queries must.  Streams of other owners can't keep him from
it: their late rows are dropped, and counted, from then on, as LATE DROP says; they don't go to a
stream that gets the name later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.sql.suggest import listed


def feeding(runtime: Runtime, key: str, others: bool) -> list[StreamDef]:
    """Streams whose late rows go there: those of its owner, or of others."""
    owners = runtime.rights.owners
    owner = owners.get(key)
    return [
        stream
        for name, stream in runtime.catalog.streams.items()
        if stream.late_into
        and Catalog.key(stream.late_into) == key
        and (owner is not None and owners.get(name) != owner) == others
    ]


def late_dropping(stream: StreamDef) -> StreamDef:
    """The stream, declared with LATE DROP."""
    said = cast(ast.CreateStream, parse_one(stream.sql))
    sql = to_sql(replace(said, late=ast.Late(pos=said.pos)))
    return replace(stream, late_into=None, sql=sql)


def fed_note(fed: list[StreamDef], catalog: Catalog) -> tuple[str, ...]:
    """What whoever drops the stream is told; streams that he may not see have no names."""
    if not fed:
        return ()
    known = sorted(s.name for s in fed if catalog.find(s.name) is not None)
    what = listed(known) if len(known) == len(fed) else "streams of others"
    return (f"late rows of {what} are dropped from now on",)
