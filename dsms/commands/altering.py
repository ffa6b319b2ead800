"""ALTER QUERY: another name, other options."""

from __future__ import annotations

from dataclasses import replace

from dsms.api import Done
from dsms.commands.define import check_free, check_name
from dsms.commands.explain import registered
from dsms.commands.naming import call, rename
from dsms.commands.store import Store
from dsms.commands.succeeding import check_alone, check_unread, stand
from dsms.errors import UsageError
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.running.letting_go import set_bound, state_limit
from dsms.running.paused import PausedQuery
from dsms.running.prepare import fails
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.binder.options import check_options
from dsms.sql.catalog import Catalog, Option, QueryDef
from dsms.sql.codes import error
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.storage.redefine import redefine


def rename_query(
    runtime: Runtime, store: Store, statement: ast.RenameQuery, catalog: Catalog
) -> Done:
    """The query has another name.  Raises DS401, DS213 (that is taken), DS415, DS433, DS436."""
    query = registered(runtime, statement.name, catalog)
    key, to = query.home, catalog.key_of(statement.to.text)
    if to != key:
        _check_free(runtime, statement.to, catalog)
    check_name(statement.to.text)
    check_alone(runtime, query)
    _check_own(runtime, query)
    check_unread(runtime, query, "DS433")
    before, definition = query.name, named(query.definition, statement.to, to)
    store(lambda s: redefine(s, key, definition), "statement", to_sql(statement).encode())
    rename(runtime, key, definition)
    return Done(f"query {before} is called {definition.name} now")


def _check_free(runtime: Runtime, name: ast.Ident, catalog: Catalog) -> None:
    check_free(runtime, name)
    if catalog.find(name.text) is not None or catalog.hides(name.text):
        raise error("DS213", f"the name {name.text} is taken", name, "choose another name")


def _check_own(runtime: Runtime, query: Registered) -> None:
    """Its name is nothing else's, too."""
    stream = runtime.catalog.whose(query.definition)
    if stream is not None:
        message = f"query {query.name} belongs to stream {stream.name}, and is called after it"
        raise UsageError("DS433", message)
    if query.archived is not None:
        raise UsageError(
            "DS433",
            f"the archive of query {query.name} is found by that name",
            hint="drop it (its archive stays), and register it under another name",
        )


def named(definition: QueryDef, name: ast.Ident, key: str) -> QueryDef:
    """The same under that name and key."""
    statement = parse_one(definition.sql)
    assert isinstance(statement, ast.CreateQuery)
    statement = replace(statement, name=name, if_not_exists=False)
    place = "" if key == name.text.casefold() else key
    return replace(definition, name=name.text, sql=to_sql(statement), place=place)


# ---------------------------------------------------------------- options

# what can be set while it runs; everything else decides how its plan is made
FREE = (
    "boundaries",
    "description",
    "max_state",
    "on_error",
    "priority",
    "replan",
    "replan_after",
    "result_log",
)


def set_query(runtime: Runtime, store: Store, statement: ast.SetQuery, catalog: Catalog) -> Done:
    """Options of the query have other values from here on.  Raises DS401, DS214, DS215, DS432,
    DS436."""
    query = registered(runtime, statement.name, catalog)
    said = dict(check_options(statement.options, "query"))
    check_alone(runtime, query)
    for option in statement.options:
        _check_free_to_change(query, option)
    key = query.home
    if not isinstance(query, PausedQuery):
        stand(runtime, key)
    for option in statement.options:
        _check_value(query, option, said[option.name.text.casefold()])
    definition = _with(query.definition, statement.options, said)
    store(lambda s: redefine(s, key, definition), "statement", to_sql(statement).encode())
    applied(runtime, key, query, definition)
    return Done(f"query {query.name}: {', '.join(said)} set")


def _with(
    definition: QueryDef, options: tuple[ast.Option, ...], said: dict[str, Option]
) -> QueryDef:
    statement = parse_one(definition.sql)
    assert isinstance(statement, ast.CreateQuery)
    others = [o for o in statement.options if o.name.text.casefold() not in said]
    sql = to_sql(replace(statement, options=(*others, *options)))
    kept = {n: v for n, v in definition.options if n not in said}
    return replace(definition, options=tuple({**kept, **said}.items()), sql=sql)


def _check_free_to_change(query: Registered, option: ast.Option) -> None:
    """Raise DS432 for an option that decides how it is planned."""
    name = option.name.text.casefold()
    if name not in FREE:
        what = f"{name} decides how query {query.name} is planned"
        raise _fixed(what, option)
    if name == "on_error" and isinstance(query, EvaluatedQuery):
        raise _fixed(f"{name} decides how query {query.name} gets at its answers", option)
    if name == "on_error" and isinstance(query, RunningQuery) and query.shares:
        raise _fixed(f"parts of query {query.name} run for other queries, too", option)


def _check_value(query: Registered, option: ast.Option, value: Option) -> None:
    if option.name.text.casefold() != "max_state" or query.lets_go:
        return
    if (used := query.nbytes()) > int(value):
        message = f"query {query.name} keeps {used} bytes of state already"
        pos = option.pos
        raise UsageError("DS432", message, pos.line, pos.column, "PAUSE QUERY gives them back")


def _fixed(what: str, option: ast.Option) -> UsageError:
    hint = "CREATE OR REPLACE QUERY ... AS the same SELECT WITH (...) plans it anew"
    return UsageError("DS432", what, option.pos.line, option.pos.column, hint)


def applied(runtime: Runtime, key: str, query: Registered, definition: QueryDef) -> None:
    """It is declared so from here on, with other options that it may have while it runs."""
    before, after = dict(query.definition.options), dict(definition.options)
    call(runtime, query, definition)
    runtime.catalog.queries[key] = definition
    settings = runtime.settings
    if not definition.on_lookup:
        query.log.shorten(int(after.get("result_log", settings.result_log_rows)))
    inner = getattr(getattr(query, "evaluator", None), "inner", None)
    for one in (query, *([inner] if isinstance(inner, RunningQuery) else [])):
        one.state_limit = state_limit(definition, settings.state_bytes)
        if isinstance(one, RunningQuery):
            one.patience = 1
            set_bound(one)
    mode = str(after.get("on_error", "null"))
    if isinstance(query, RunningQuery) and mode != before.get("on_error", "null"):
        runtime.parts.left(key, query)
        if mode == "stop" and query.sink.kept is None and fails(query.phys):
            query.keep_answer(query.pipeline.answer())
        for errors in (query.errors, *(s.errors for s in query.pipeline.stages if s.errors)):
            errors.mode = "stop" if mode == "stop" else "null"
        runtime.dispatch.anew(key)
        runtime.parts.joined(key)
