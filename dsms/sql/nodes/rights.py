"""Statements about users, roles and what they may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from dsms.sql.nodes.base import Ident, Node
from dsms.sql.nodes.expressions import Expr
from dsms.sql.nodes.statements import Option, Statement


class SecretKind(StrEnum):
    PASSWORD = "PASSWORD"
    TOKEN = "TOKEN"


@dataclass(frozen=True, slots=True)
class Credential(Node):
    """``PASSWORD 'x'`` or ``TOKEN ['x']``; `secret` None: a token that the server is to make."""

    kind: SecretKind
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class CreateUser(Statement):
    name: Ident
    credential: Credential
    if_not_exists: bool = False
    quota: tuple[Option, ...] = ()


class UserChange(StrEnum):
    SET = "SET"  # the password, or the one token in place of all others
    ADD = "ADD"  # one more token
    DROP = "DROP"  # the token of that number


@dataclass(frozen=True, slots=True)
class AlterUser(Statement):
    """``ALTER USER u PASSWORD 'x' | TOKEN ['x'] | ADD TOKEN ['x'] | DROP TOKEN 'id'``; of the
    last, `credential` holds the number that SHOW USERS gives."""

    name: Ident
    credential: Credential
    change: UserChange = UserChange.SET


@dataclass(frozen=True, slots=True)
class AlterQuota(Statement):
    """``ALTER USER|ROLE name WITH (quota = n, ...)``; NULL as a value: none."""

    name: Ident
    quota: tuple[Option, ...]
    role: bool = False


@dataclass(frozen=True, slots=True)
class DropUser(Statement):
    name: Ident
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateRole(Statement):
    name: Ident
    if_not_exists: bool = False
    quota: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class DropRole(Statement):
    name: Ident
    if_exists: bool = False


class Right(StrEnum):
    SELECT = "SELECT"
    INSERT = "INSERT"
    SUBSCRIBE = "SUBSCRIBE"
    CREATE = "CREATE"
    ADMIN = "ADMIN"


@dataclass(frozen=True, slots=True)
class Privilege(Node):
    """A right; of SELECT the columns that it is for (none: all)."""

    right: Right
    columns: tuple[Ident, ...] = ()


@dataclass(frozen=True, slots=True)
class Mask(Node):
    """``column AS expression``: what is shown in place of the column."""

    column: Ident
    shown: Expr


@dataclass(frozen=True, slots=True)
class Grant(Statement):
    """``GRANT privileges ON object|ALL TO names [MASK (c AS e, ...)] [WHERE predicate]``; `object`
    None: ALL."""

    privileges: tuple[Privilege, ...]
    object: Ident | None
    to: tuple[Ident, ...]
    masks: tuple[Mask, ...] = ()
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Revoke(Statement):
    privileges: tuple[Privilege, ...]
    object: Ident | None
    source: tuple[Ident, ...]


@dataclass(frozen=True, slots=True)
class GrantRole(Statement):
    roles: tuple[Ident, ...]
    to: tuple[Ident, ...]


@dataclass(frozen=True, slots=True)
class RevokeRole(Statement):
    roles: tuple[Ident, ...]
    source: tuple[Ident, ...]
