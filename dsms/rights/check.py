"""Whether a user may do what he asks for; refusals say nothing of what he may not know of."""

from __future__ import annotations

from typing import Any

from dsms.errors import UsageError
from dsms.rights.model import ALL, Rights
from dsms.rights.needs import OPS, Need, needs
from dsms.rights.seen import refused, seen
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.suggest import hint


def check_statement(
    rights: Rights, catalog: Catalog, user: str | None, statement: ast.Statement
) -> Catalog:
    """The catalog as the user sees it; raises DS670 if he lacks a right that the statement needs.

    A name that he does not see is no concern here: whoever looks it up in that catalog finds
    nothing."""
    found = seen(catalog, rights, user, isinstance(statement, ast.Explain))
    if user is None:
        return found
    for need in needs(statement):  # type: ignore[arg-type]
        _check(rights, found, user, need)
    return found


def _check(rights: Rights, catalog: Catalog, user: str, need: Need) -> None:
    right = need.right
    if need.object is None:
        if right is not None and not rights.may(user, right, ALL):
            raise refused(user, right, None)
        return
    found = catalog.find(need.object.text, need.object.quoted)
    if found is None or right is None:
        return
    key = found.home
    allowed = rights.owns(user, key) if right is ast.Right.ADMIN else rights.may(user, right, key)
    if not allowed:
        raise refused(user, right, found.name, need.object)
    if need.whole and rights.views(user, key) is not None:
        told = (
            f"{user} may read {found.name} in part, and this needs SELECT on all of its rows "
            "and columns"
        )
        raise UsageError("DS670", told, need.object.pos.line, need.object.pos.column)


def check_request(
    rights: Rights, catalog: Catalog, user: str | None, op: str, name: str | None
) -> None:
    """Raise DS401 if there is nothing of that name that the user sees, DS670 if he may not do that
    with it."""
    need = OPS[op]
    if user is None or need.right is None or name is None:
        return
    kinds: dict[str, Any] = catalog.queries if need.kind == "query" else catalog.streams  # type: ignore[assignment]
    if need.kind == "stream or table":
        kinds = {**catalog.streams, **catalog.tables}
    found = kinds.get(catalog.key_of(name))
    if found is not None and rights.may(user, need.right, found.home):
        return
    if found is None or not rights.knows(user, found.home):
        known = rights.known(user)
        names = [d.name for key, d in kinds.items() if known is None or key in known]
        kind = need.kind.removesuffix(" or table")
        raise UsageError("DS401", f"there is no {kind} {name}", hint=hint(name, names))
    raise refused(user, need.right, found.name)
