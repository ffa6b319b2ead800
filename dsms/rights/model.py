"""Users, roles, grants and owners: what is kept of them, and what follows from it.

Everything here is immutable: a change makes new `Rights`, so that any thread may read those that it
holds.  Who is None is the program that an engine runs in, or whoever reaches a server without
users: he may do all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

# who shows the token that the server was started with; no user can be called so
ADMINISTRATOR = "admin"
ALL = ""  # in place of an object: all of them, and what belongs to none
Json = dict[str, list[Any]]
Quota = tuple[tuple[str, int], ...]  # names of `dsms.rights.quotas.QUOTAS`, and how many


def key_of(name: str) -> str:
    """Where a user, role or object is found: names match in any case."""
    return name.casefold()


@dataclass(frozen=True, slots=True)
class User:
    """`password` is an argon2 hash, `tokens` are SHA-256 hashes in hex, `roles` keys of roles."""

    name: str
    password: str | None = field(default=None, repr=False)
    tokens: tuple[str, ...] = field(default=(), repr=False)
    roles: tuple[str, ...] = ()
    quota: Quota = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """A right of one user or role on one object.  Of SELECT: the columns (none: all), what is shown
    in place of some (column, expression as text), and the condition of the rows, as text."""

    columns: tuple[str, ...] = ()
    masks: tuple[tuple[str, str], ...] = ()
    where: str | None = None

    @property
    def whole(self) -> bool:
        """Whether it lets all be seen."""
        return not (self.columns or self.masks or self.where)


Place = tuple[str, str, str]  # who, object, right


@dataclass(frozen=True, slots=True)
class Rights:
    """By keys: users, roles with the roles that they have themselves, grants, and owners of
    objects."""

    users: Mapping[str, User] = field(default_factory=dict)
    roles: Mapping[str, User] = field(default_factory=dict)
    grants: Mapping[Place, Grant] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    # -- what follows ------------------------------------------------------------------------------

    def all_of(self, who: str) -> set[str]:
        """The keys of a user or role and of all roles that it has, also by way of others."""
        found, new = set[str](), [key_of(who)]
        while new:
            one = new.pop()
            if one not in found:
                found.add(one)
                holder = self.users.get(one) or self.roles.get(one)
                new += [] if holder is None else [r for r in holder.roles if r in self.roles]
        return found

    def administers(self, user: str | None) -> bool:
        """Whether he may do everything."""
        return user is None or key_of(user) == ADMINISTRATOR or self._has(user, "ADMIN", ALL)

    def owns(self, user: str | None, key: str) -> bool:
        """Whether he may do everything with that object: it is his, or he has ADMIN on it."""
        return (
            self.administers(user)
            or self.owners.get(key) == key_of(user or "")
            or self._has(user, "ADMIN", key)
        )

    def may(self, user: str | None, right: str, key: str = ALL) -> bool:
        """Whether he has the right on that object (SELECT: on some of it), or, of ALL, in
        general."""
        if key == ALL:
            return self.administers(user) or self._has(user, right, ALL)
        return self.owns(user, key) or self._has(user, right, key) or self._has(user, right, ALL)

    def known(self, user: str | None) -> set[str] | None:
        """Of which objects he may know: he owns them, or has some right on them; None: of all."""
        if self.administers(user):
            return None
        own, me = self.all_of(user or ""), key_of(user or "")
        granted = {(key, right) for who, key, right in self.grants if who in own}
        if any(key == ALL and right != "CREATE" for key, right in granted):
            return None
        owned = {key for key, owner in self.owners.items() if owner == me}
        return owned.union(key for key, _ in granted)

    def knows(self, user: str | None, key: str) -> bool:
        """Whether he may know that the object is there."""
        return self.owns(user, key) or any(
            self.may(user, right, key) for right in ("SELECT", "INSERT", "SUBSCRIBE")
        )

    def trusted(self, user: str | None, key: str, role: str) -> bool:
        """Whether he sees rows of a stream at once that is confidential to that role."""
        role = key_of(role)
        return self.owns(user, key) or (role in self.roles and role in self.all_of(user or ""))

    def views(self, user: str | None, key: str) -> tuple[Grant, ...] | None:
        """What he may read of an object: what any of these lets him see; None: the whole of it."""
        if self.owns(user, key) or self._has(user, "SELECT", ALL):
            return None
        places = [(who, key, "SELECT") for who in sorted(self.all_of(user or ""))]
        found = tuple(dict.fromkeys(self.grants[p] for p in places if p in self.grants))
        return None if any(g.whole for g in found) else found

    def _has(self, user: str | None, right: str, key: str) -> bool:
        return any((who, key, right) in self.grants for who in self.all_of(user or ""))

    def holder(self, name: str) -> User | None:
        """The user or role of that name."""
        return self.users.get(key_of(name)) or self.roles.get(key_of(name))

    def of_token(self, hashed: str) -> User | None:
        """Whose token has that hash."""
        return next((u for u in self.users.values() if hashed in u.tokens), None)

    # -- changes -----------------------------------------------------------------------------------

    def changed(self, change: Json) -> Rights:
        """These rights after a change: lists of `users`, `roles`, `grants`, `owners`, each item its
        keys and its value (None: it is no more), as JSON can say it."""
        users, roles = dict(self.users), dict(self.roles)
        grants, owners = dict(self.grants), dict(self.owners)
        for key, value in change.get("users", ()):
            _put(users, key, None if value is None else _user(value))
        for key, value in change.get("roles", ()):
            _put(roles, key, None if value is None else _user(value))
        for who, key, right, value in change.get("grants", ()):
            _put(grants, (who, key, right), None if value is None else _grant(value))
        for key, value in change.get("owners", ()):
            _put(owners, key, value)
        return Rights(users, roles, grants, owners)

    def owned(self, key: str, user: str | None) -> Rights:
        """An object was made by that user."""
        return self if user is None else self.changed({"owners": [[key, key_of(user)]]})

    def renamed(self, key: str, to: str) -> Rights:
        """An object has another name: it is whose it was, and grants on it stand."""
        places = {place: g for place, g in self.grants.items() if place[1] == key}
        moved = {(who, to, right): g for (who, _, right), g in places.items()}
        grants = {p: g for p, g in self.grants.items() if p not in places} | moved
        owners = {to if k == key else k: owner for k, owner in self.owners.items()}
        return Rights(self.users, self.roles, grants, owners)

    def without(self, key: str) -> Rights:
        """An object was dropped: one that is made under its name has another owner and no
        grants."""
        grants = [[*place, None] for place in self.grants if place[1] == key]
        return (
            self.changed({"grants": grants, "owners": [[key, None]]})
            if grants or key in self.owners
            else self
        )


def holder(key: str, found: User) -> list[Any]:
    """A user or role as an item of a change."""
    return [key, asdict(found)]


def removed(rights: Rights, key: str, kind: str) -> Json:
    """The change by which a user or role is no more, nor what was granted to it, nor what it
    owned."""
    gone: Json = {kind: [[key, None]], "grants": [[*p, None] for p in rights.grants if p[0] == key]}
    if kind == "users":
        gone["owners"] = [[o, None] for o, owner in rights.owners.items() if owner == key]
        return gone
    for name, holders in (("users", rights.users), ("roles", rights.roles)):
        gone.setdefault(name, [])
        gone[name] += [holder(k, _less(u, key)) for k, u in holders.items() if key in u.roles]
    return gone


def _less(found: User, role: str) -> User:
    return replace(found, roles=tuple(r for r in found.roles if r != role))


def _put(into: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


def _user(value: Mapping[str, Any]) -> User:
    quota = tuple((str(name), int(most)) for name, most in value.get("quota", ()))
    return User(
        value["name"], value["password"], tuple(value["tokens"]), tuple(value["roles"]), quota
    )


def _grant(value: Mapping[str, Any]) -> Grant:
    masks: Iterable[Any] = value["masks"]
    return Grant(tuple(value["columns"]), tuple((c, e) for c, e in masks), value["where"])
