"""ALTER STREAM s SET (shed = random, shed_delay = 5 s): what a stream that may shed does from here
on."""

from __future__ import annotations

from dataclasses import replace

from dsms.api import Done
from dsms.commands.set_clock import stream_key
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.binder.options import check_options
from dsms.sql.binder.shedding import SHEDDING
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql


def set_stream(runtime: Runtime, store: Store, statement: ast.SetStream, catalog: Catalog) -> Done:
    """Its options have other values from here on.

    Raises DS401 no such stream, DS214, DS215, DS427 what it can't set, or a stream whose rows have
    no weights."""
    key = stream_key(runtime, statement.name, catalog)
    before = runtime.catalog.streams[key]
    said = dict(check_options(statement.options, "stream"))
    for option in statement.options:
        _check(before, option)
    after = _with(before, statement.options)
    store(lambda s: s.redeclare(after), "statement", to_sql(statement).encode())
    runtime.redeclare(after)
    if said.get("shed") == "none" and (shedder := runtime.inputs[key].shedder) is not None:
        shedder.begin_anew()
    return Done(f"stream {before.name}: {', '.join(said)} set")


def _check(stream: StreamDef, option: ast.Option) -> None:
    name, pos = option.name.text.casefold(), option.pos
    if name not in SHEDDING:
        message, helps = f"{name} stays as stream {stream.name} was declared", "drop and declare it"
        raise UsageError("DS427", message, pos.line, pos.column, helps)
    if stream.weight is None:
        message = f"rows of stream {stream.name} have no weights, which shedding gives them"
        helps = "declare a stream WITH (shed = none), and it may be set at any time"
        raise UsageError("DS427", message, pos.line, pos.column, helps)


def _with(stream: StreamDef, options: tuple[ast.Option, ...]) -> StreamDef:
    statement = parse_one(stream.sql)
    assert isinstance(statement, ast.CreateStream)
    names = {o.name.text.casefold() for o in options}
    kept = [o for o in statement.options if o.name.text.casefold() not in names]
    made = replace(statement, options=(*kept, *options))
    return replace(stream, sql=to_sql(made), options=check_options(made.options, "stream"))
