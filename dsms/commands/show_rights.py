"""SHOW USERS, SHOW GRANTS: who there is, and who may do what.  Of secrets nothing but that they are
there."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.api import Rows
from dsms.commands.rows import as_rows
from dsms.intake.values import duration_text
from dsms.rights.model import ALL, Grant, Rights, key_of
from dsms.rights.secrets import number_of
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.types import STRING


def show_users(rights: Rights, asker: str | None) -> Rows:
    """A line for each user, or for oneself alone, and for each role."""
    every = rights.administers(asker)
    lines = []
    for kind, holders in (("user", rights.users), ("role", rights.roles)):
        for key, found in sorted(holders.items()):
            if every or key in rights.all_of(asker or ""):
                tokens = ", ".join(map(number_of, found.tokens)) or None
                roles = (
                    ", ".join(rights.roles[r].name for r in found.roles if r in rights.roles)
                    or None
                )
                lines.append((found.name, kind, "yes" if found.password else "no", tokens, roles))
    return _rows(("name", "kind", "password", "tokens", "roles"), lines)


def show_grants(rights: Rights, catalog: Catalog, of: ast.Ident | None) -> Rows:
    """A line for each grant, and for each owner; to who is no administrator those of his own, and
    of what he owns.  The columns, masks and condition of a grant are shown to those who could have
    given it."""
    asker = catalog.user
    own = None if rights.administers(asker) else rights.all_of(asker or "")
    wanted = None if of is None else rights.all_of(of.text)
    lines = []
    for (who, key, right), grant in sorted(rights.grants.items()):
        may_know = own is None or who in own or (key != ALL and rights.owns(asker, key))
        if may_know and (wanted is None or who in wanted):
            lines.append(
                (
                    _name(rights, who),
                    right,
                    _object(catalog, key),
                    *_told(rights, asker, key, grant),
                )
            )
    for key, owner in sorted(rights.owners.items()):
        if (own is None or owner in own) and (wanted is None or owner in wanted):
            lines.append((_name(rights, owner), "OWNER", _object(catalog, key), None, None, None))
    for _, stream in sorted(catalog.streams.items()):
        if stream.confidential_to is None or stream.confidential_for is None:
            continue
        role = key_of(stream.confidential_to)
        if not catalog.seen_after(stream) and (wanted is None or role in wanted):
            told = f"rows younger than {duration_text(stream.confidential_for)}"
            lines.append((_name(rights, role), "CONFIDENTIAL", stream.name, None, None, told))
    return _rows(("grantee", "right", "object", "columns", "masks", "condition"), lines)


def _told(
    rights: Rights, asker: str | None, key: str, grant: Grant
) -> tuple[str | None, str | None, str | None]:
    if not rights.owns(asker, key):
        return None, None, None
    masks = ", ".join(f"{column} AS {shown}" for column, shown in grant.masks)
    return ", ".join(grant.columns) or None, masks or None, grant.where


def _name(rights: Rights, key: str) -> str:
    found = rights.holder(key)
    return key if found is None else found.name


def _object(catalog: Catalog, key: str) -> str:
    found = catalog.at(key)
    return "ALL" if key == ALL else key if found is None else found.name


def _rows(names: tuple[str, ...], lines: Sequence[tuple[str | None, ...]]) -> Rows:
    return as_rows([(name, STRING, [line[i] for line in lines]) for i, name in enumerate(names)])
