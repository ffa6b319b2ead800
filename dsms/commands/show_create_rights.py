"""Roles, users, memberships and grants as the statements that make them again."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.errors import UsageError
from dsms.rights.model import ALL, Grant, Rights, User, key_of
from dsms.rights.seen import expression
from dsms.sql import ast
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint

Object = StreamDef | TableDef | QueryDef
Line = tuple[str, str, str]  # kind, name, statement


def known_role(rights: Rights, name: ast.Ident, catalog: Catalog) -> User:
    """One that the asker has, or any to an administrator.  Raises DS671."""
    every = rights.administers(catalog.user)
    known = rights.roles.keys() if every else rights.all_of(catalog.user or "")
    found = rights.roles.get(key_of(name.text)) if key_of(name.text) in known else None
    if found is None:
        near = hint(name.text, [r.name for k, r in rights.roles.items() if k in known])
        message = f"there is no role {name.text}"
        raise UsageError("DS671", message, name.pos.line, name.pos.column, near)
    return found


def _ident(text: str) -> ast.Ident:
    return ast.Ident(text)


def _quota(found: User) -> tuple[ast.Option, ...]:
    return tuple(ast.Option(ast.Ident(name), most) for name, most in found.quota)


def role_line(found: User) -> Line:
    """CREATE ROLE."""
    return "role", found.name, to_sql(ast.CreateRole(_ident(found.name), quota=_quota(found)))


def user_line(found: User) -> Line:
    """CREATE USER with a new token: what is kept of secrets tells none."""
    token = ast.Credential(ast.SecretKind.TOKEN)
    made = ast.CreateUser(_ident(found.name), token, quota=_quota(found))
    return "user", found.name, to_sql(made)


def memberships(rights: Rights) -> Iterator[Line]:
    """GRANT role TO whoever has it."""
    for found in (*rights.roles.values(), *rights.users.values()):
        for role in (rights.roles[key] for key in found.roles if key in rights.roles):
            made = ast.GrantRole((_ident(role.name),), (_ident(found.name),))
            yield "grant", found.name, to_sql(made)


def grants(rights: Rights, catalog: Catalog) -> Iterator[tuple[str, Line]]:
    """By object.  Whoever owns one gets ADMIN on it: what is made again belongs to who makes it."""
    for key, owner in sorted(rights.owners.items()):
        if owner in rights.users and (found := catalog.at(key)) is not None:
            yield key, _grant(rights.users[owner], found, ast.Right.ADMIN, Grant())
    for (who, key, right), grant in sorted(rights.grants.items()):
        holder, found = rights.holder(who), catalog.at(key)
        if holder is not None and (found is not None or key == ALL):
            yield key, _grant(holder, found, ast.Right(right), grant)


def _grant(
    holder: User, found: StreamDef | TableDef | QueryDef | None, right: ast.Right, grant: Grant
) -> Line:
    where = None if grant.where is None else expression(grant.where)
    masks = tuple(ast.Mask(_ident(c), expression(shown)) for c, shown in grant.masks)
    made = ast.Grant(
        (ast.Privilege(right, tuple(map(_ident, grant.columns))),),
        None if found is None else _ident(found.name),
        (_ident(holder.name),),
        masks,
        where,
    )
    return "grant", holder.name, to_sql(made)
