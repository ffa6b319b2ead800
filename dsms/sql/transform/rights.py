"""Statements about users, roles and what they may do."""

from __future__ import annotations

from typing import Any

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.literals import bad
from dsms.sql.transform.rules import (
    Clause,
    Parts,
    Rule,
    constant,
    listed,
    node,
    only,
    place_of,
    rule,
    token_rule,
)

_Change = tuple[ast.UserChange, ast.Credential]


def _secret(kind: ast.SecretKind) -> Rule:
    """``PASSWORD 'x'`` or ``TOKEN ['x']``."""

    def build(self: Any, parts: Parts) -> ast.Credential:
        text = None if parts[-1] is None else literals.unquote(parts[-1])
        if text == "":
            raise bad(
                "DS106",
                place_of([parts[-1]]),
                f"an empty {kind.value}",
                "write a text, or leave TOKEN's out",
            )
        return ast.Credential(kind, text, pos=place_of(parts))

    return build


class Rights:
    """CREATE, ALTER and DROP of users and roles, GRANT and REVOKE."""

    password = _secret(ast.SecretKind.PASSWORD)
    token = _secret(ast.SecretKind.TOKEN)

    def add_token(self, parts: Parts) -> _Change:
        return ast.UserChange.ADD, self.token(parts[1:])

    def drop_token(self, parts: Parts) -> _Change:
        return ast.UserChange.DROP, self.token(parts[1:])

    @rule
    def create_user(
        self,
        pos: Pos,
        absent: bool | None,
        name: ast.Ident,
        credential: ast.Credential,
        quota: Clause | None,
    ) -> ast.CreateUser:
        options = () if quota is None else quota.value
        return ast.CreateUser(name, credential, bool(absent), options, pos=pos)

    @rule
    def alter_user(
        self, pos: Pos, name: ast.Ident, change: ast.Credential | _Change
    ) -> ast.AlterUser:
        how, credential = change if isinstance(change, tuple) else (ast.UserChange.SET, change)
        return ast.AlterUser(name, credential, how, pos=pos)

    @rule
    def drop_user(self, pos: Pos, present: bool | None, name: ast.Ident) -> ast.DropUser:
        return ast.DropUser(name, bool(present), pos=pos)

    @rule
    def create_role(
        self, pos: Pos, absent: bool | None, name: ast.Ident, quota: Clause | None
    ) -> ast.CreateRole:
        options = () if quota is None else quota.value
        return ast.CreateRole(name, bool(absent), options, pos=pos)

    def alter_quota(self, parts: Parts) -> ast.AlterQuota:
        _, kind, name, quota = parts
        return ast.AlterQuota(name, quota.value, kind.type == "ROLE", pos=place_of(parts))

    @rule
    def drop_role(self, pos: Pos, present: bool | None, name: ast.Ident) -> ast.DropRole:
        return ast.DropRole(name, bool(present), pos=pos)

    privileges = masks = listed
    mask = node(ast.Mask)
    everything = constant(None)
    one_object = only

    @token_rule("SELECT", "INSERT", "SUBSCRIBE", "CREATE", "ADMIN")
    def privilege(
        self, pos: Pos, token: Token, columns: tuple[ast.Ident, ...] | None
    ) -> ast.Privilege:
        return ast.Privilege(ast.Right(token.type), columns or (), pos=pos)

    @rule
    def grant(
        self, pos: Pos, privileges: Any, target: Any, to: Any, masks: Any, where: Any
    ) -> ast.Grant:
        return ast.Grant(privileges, target, to, masks or (), where, pos=pos)

    @rule
    def revoke(self, pos: Pos, privileges: Any, target: Any, source: Any) -> ast.Revoke:
        return ast.Revoke(privileges, target, source, pos=pos)

    grant_role = node(ast.GrantRole)
    revoke_role = node(ast.RevokeRole)
