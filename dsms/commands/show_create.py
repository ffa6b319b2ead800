"""SHOW CREATE: the statements that make again what is declared.

What is shown of an object is all of it or nothing: a definition without what the asker does not see
would make something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsms.api import Rows
from dsms.commands.connectors import declaration as declared_connector
from dsms.commands.connectors import known as known_connector
from dsms.commands.connectors import of_kind
from dsms.commands.dropping import Object, kind_of
from dsms.commands.explain import check_shown, registered
from dsms.commands.own_functions import known
from dsms.commands.rows import as_rows
from dsms.commands.show_create_rights import (
    Line,
    grants,
    known_role,
    memberships,
    role_line,
    user_line,
)
from dsms.commands.slices import Free, one_by_one
from dsms.errors import UsageError
from dsms.rights.seen import seen
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.catalog import Catalog, ConnectorDef, FunctionDef, QueryDef, StreamDef, TableDef
from dsms.sql.declared import Declaration, declaration, named_in, read_by
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint, listed
from dsms.sql.types import STRING


def show_create(runtime: Runtime, statement: ast.ShowCreate, catalog: Catalog) -> Free[Rows]:
    """One line: kind, name and the statement that makes it again; of ALL one for each thing that
    there is at first, in an order in which they can be made.  Raises DS401, DS445, DS670, DS671."""
    lines = yield from one_by_one(_lines(runtime, statement, catalog))
    columns = zip(*lines, strict=True) if lines else ((), (), ())
    names = ("kind", "name", "statement")
    return as_rows([(n, STRING, list(c)) for n, c in zip(names, columns, strict=True)])


def _lines(runtime: Runtime, statement: ast.ShowCreate, catalog: Catalog) -> Iterator[Line]:
    match statement.kind, statement.name:
        case ast.MadeKind.ROLE, ast.Ident() as name:
            yield role_line(known_role(runtime.rights, name, catalog))
        case (ast.MadeKind.AGGREGATE | ast.MadeKind.FUNCTION) as kind, ast.Ident() as name:
            yield _function(known(catalog, kind, name))
        case (ast.MadeKind.SOURCE | ast.MadeKind.SINK) as kind, ast.Ident() as name:
            yield _connector(known_connector(catalog, kind, name), catalog)
        case ast.MadeKind(), ast.Ident() as name:
            yield _object(runtime, statement.kind, name, catalog)
        case _:
            yield from _all(runtime, catalog)


# ---------------------------------------------------------------- one object


def _object(runtime: Runtime, kind: ast.MadeKind, name: ast.Ident, catalog: Catalog) -> Line:
    found = catalog.find(name.text, name.quoted)
    if found is None or kind_of(found) != kind.lower():
        kinds = {"stream": catalog.streams, "table": catalog.tables, "query": catalog.queries}
        names = [d.name for d in kinds[kind.lower()].values()]  # type: ignore[attr-defined]
        message = f"there is no {kind.lower()} {name.text}"
        near = hint(name.text, names)
        raise UsageError("DS401", message, name.pos.line, name.pos.column, near)
    if isinstance(found, QueryDef):
        check_shown(runtime, name, registered(runtime, name, catalog), catalog)
        found = runtime.catalog.whose(found) or found
    if isinstance(found, StreamDef) and found.derived is not None:
        _check_feeder(runtime, found, name, catalog)
    if not isinstance(found, QueryDef):
        _check_whole(found, name, catalog)
    return _line(found, declaration(found))


def _check_feeder(runtime: Runtime, found: StreamDef, name: ast.Ident, catalog: Catalog) -> None:
    """The query of a derived stream is shown to those to whom it would be shown by itself."""
    key = Catalog.key(found.derived or "")
    if key not in catalog.queries or not runtime.rights.owns(catalog.user, key):
        raise _in_part(found, name, f"the query that feeds {found.name} is not for all")
    check_shown(runtime, name, runtime.queries[key], catalog)


def _check_whole(found: StreamDef | TableDef, name: ast.Ident, catalog: Catalog) -> None:
    late = found.late_into if isinstance(found, StreamDef) else None
    whole = catalog.columns(found) == found.schema and not catalog.seen_after(found)
    if not whole or (late is not None and catalog.at(Catalog.key(late)) is None):
        raise _in_part(found, name, f"{catalog.user} sees {found.name} in part alone")


def _in_part(found: StreamDef | TableDef, name: ast.Ident, message: str) -> UsageError:
    hint = f"DESCRIBE {found.name} tells what there is to see"
    return UsageError("DS445", message, name.pos.line, name.pos.column, hint)


def _function(found: FunctionDef) -> Line:
    return found.kind, found.name, found.sql


def _connector(found: ConnectorDef, catalog: Catalog) -> Line:
    return found.kind, found.name, to_sql(declared_connector(found, catalog))


def _line(found: Object, said: Declaration) -> Line:
    return kind_of(found), found.name, to_sql(said)


# ---------------------------------------------------------------- everything


def _all(runtime: Runtime, catalog: Catalog) -> Iterator[Line]:
    """Roles, users, what is declared (each behind what it reads), grants, sources, sinks.  As a
    comment: what would read more if somebody else made it, and what needs that."""
    rights, functions = runtime.rights, list(runtime.catalog.functions.values())
    there, given = _declared(runtime.catalog), list(grants(rights, runtime.catalog))
    yield from map(role_line, rights.roles.values())
    yield from map(user_line, rights.users.values())
    yield from memberships(rights)
    yield from map(_function, functions)
    left_out: set[str] = set()
    for found, said in _in_order(there):
        why = _why_not(runtime, found, said, left_out)
        if why is not None:
            left_out.update(_keys(found))
        yield _line(found, said) if why is None else _comment(_line(found, said), why)
    for key, line in given:
        yield _comment(line) if key in left_out else line
    for one in (*of_kind(runtime.catalog, "source"), *of_kind(runtime.catalog, "sink")):
        line = _connector(one, runtime.catalog)
        yield _comment(line) if Catalog.key(one.object) in left_out else line


def _keys(found: Object) -> set[str]:
    """The key of an object, and that of the query which goes with a stream."""
    own = found.own if isinstance(found, StreamDef) else None
    return {Catalog.key(a) for a in (found.address, own) if a is not None}


def _declared(catalog: Catalog) -> dict[str, Object]:
    """What is declared, by key; queries of streams as those."""
    queries = {k: catalog.whose(q) or q for k, q in catalog.queries.items()}
    return {**catalog.streams, **catalog.tables, **queries}


def _in_order(there: Mapping[str, Object]) -> Iterator[tuple[Object, Declaration]]:
    """Each behind what it names, with the statement that makes it."""
    done: set[str] = set()

    def made(key: str) -> Iterator[tuple[Object, Declaration]]:
        one = there.get(key)
        if one is None or one.name in done:
            return
        done.add(one.name)
        said = declaration(one)
        for other in sorted(map(Catalog.key, named_in(said))):
            yield from made(other)
        yield one, said

    for key in there:
        yield from made(key)


def _why_not(runtime: Runtime, found: Object, said: Declaration, left_out: set[str]) -> str | None:
    """Why an administrator can't make it again as it is; None: he can."""
    needed = sorted(left_out.intersection(map(Catalog.key, named_in(said))))
    if needed:
        return f"{kind_of(found)} {found.name} needs {listed(needed)}:"
    owner = _owner_in_part(runtime, found, said)
    if owner is None:
        return None
    whose = f"{kind_of(found)} {found.name} is {owner}'s, who sees a part of what it reads"
    return f"{whose}; {owner} can make it:"


def _owner_in_part(runtime: Runtime, found: Object, said: Declaration) -> str | None:
    """Who made the query, if it shows him less than it would show to an administrator."""
    name = found.derived if isinstance(found, StreamDef) else found.address
    running = None if name is None else runtime.queries.get(Catalog.key(name))
    owner = None if running is None else runtime.rights.owners.get(running.home)
    if running is None or owner is None:
        return None
    reads = map(Catalog.key, read_by(said))
    late = seen(runtime.catalog, runtime.rights, owner).sees_late(running.reads)
    part = late or any(runtime.rights.views(owner, key) is not None for key in reads)
    holder = runtime.rights.holder(owner)
    return (owner if holder is None else holder.name) if part else None


def _comment(line: Line, why: str | None = None) -> Line:
    """The statement as lines of comments, whatever its strings hold."""
    kind, name, text = line
    return kind, name, "-- " + "\n".join(filter(None, (why, text))).replace("\n", "\n-- ")
