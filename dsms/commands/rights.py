"""Users, roles and grants: the statements that change them, and what follows for queries that
run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from dsms.api import Done, Result
from dsms.commands.grants import grants_of, revoked
from dsms.commands.quotas import with_quota
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.rights import secrets
from dsms.rights.model import ADMINISTRATOR, Json, Rights, User, holder, key_of, removed
from dsms.rights.seen import refused, seen_after
from dsms.running.faults import stop
from dsms.running.registered import Registered, is_hidden
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.codes import error
from dsms.sql.suggest import hint, listed

Statement = (
    ast.CreateUser | ast.AlterUser | ast.AlterQuota | ast.DropUser | ast.CreateRole | ast.DropRole
    | ast.Grant | ast.Revoke | ast.GrantRole | ast.RevokeRole
)  # a long list  # fmt: skip


@dataclass(slots=True)
class Change:
    """A statement at work, in slices: a password is hashed in another thread, if there is one to do
    it."""

    runtime: Runtime
    store: Store
    statement: Statement
    see: Callable[[], Catalog]  # the catalog as who asks sees it; raises if he may not do this
    result: Result | None = None
    hashed: str | None = None
    offered: bool = False
    elsewhere = False
    waits = None

    @property
    def ready(self) -> bool:
        """Whether only a password is to be hashed next."""
        return self.offered and self.hashed is None and _password(self.statement) is not None

    def step(self) -> bool:
        """Check, hash, apply."""
        if not self.offered and _password(self.statement) is not None:
            self.offered = True
            return False
        self.run()
        self.result = _changed(self.runtime, self.store, self.statement, self.see(), self.hashed)
        return True

    def run(self) -> None:
        """Hash the password, if there is one."""
        password = _password(self.statement)
        if password is not None and self.hashed is None:
            self.hashed = secrets.hash_password(password)

    def close(self) -> None:
        """Nothing has been changed, unless it is done."""


def _password(statement: Statement) -> str | None:
    if not isinstance(statement, ast.CreateUser | ast.AlterUser):
        return None
    found = statement.credential
    if found.kind is not ast.SecretKind.PASSWORD:
        return None
    if len(found.secret or "") < secrets.SHORTEST_PASSWORD:
        message = f"a password has at least {secrets.SHORTEST_PASSWORD} characters"
        raise UsageError("DS672", message, found.pos.line, found.pos.column)
    return found.secret


def _changed(
    runtime: Runtime, store: Store, statement: Statement, catalog: Catalog, hashed: str | None
) -> Done | Result:
    rights = runtime.rights
    match statement:
        case ast.CreateUser():
            return _create_user(runtime, store, statement, hashed)
        case ast.AlterUser():
            return _alter_user(runtime, store, statement, catalog, hashed)
        case ast.CreateRole(name):
            if _is_there(rights, name, "role", statement.if_not_exists):
                return _as_it_is(rights.roles, "role", name, statement.quota)
            made = User(name.text, quota=with_quota((), statement.quota))
            change: Json = {"roles": [holder(key_of(name.text), made)]}
            return _apply(runtime, store, change, f"role {name.text} created")
        case ast.AlterQuota():
            return _alter_quota(runtime, store, statement)
        case ast.DropUser(name, if_exists) | ast.DropRole(name, if_exists):
            kind = "users" if isinstance(statement, ast.DropUser) else "roles"
            return _drop(runtime, store, name, kind, if_exists)
        case ast.Grant():
            change, told = grants_of(runtime, catalog, statement)
            return _apply(runtime, store, change, told)
        case ast.Revoke():
            return _apply(runtime, store, revoked(rights, catalog, statement), "revoked")
        case ast.GrantRole(roles, to):
            return _apply(
                runtime, store, _with_roles(rights, catalog.user, roles, to, True), "granted"
            )
        case ast.RevokeRole(roles, source):
            return _apply(
                runtime, store, _with_roles(rights, catalog.user, roles, source, False), "revoked"
            )
        case _:
            assert_never(statement)


# ---------------------------------------------------------------- users and roles


def _create_user(
    runtime: Runtime, store: Store, statement: ast.CreateUser, hashed: str | None
) -> Done:
    name = statement.name
    if _is_there(runtime.rights, name, "user", statement.if_not_exists):
        return _as_it_is(runtime.rights.users, "user", name, statement.quota)
    made, token = User(name.text, hashed, quota=with_quota((), statement.quota)), None
    if hashed is None:
        token, kept = _token(runtime.rights, statement.credential)
        made = replace(made, tokens=(kept,))
    return _apply(runtime, store, _user(made), f"user {name.text} created{_once(token)}")


def _alter_user(
    runtime: Runtime, store: Store, statement: ast.AlterUser, catalog: Catalog, hashed: str | None
) -> Done:
    rights, name = runtime.rights, statement.name
    asker = catalog.user
    if asker is not None and key_of(asker) != key_of(name.text) and not rights.administers(asker):
        raise refused(asker, "ADMIN", None, name)
    found = known(rights, name, users=True)
    if hashed is not None:
        return _apply(
            runtime,
            store,
            _user(replace(found, password=hashed)),
            f"password of {found.name} changed",
        )
    if statement.change is ast.UserChange.DROP:
        return _apply(
            runtime, store, _user(_without_token(found, statement.credential)), "token dropped"
        )
    token, kept = _token(rights, statement.credential)
    tokens = (*found.tokens, kept) if statement.change is ast.UserChange.ADD else (kept,)
    if len(tokens) > secrets.MOST_TOKENS:
        raise UsageError(
            "DS672",
            f"{found.name} has {len(found.tokens)} tokens, which is the limit",
            hint=f"SHOW USERS lists them; ALTER USER {found.name} DROP TOKEN 'id'",
        )
    return _apply(
        runtime,
        store,
        _user(replace(found, tokens=tokens)),
        f"token of {found.name} changed{_once(token)}",
    )


def _alter_quota(runtime: Runtime, store: Store, statement: ast.AlterQuota) -> Done:
    """What is there already stays, though it be more."""
    name, rights = statement.name, runtime.rights
    found = known(rights, name, users=not statement.role)
    key, kind = key_of(name.text), "roles" if statement.role else "users"
    if statement.role and key not in rights.roles:
        raise UsageError("DS671", f"{name.text} is no role", name.pos.line, name.pos.column)
    found = replace(found, quota=with_quota(found.quota, statement.quota))
    return _apply(runtime, store, {kind: [holder(key, found)]}, f"quota of {found.name} changed")


def _token(rights: Rights, credential: ast.Credential) -> tuple[str | None, str]:
    """(the token that was made, if one was, its hash)."""
    if credential.secret is None:
        token = secrets.new_token()
        return token, secrets.hash_token(token)
    hashed = secrets.hash_token(credential.secret)
    place = credential.pos.line, credential.pos.column
    if len(credential.secret) < secrets.SHORTEST_TOKEN:
        message = (
            f"a token has at least {secrets.SHORTEST_TOKEN} characters, which should be random"
        )
        raise UsageError("DS672", message, *place, "leave it out, and one is made")
    if rights.of_token(hashed) is not None:
        raise UsageError(
            "DS672", "that token can't be used", *place, "leave it out, and one is made"
        )
    return None, hashed


def _without_token(found: User, credential: ast.Credential) -> User:
    number = credential.secret or ""
    left = tuple(t for t in found.tokens if secrets.number_of(t) != number)
    if len(left) == len(found.tokens):
        raise UsageError(
            "DS671",
            f"{found.name} has no token that is called so",
            credential.pos.line,
            credential.pos.column,
            "DROP TOKEN takes the first 8 hex digits of a token's hash, as SHOW USERS lists them",
        )
    return replace(found, tokens=left)


def _once(token: str | None) -> str:
    return "" if token is None else f"; its token, which is shown this once: {token}"


def _user(found: User) -> Json:
    return {"users": [holder(key_of(found.name), found)]}


def _is_there(rights: Rights, name: ast.Ident, kind: str, may_be: bool) -> bool:
    """Raises DS213 if the name is taken."""
    key = key_of(name.text)
    if may_be and key in (rights.users if kind == "user" else rights.roles):
        return True
    if key in rights.users or key in rights.roles or key == ADMINISTRATOR:
        raise error(
            "DS213", f"there is a user or role {name.text} already", name, "choose another name"
        )
    return False


def _as_it_is(
    there: Mapping[str, User], kind: str, name: ast.Ident, quota: tuple[ast.Option, ...]
) -> Done:
    """IF NOT EXISTS of a user or role that exists; a note says which quotas differ."""
    found, asked = there[key_of(name.text)], dict(with_quota((), quota))
    before = dict(found.quota)
    unlike = [q for q in {**before, **asked} if before.get(q) != asked.get(q)]
    said = f"it stays as it is, and the statement differs: the quota {', '.join(unlike)}"
    return Done(f"{kind} {found.name} is there already", (said,) if unlike else ())


def known(rights: Rights, name: ast.Ident, users: bool = False, asker: str | None = None) -> User:
    """The user (or role) of that name; DS671, whose hint names others for administrators only."""
    key = key_of(name.text)
    found = rights.users.get(key) or (None if users else rights.roles.get(key))
    if found is None:
        what = "user" if users else "user or role"
        names = [
            u.name for u in (*rights.users.values(), *(() if users else rights.roles.values()))
        ]
        raise UsageError(
            "DS671",
            f"there is no {what} {name.text}",
            name.pos.line,
            name.pos.column,
            hint(name.text, names, "users") if rights.administers(asker) else None,
        )
    return found


def _drop(runtime: Runtime, store: Store, name: ast.Ident, kind: str, if_exists: bool) -> Done:
    rights, key = runtime.rights, key_of(name.text)
    what = kind.removesuffix("s")
    if key not in (rights.users if kind == "users" else rights.roles):
        if if_exists:
            return Done(f"there is no {what} {name.text}")
        known(rights, name, users=kind == "users")
        raise UsageError("DS671", f"{name.text} is no {what}", name.pos.line, name.pos.column)
    if kind == "roles":
        _refuse_trusted(runtime, name)
    return _apply(runtime, store, removed(rights, key, kind), f"{what} {name.text} dropped")


def _refuse_trusted(runtime: Runtime, role: ast.Ident) -> None:
    """Raise DS405 while streams are confidential to a role: another of its name would have their
    rows."""
    to = [(s.name, s.confidential_to) for s in runtime.catalog.streams.values()]
    found = [name for name, r in to if r is not None and key_of(r) == key_of(role.text)]
    if found:
        message = f"rows of {listed(found)} are confidential to {role.text}"
        raise UsageError(
            "DS405",
            message,
            role.pos.line,
            role.pos.column,
            f"take the role from who has it: REVOKE {role.text} FROM ...",
        )


def check_role(rights: Rights, role: ast.Ident, asker: str | None) -> None:
    """Raise DS671 if there is no role of that name."""
    if key_of(role.text) not in rights.roles:
        raise UsageError(
            "DS671",
            f"there is no role {role.text}",
            role.pos.line,
            role.pos.column,
            hint(role.text, [r.name for r in rights.roles.values()], "roles")
            if rights.administers(asker)
            else None,
        )


def _with_roles(
    rights: Rights,
    asker: str | None,
    roles: tuple[ast.Ident, ...],
    to: tuple[ast.Ident, ...],
    more: bool,
) -> Json:
    """The change by which users and roles have these roles, or not any more.  Raises DS671,
    DS672."""
    change: Json = {"users": [], "roles": []}
    keys = []
    for role in roles:
        check_role(rights, role, asker)
        keys.append(key_of(role.text))
    for name in to:
        found, key = known(rights, name, asker=asker), key_of(name.text)
        if more and key in rights.roles and any(key in rights.all_of(r) for r in keys):
            raise UsageError(
                "DS672", f"role {found.name} would have itself", name.pos.line, name.pos.column
            )
        kept = tuple(r for r in found.roles if r not in keys)
        changed = replace(found, roles=(*kept, *keys) if more else kept)
        change["roles" if key in rights.roles else "users"].append(holder(key, changed))
    return change


# ---------------------------------------------------------------- what follows


def _apply(runtime: Runtime, store: Store, change: Json, told: str) -> Done:
    for key in [key for key in runtime.beginnings if is_hidden(key)]:
        for _ in runtime.beginnings[key]:  # it takes over first, and is judged like any other
            pass
    store(lambda s: None, "rights", json.dumps(change).encode())
    stopped = put(runtime, change)
    if not stopped:
        return Done(told)
    return Done(
        told, (f"stopped, since what their creators may read has changed: {listed(stopped)}",)
    )


def put(runtime: Runtime, change: Json) -> list[str]:
    """Apply a change; queries whose creator may not read, or not in that way, what they read are
    stopped."""
    before, after = runtime.rights, runtime.rights.changed(change)
    runtime.rights = after
    stopped: dict[str, str] = {}  # names, by address
    for key, query in runtime.queries.items():
        owner, reads = before.owners.get(key), _reads(query)
        streams = [s for k in reads if (s := runtime.catalog.streams.get(k)) is not None]
        if query.failure is not None:
            continue
        below = not stopped or {*query.definition.over}.isdisjoint(stopped)
        if below and (
            owner is None
            or (_same(before, after, owner, reads) and _as_late(before, after, owner, streams))
        ):
            continue
        stop(
            [query],
            UsageError(
                "DS673",
                f"what {owner if below else 'another user'} may read of what it reads has changed",
                hint="drop it, and register it anew",
            ),
        )
        stopped[query.definition.address] = query.name
    return list(stopped.values())


def _reads(query: Registered) -> set[str]:
    """Keys of what it reads itself: of a query that it reads, the answer."""
    definition = query.definition
    if not definition.over:
        return {*query.reads, *query.tables}
    return {Catalog.key(name) for name in (*definition.over, *definition.beside)}


def _as_late(before: Rights, after: Rights, owner: str, streams: list[StreamDef]) -> bool:
    return all(seen_after(before, owner, s) == seen_after(after, owner, s) for s in streams)


def _same(before: Rights, after: Rights, owner: str, reads: set[Any]) -> bool:
    return all(before.views(owner, k) == after.views(owner, k) for k in reads)
