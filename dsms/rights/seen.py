"""The catalog as one user sees it: without what he has no right on, as if it were not there.

The binder and the commands are given this in place of the catalog, so that whatever they say of
names, of unknown ones or of near ones, tells him nothing of others.  Of what he may read in part,
`views` is what the binder puts over the leaf (`dsms.sql.binder.views`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import UsageError
from dsms.rights.model import Grant, Rights, key_of
from dsms.sql import ast
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef, View
from dsms.sql.parser import parse_one
from dsms.sql.types import Schema

Found = StreamDef | TableDef | QueryDef


@dataclass(slots=True)
class Seen(Catalog):
    """`explained`: EXPLAIN shows the plan without filters and masks, which are nobody's
    business."""

    all: Catalog = field(default_factory=Catalog)
    rights: Rights = field(default_factory=Rights)
    who: str = ""
    explained: bool = False

    @property
    def user(self) -> str | None:
        """The name as it was spelled where the user was made."""
        found = self.rights.users.get(key_of(self.who))
        return self.who if found is None else found.name

    @property
    def sees_all(self) -> bool:
        return self.rights.administers(self.who)

    def views(self, found: Found, at: ast.Node) -> tuple[View, ...] | None:
        """Raises UsageError DS670 if he may read nothing of it."""
        grants = self.rights.views(self.who, found.home)
        if grants is None:
            return None
        if not grants:
            raise refused(self.who, "SELECT", found.name, at)
        return tuple(view(g, found.schema, self.explained) for g in grants)

    def current(self, stream: StreamDef) -> QueryDef | None:
        return self.all.current(stream)

    def seen_after(self, found: Found) -> int:
        return seen_after(self.rights, self.who, found)

    def sees_late(self, streams: Iterable[str]) -> bool:
        found = (self.all.streams.get(key) for key in streams)
        return any(s is not None and self.seen_after(s) > 0 for s in found)

    def columns(self, found: Found) -> Schema:
        """Those that some grant shows; all, where he may do something else with the object."""
        grants = self.rights.views(self.who, found.home)
        if not grants or self.rights.may(self.who, "INSERT", found.home):
            return found.schema
        shown = {c for g in grants for c, _ in view(g, found.schema, True).columns}
        return tuple(f for f in found.schema if f.name in shown)

    def hides(self, name: str) -> bool:
        return self.find(name) is None and self.all.find(name) is not None


def seen_after(rights: Rights, user: str | None, found: Found) -> int:
    """µs after its timestamp at which a user sees a row of it; 0: at once."""
    if not isinstance(found, StreamDef) or found.confidential_to is None:
        return 0
    if rights.trusted(user, found.home, found.confidential_to):
        return 0
    return found.confidential_for or 0


def seen(catalog: Catalog, rights: Rights, user: str | None, explained: bool = False) -> Catalog:
    """The catalog as `user` sees it."""
    if user is None:
        return catalog
    kinds: list[dict[str, Any]] = [catalog.streams, catalog.tables, catalog.queries]  # type: ignore[list-item]
    known = rights.known(user)
    if known is not None:
        kinds = [_known(kind, known) for kind in kinds]
    streams, tables, queries = kinds
    return Seen(
        streams,
        tables,
        queries,
        catalog.plans,
        catalog.moved,
        catalog.functions,
        catalog.connectors,
        all=catalog,
        rights=rights,
        who=user,
        explained=explained,
    )


def _known(kind: dict[str, Any], known: set[str]) -> dict[str, Any]:
    return dict(kind) if known.issuperset(kind) else {k: kind[k] for k in kind if k in known}


def view(grant: Grant, schema: Schema, plain: bool = False) -> View:
    """A grant as syntax; `plain`: its columns alone."""
    masks = {} if plain else dict(grant.masks)
    names = [f.name for f in schema if not grant.columns or f.name in grant.columns]
    columns = tuple((n, expression(masks[n]) if n in masks else None) for n in names)
    return View(columns, None if plain or grant.where is None else expression(grant.where))


def expression(text: str) -> ast.Expr:
    """What `dsms.sql.printer` has made of an expression."""
    parsed = parse_one(f"SELECT {text}")
    assert isinstance(parsed, ast.SelectStatement) and isinstance(parsed.query.body, ast.Select)
    item = parsed.query.body.items[0]
    assert isinstance(item, ast.SelectItem)
    return item.expr


def refused(
    user: str | None, right: str, name: str | None, at: ast.Node | None = None
) -> UsageError:
    """DS670."""
    on = "" if name is None else f" on {name}"
    hint = (
        f"GRANT {right} ON {name or 'ALL'} TO {user}, by {'its owner or ' if name else ''}an "
        "administrator"
    )
    problem = UsageError("DS670", f"{user} has no right {right}{on}", hint=hint)
    if at is not None and at.pos.line:
        problem.line, problem.column = at.pos.line, at.pos.column
    return problem
