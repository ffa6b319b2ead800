"""CREATE, DROP and DESCRIBE of functions and aggregates of one's own, and SHOW AGGREGATES.

Nothing rests on one: what calls it is kept with what it stands for.  So one that is dropped or
replaced changes no query that is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dsms.aggregates.cards.python import PYTHON_AGGREGATE
from dsms.api import Done, Rows
from dsms.commands.planning import is_big
from dsms.commands.rows import as_rows
from dsms.commands.store import Store
from dsms.errors import DsmsError, UsageError
from dsms.python_functions import host
from dsms.rights.seen import refused
from dsms.running.runtime import Runtime
from dsms.sql import ast, functions
from dsms.sql.binder import bind_create_query, bind_create_stream, bind_derived_stream
from dsms.sql.binder.expansion import aggregates_of, body_of, expanded, settled
from dsms.sql.binder.own_functions import bind_create_function
from dsms.sql.catalog import Catalog, FunctionDef
from dsms.sql.codes import error
from dsms.sql.expr import PYTHON
from dsms.sql.functions import Card
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint, listed
from dsms.sql.types import STRING
from dsms.storage.functions import add_function, drop_function

SUBTRACTED = "a running synopsis (two cells a span), intervals, basic intervals, landmarks"
COMBINED = "intervals, basic intervals"
SAMPLED = "summaries of sub-windows: with SLIDE, or asked once"


def plainly(statement: ast.Statement, sql: str, catalog: Catalog) -> tuple[ast.Statement, str]:
    """The statement without calls of functions of one's own, and its text."""
    if not catalog.sees_all and any(map(_is_python, ast.walk(statement))):
        raise refused(catalog.user, "ADMIN", None)  # it would call what nobody has made for him
    made = expanded(statement, catalog)
    if made is statement:
        return statement, sql
    made = _settled(made, sql, catalog)
    return made, to_sql(made)


def _is_python(part: ast.Node) -> bool:
    return isinstance(part, ast.FuncCall) and part.name.text.casefold() in (
        PYTHON,
        PYTHON_AGGREGATE,
    )


def _settled(statement: ast.Statement, sql: str, catalog: Catalog) -> ast.Statement:
    """What is stored as text has casts only where they are needed, which binding it tells.  What
    can't be bound stays as it is: whoever runs it says why."""
    try:
        match statement:
            case ast.CreateQuery() if not is_big(statement, sql):
                bind_create_query(statement, catalog)
            case ast.CreateStream(query=ast.Query()):
                bind_derived_stream(statement, catalog, "")
            case ast.CreateStream():
                bind_create_stream(statement, catalog)
            case _:
                return statement
    except DsmsError:
        return statement
    made: ast.Statement = settled(statement)
    return made


# ---------------------------------------------------------------- CREATE and DROP


def create_function(
    runtime: Runtime, store: Store, statement: ast.CreateFunction, catalog: Catalog
) -> Done:
    """Declare a function.  Raises DS213 where its name is taken, DS670, and what binding it
    raises."""
    name = statement.name
    old = runtime.catalog.functions.get(name.text.casefold())
    kind = statement.kind.lower()
    if old is not None and (old.kind != kind or not _may_be_there(statement)):
        message = f"the name {name.text} is taken by {_a(old.kind)}"
        hint = f"choose another name, or DROP {old.kind.upper()} {old.name} first"
        raise error("DS213", message, name, hint)
    if old is not None and statement.if_not_exists:
        return Done(f"{kind} {old.name} is there already")
    if old is not None:
        _check_owner(runtime, old, name, catalog)
    warnings: tuple[str, ...] = ()
    made = bind_create_function(statement, catalog, runtime.replaying)
    if isinstance(statement.body, ast.PythonSource) and not runtime.replaying:
        statement, warnings = _seen(statement, statement.body)
        made = bind_create_function(statement, catalog)
    text = made.sql.replace("CREATE", "CREATE OR REPLACE", 1) if old is not None else made.sql
    store(lambda s: add_function(s, made, old), "statement", text.encode())
    runtime.catalog.functions[made.name.casefold()] = made
    runtime.rights = runtime.rights.without(made.home).owned(made.home, catalog.user)
    return Done(f"{kind} {made.name} {'created' if old is None else 'replaced'}", warnings)


def _seen(
    statement: ast.CreateFunction, said: ast.PythonSource
) -> tuple[ast.CreateFunction, tuple[str, ...]]:
    """With the fingerprint of the source as it is; a note where it was another one.  Raises DS246
    to DS248."""
    found, _ = host.check(said.place, statement.kind is ast.FunctionKind.AGGREGATE)
    changed = said.fingerprint is not None and said.fingerprint != found
    told = (f"the source of {said.place} is not the one that this was written down with",)
    return replace(statement, body=replace(said, fingerprint=found)), told if changed else ()


def changed_sources(catalog: Catalog) -> list[str]:
    """What is to be said of functions in Python whose source is gone, or another one."""
    told = []
    for one in catalog.functions.values():
        why = one.python and host.has_changed(one.python, one.fingerprint)
        if why:
            told.append(f"{one.kind} {one.name}: {why} since it was made")
    return told


def drop_own(
    runtime: Runtime, store: Store, statement: ast.DropFunction, sql: str, catalog: Catalog
) -> Done:
    """Forget a function.  Raises DS401, DS670."""
    kind, name = statement.kind.lower(), statement.name
    old = catalog.functions.get(name.text.casefold())
    if old is None and statement.if_exists:
        return Done(f"there is no {kind} {name.text}")
    found = known(catalog, statement.kind, name)
    _check_owner(runtime, found, name, catalog)
    store(lambda s: drop_function(s, found), "statement", sql.encode())
    del runtime.catalog.functions[found.name.casefold()]
    runtime.rights = runtime.rights.without(found.home)
    return Done(f"{kind} {found.name} dropped")


def known(catalog: Catalog, kind: str, name: ast.Ident) -> FunctionDef:
    """The function of that name and kind.  Raises DS401."""
    found = catalog.functions.get(name.text.casefold())
    if found is not None and found.kind == kind.lower():
        return found
    message = f"there is no {kind.lower()} {name.text}"
    if found is not None:
        message = f"{found.name} is {_a(found.kind)}, not {_a(kind.lower())}"
    elif functions.is_scalar(name.text) or functions.is_aggregate(name.text):
        message = f"{name.text.upper()} is built in"
    names = [f.name for f in catalog.functions.values() if f.kind == kind.lower()]
    near = hint(name.text, names, f"{kind.lower()}s") or "SHOW FUNCTIONS lists all"
    raise UsageError("DS401", message, name.pos.line, name.pos.column, near)


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "aggregate" else f"a {kind}"


def _check_owner(runtime: Runtime, found: FunctionDef, name: ast.Ident, catalog: Catalog) -> None:
    """All may call it; who made it may replace and drop it, and an administrator.  Raises DS670."""
    if not runtime.rights.owns(catalog.user, found.home):
        raise refused(catalog.user, "ADMIN", found.name, name)


# ---------------------------------------------------------------- SHOW and DESCRIBE


def show_aggregates(catalog: Catalog) -> Rows:
    """SHOW AGGREGATES: those of one's own, by name."""
    found = sorted((f for f in catalog.functions.values() if f.aggregate), key=lambda f: f.home)
    return as_rows(
        [
            ("aggregate", STRING, [f.name for f in found]),
            ("arguments", STRING, [f.arguments for f in found]),
            ("result", STRING, [str(f.type) for f in found]),
            ("text", STRING, [f.body for f in found]),
            ("subtractable", STRING, ["yes" if subtractable(f) else "no" for f in found]),
            ("evaluation", STRING, [evaluation(f) for f in found]),
        ]
    )


def describe_function(found: FunctionDef) -> Rows:
    """DESCRIBE AGGREGATE and FUNCTION: a line for each thing that there is to say."""
    lines = [
        ("kind", found.kind),
        ("arguments", found.arguments or None),
        ("result", str(found.type)),
        ("text", found.body),
        *((("source", _source(found)),) if found.python else ()),
        *(_of_aggregate(found) if found.aggregate else ()),
    ]
    names, values = zip(*lines, strict=True)
    return as_rows([("property", STRING, list(names)), ("value", STRING, list(values))])


def _source(found: FunctionDef) -> str:
    why = host.has_changed(found.python, found.fingerprint)
    return f"{found.python}, SHA-256 {found.fingerprint}{f' ({why})' if why else ''}"


def _of_aggregate(found: FunctionDef) -> Iterator[tuple[str, str]]:
    parts = [to_sql(part) for part in aggregates_of(body_of(found))]
    yield "made of", listed(parts) if len(parts) > 12 else ", ".join(parts)
    kept = [to_sql(p) for p, card in _cards(found) if not card.invertible]
    kept = [] if subtractable(found) else kept
    yield "subtractable", "yes" if not kept else f"no: {', '.join(kept)}"
    yield "evaluation", evaluation(found)
    yield "served by", served(found)


def _cards(found: FunctionDef) -> list[tuple[ast.FuncCall, Card]]:
    return [(p, functions.aggregate(p.name.text)) for p in aggregates_of(body_of(found))]


def subtractable(found: FunctionDef) -> bool:
    """Whether what leaves a window can be taken out of all of its parts."""
    if found.python:
        try:
            return host.check(found.python, aggregate=True)[1]
        except DsmsError:
            return False
    return all(card.invertible for _, card in _cards(found))


def evaluation(found: FunctionDef) -> str:
    """Whether its parts find a value of the window (searching) or compute one from all of them
    (processing): Dani and Getta 2005, §5."""
    searching = {card.picks or card.ordered for _, card in _cards(found)}
    if len(searching) > 1:
        return "processing and searching"
    return "searching" if searching == {True} else "processing"


def served(found: FunctionDef) -> str:
    """What periodic queries may keep for it."""
    if any(card.sampled for _, card in _cards(found)):
        return SAMPLED
    return SUBTRACTED if subtractable(found) else COMBINED


def function_lines(catalog: Catalog) -> Iterator[Sequence[str | None]]:
    """Lines of SHOW FUNCTIONS."""
    for found in catalog.functions.values():
        kind = "aggregate" if found.aggregate else "scalar"
        meaning = f"Of one's own: {found.body}"
        yield found.name, kind, found.arguments, str(found.type), meaning, None


def _may_be_there(statement: ast.CreateFunction) -> bool:
    return statement.if_not_exists or statement.or_replace
