"""ALTER STREAM and ALTER TABLE ... RENAME: another name for the object, or for one of its columns.

What is kept of the object goes by its place (`dsms.sql.catalog.Placed`), so that nothing that runs
notices.  What is rewritten are texts: of the object itself, of what reads it, feeds it or sends
late rows to it, and of the conditions under which it is granted.  Each query that names it is
bound twice, by its old text and by the new one; where these are not the same plan with the same
names of columns, nothing is renamed (DS434).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import cast

from dsms.api import Done
from dsms.commands.anew import known_to
from dsms.commands.define import check_free, check_name
from dsms.commands.dropping import kind_of, unknown
from dsms.commands.naming import call
from dsms.commands.naming import rename as rename_query
from dsms.commands.store import Store
from dsms.commands.succeeding import check_unread
from dsms.errors import DsmsError, UsageError
from dsms.plan.parts import told_of
from dsms.rights.model import Grant, Rights
from dsms.rights.seen import expression
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import ast, renaming
from dsms.sql import logical as lp
from dsms.sql.ast import Pos
from dsms.sql.binder import bind_create_query
from dsms.sql.binder.derived import SUFFIX
from dsms.sql.binder.objects import column_index
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.codes import error
from dsms.sql.declared import named_in
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.storage.redefine import redefine

Owned = StreamDef | TableDef
Statement = ast.Rename | ast.RenameColumn
MOST = 1000  # places of a text at which a column may stand


@dataclass(slots=True)
class Change:
    """All that is declared otherwise: the object itself, others whose texts name it, the rights on
    it, and the query that feeds it under its name (its key, and what it is then).

    asker  what who asks for it sees"""

    runtime: Runtime
    statement: Statement
    asker: Catalog
    before: Owned
    after: Owned
    streams: dict[str, StreamDef] = field(default_factory=dict)
    queries: dict[str, QueryDef] = field(default_factory=dict)
    rights: Rights | None = None
    feeder: tuple[str, QueryDef] | None = None

    def known(self, query: Registered, new: bool) -> Catalog:
        """What the query's text is bound to, before or after."""
        runtime = self.runtime
        rights = runtime.rights
        if not new:
            return known_to(runtime, query, runtime.catalog, rights)
        there, found = runtime.catalog, self.after
        streams, tables = dict(there.streams), dict(there.tables)
        if isinstance(found, StreamDef):
            streams[found.home] = found
        else:
            tables[found.home] = found
        catalog = Catalog(streams, tables, there.queries, there.plans, dict(there.moved))
        catalog.moves(found)
        return known_to(runtime, query, catalog, self.rights or rights)

    def store(self, store: Store) -> None:
        """Write it down, in one."""
        changed = (self.after, *self.streams.values())
        queries = {k: d for k, d in self.queries.items() if _stored(self.runtime, d)}

        def write(catalog_store: object) -> None:
            for one in changed:
                redefine(catalog_store, one.home, one)  # type: ignore[arg-type]
            for key, query in queries.items():
                redefine(catalog_store, key, query)  # type: ignore[arg-type]

        store(write, "statement", to_sql(self.statement).encode())

    def apply(self) -> None:
        """From here on it is so."""
        runtime = self.runtime
        runtime.catalog.moves(self.after)
        for stream in self.streams.values():
            runtime.redeclare(stream)
        _redeclare(runtime, self.before, self.after)
        for key, definition in self.queries.items():
            call(runtime, runtime.queries[key], definition)
            runtime.catalog.queries[key] = definition
        runtime.rights = self.rights or runtime.rights
        if self.feeder is not None:
            rename_query(runtime, *self.feeder)


def _stored(runtime: Runtime, query: QueryDef) -> bool:
    """Whether it has a declaration of its own: that of a derived stream makes its query, too."""
    stream = runtime.catalog.streams.get(Catalog.key(query.feeds or ""))
    return stream is None or Catalog.key(stream.derived or "") != query.home


def _redeclare(runtime: Runtime, before: Owned, after: Owned) -> None:
    key = after.home
    if isinstance(after, TableDef):
        runtime.catalog.tables[key] = after
        runtime.tables[key].redeclare(after)
        return
    runtime.redeclare(after)
    runtime.figures[key].definition = after
    if runtime.durable is not None:
        runtime.durable.schemas[key] = after.schema
    if key in runtime.archivings:
        archiving = runtime.archivings[key]
        archiving.address, archiving.name = after.address, after.name
        archiving.schema = after.schema


def _found(runtime: Runtime, statement: Statement, catalog: Catalog) -> Owned:
    """The object that is meant.  Raises DS401."""
    name, kind = statement.name, statement.kind.value.lower()
    found = catalog.find(name.text, name.quoted)
    if found is None or kind_of(found) != kind:
        raise unknown(catalog, name, found, kind)
    runtime.begin_all()  # whoever takes over does, and has a text that can be changed
    return cast(Owned, runtime.catalog.at(found.home))


# ---------------------------------------------------------------- another name


def rename_object(runtime: Runtime, store: Store, statement: ast.Rename, catalog: Catalog) -> Done:
    """The stream or table has another name.  Raises DS401, DS213 (that is taken), DS415, DS433 (its
    query goes by its name, and is read), DS434."""
    before = _found(runtime, statement, catalog)
    _check_taken(runtime, statement.to, before.home, catalog)
    check_name(statement.to.text)
    said = renaming.under(_said(before), before.name, statement.to)
    if isinstance(before, StreamDef) and before.key:
        what = f"the query that keeps what stream {before.name} holds is called after it"
        raise UsageError("DS433", what, hint="declare another stream, and send it the rows")
    change = Change(runtime, statement, catalog, before, _under(before, statement.to, to_sql(said)))
    if isinstance(before, StreamDef) and before.derived is not None:
        change.feeder = _feeder(runtime, before, statement, catalog)
        if change.feeder is not None:
            derived = change.feeder[1].address
            change.after = replace(cast(StreamDef, change.after), derived=derived)
    change.rights = _rights(
        runtime.rights, before.home, lambda e: renaming.over(e, before.name, statement.to)
    )
    for key, query in _naming(runtime, before):
        text = renaming.under(_query_of(query), before.name, statement.to)
        _check_same(change, query, text)
        _rewritten(change, key, query, text)
    for key, stream in runtime.catalog.streams.items():
        if stream.late_into is not None and Catalog.key(stream.late_into) == before.home:
            sql = to_sql(renaming.under(_said(stream), before.name, statement.to))
            change.streams[key] = replace(stream, sql=sql)
    change.store(store)
    change.apply()
    what = kind_of(before)
    return Done(f"{what} {before.name} is called {statement.to.text} now")


def _check_taken(runtime: Runtime, to: ast.Ident, own: str, catalog: Catalog) -> None:
    there = runtime.catalog.find(to.text)
    if there is not None and there.home == own:
        return
    check_free(runtime, to)
    if there is not None or catalog.hides(to.text):
        raise error("DS213", f"the name {to.text} is taken", to, "choose another name")


def _under(found: Owned, name: ast.Ident, sql: str) -> Owned:
    place = "" if found.home == name.text.casefold() else found.address
    return replace(found, name=name.text, place=place, sql=sql)


def _feeder(
    runtime: Runtime, stream: StreamDef, statement: ast.Rename, catalog: Catalog
) -> tuple[str, QueryDef] | None:
    """The query of a derived stream is called after it."""
    query = runtime.queries[Catalog.key(stream.derived or "")]
    if query.name != stream.name + SUFFIX:
        return None
    check_unread(runtime, query, "DS433")
    name = ast.Ident(statement.to.text + SUFFIX, quoted=True, pos=statement.to.pos)
    _check_taken(runtime, name, query.home, catalog)
    key = runtime.catalog.key_of(name.text)
    place = "" if key == name.text.casefold() else key
    sql = to_sql(replace(_query_of(query), name=name))
    return query.home, replace(query.definition, name=name.text, sql=sql, place=place)


# ---------------------------------------------------------------- another name of a column


def rename_column(
    runtime: Runtime, store: Store, statement: ast.RenameColumn, catalog: Catalog
) -> Done:
    """A column has another name.  Raises DS401, DS201, DS212 (there is one of that name), DS439
    (it is that of a query, or of an archive), DS434."""
    before = _found(runtime, statement, catalog)
    at = column_index(before.schema, statement.column, "RENAME COLUMN")
    old, new = before.schema[at].name, statement.to
    for k, other in enumerate(before.schema):
        if k != at and other.name.casefold() == new.text.casefold():
            message = f"{kind_of(before)} {before.name} has a column `{other.name}` already"
            raise error("DS212", message, new, "choose another name")
    _check_own(before, statement)
    said = renaming.own_column(_said(before), old, new)
    schema = (
        *before.schema[:at],
        replace(before.schema[at], name=new.text),
        *before.schema[at + 1 :],
    )
    after = replace(before, schema=schema, sql=to_sql(said))
    if isinstance(after, StreamDef) and after.archive_cluster == old:
        after = replace(after, archive_cluster=new.text)
    change = Change(runtime, statement, catalog, before, after)
    change.rights = _rights(
        runtime.rights,
        before.home,
        lambda e: renaming.over_column(e, old, new),
        lambda column: new.text if column == old else column,
    )
    for key, query in _naming(runtime, before):
        text = _with_column(change, query, old, new)
        _rewritten(change, key, query, text)
    archiving = runtime.archivings.get(before.home)
    if archiving is not None and (not runtime.replaying or archiving.place is not None):
        archiving.call(old, new.text)
    change.store(store)
    change.apply()
    return Done(f"column {old} of {before.name} is called {new.text} now")


def _check_own(found: Owned, statement: ast.RenameColumn) -> None:
    """Raise DS439 where the column's name is not its own."""
    if not isinstance(found, StreamDef):
        return
    why, helps = "", "name it with AS where it is read"
    if found.derived is not None:
        why = "its columns are those of its query"
    elif found.key:
        why = "the query that keeps what it holds has columns of these names"
    elif found.weight is not None and statement.column.matches(found.schema[found.weight].name):
        why = "it says what rows of a stream that sheds stand for"
    if why:
        message = f"a column of {found.name} can't have another name: {why}"
        pos = statement.column.pos
        raise UsageError("DS439", message, pos.line, pos.column, helps)


def _with_column(change: Change, query: Registered, old: str, new: ast.Ident) -> ast.CreateQuery:
    """The query's text, in which the column is called `new` wherever that column is meant: where it
    is not known any more by its old name."""
    said, name = _query_of(query), change.before.name
    if said.into is not None and Catalog.key(query.definition.feeds or "") == change.before.home:
        said = renaming.target_column(said, old, new)
    columns = [f.name for f in change.known(query, new=False).columns(_as_read(change, query))]
    if old in columns:
        said = renaming.spelled_out(said, name, columns, old, new)
    said = renaming.in_blocks(said, name, old, new)
    for _ in range(MOST):
        try:
            _bound(said, change.known(query, new=True))
        except DsmsError as problem:
            if problem.code != "DS201" or problem.line is None or problem.column is None:
                raise _other(change, query, problem.message) from None
            changed = renaming.at(said, Pos(problem.line, problem.column), old, new)
            if changed == said:
                raise _other(change, query, problem.message) from None
            said = changed
        else:
            break
    _check_same(change, query, said)
    return said


def _as_read(change: Change, query: Registered) -> Owned:
    found = change.known(query, new=False).at(change.before.home)
    return cast(Owned, change.before if found is None else found)


# ---------------------------------------------------------------- texts


def _said(found: Owned) -> renaming.Owned:
    return cast(renaming.Owned, parse_one(found.sql))


def _query_of(query: Registered) -> ast.CreateQuery:
    return cast(ast.CreateQuery, parse_one(query.definition.sql))


def _naming(runtime: Runtime, found: Owned) -> Iterator[tuple[str, Registered]]:
    """The queries whose texts name the object."""
    for key, query in runtime.queries.items():
        if any(found.name.casefold() == n.casefold() for n in named_in(_query_of(query))):
            yield key, query


def _rewritten(change: Change, key: str, query: Registered, text: ast.CreateQuery) -> None:
    """The query has another text; and so has the stream that was derived with it."""
    definition = replace(query.definition, sql=to_sql(text))
    change.queries[key] = definition
    into = Catalog.key(query.definition.feeds or "")
    stream = change.runtime.catalog.streams.get(into)
    if stream is not None and Catalog.key(stream.derived or "") == key:
        said = cast(ast.CreateStream, _said(stream))
        change.streams[into] = replace(stream, sql=to_sql(replace(said, query=text.query)))


def _rights(
    rights: Rights,
    key: str,
    to: Callable[[ast.Expr], ast.Expr],
    named: Callable[[str], str] = lambda column: column,
) -> Rights:
    """Grants on the object, with other names of columns, masks and conditions."""

    def text(said: str) -> str:
        return to_sql(to(expression(said)))

    def changed(grant: Grant) -> Grant:
        masks = tuple((named(c), text(shown)) for c, shown in grant.masks)
        where = None if grant.where is None else text(grant.where)
        return Grant(tuple(map(named, grant.columns)), masks, where)

    grants = {p: changed(g) if p[1] == key else g for p, g in rights.grants.items()}
    return replace(rights, grants=grants)


# ---------------------------------------------------------------- meanings


def _bound(said: ast.CreateQuery, known: Catalog) -> tuple[QueryDef, lp.Output]:
    definition, bound = bind_create_query(replace(said, if_not_exists=False), known)
    assert bound is not None
    return definition, bound


def _check_same(change: Change, query: Registered, text: ast.CreateQuery) -> None:
    """Raise DS434 where the new text means something else than the one before."""
    if change.runtime.replaying:
        return
    try:
        was, before = _bound(_query_of(query), change.known(query, new=False))
    except DsmsError:  # it runs by what it meant once: of what it means now nobody could tell
        return
    try:
        text = cast(ast.CreateQuery, parse_one(to_sql(text)))
        is_, after = _bound(text, change.known(query, new=True))
    except DsmsError as problem:
        raise _other(change, query, problem.message) from None
    columns = [f.name for f in before.schema] == [f.name for f in after.schema]
    if not columns or told_of(before) != told_of(after) or was.places != is_.places:
        raise _other(change, query, "its text would mean something else")


def _other(change: Change, query: Registered, why: str) -> UsageError:
    """DS434; of a query that who asks does not see there is nothing to say."""
    pos, shown = change.statement.pos, change.asker.find(query.name) is not None
    name = query.name if shown else "of another user"
    return UsageError(
        "DS434",
        f"query {name} can't speak of it by another name{f': {why}' if shown else ''}",
        pos.line,
        pos.column,
        "choose another name" + f", or CREATE OR REPLACE QUERY {name} with aliases first" * shown,
    )
