"""Quotas: what a user may take, of himself, of his roles, or as the server says of all.

One's own quota holds.  Who has none of a kind has the largest that his roles have, and else the
server's; each user has it for himself.  Administrators have those alone that are their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dsms.errors import UsageError
from dsms.rights.model import Quota, Rights, key_of

QUERIES, STATE, ROWS, SESSIONS = "queries", "state", "rows_per_second", "sessions"
QUOTAS = {
    QUERIES: "registered queries",
    STATE: "bytes of streams, tables and queries",
    ROWS: "rows sent in a second",
    SESSIONS: "open sessions",
}
_SIZE = re.compile(r"(\d+)\s*(?:([kmgt])(?:i?b)?|b|bytes)?", re.IGNORECASE)
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}
MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Limit:
    """`source`: the user or role that it was given to; None: the server's."""

    most: int
    source: str | None = None


def limit_of(rights: Rights, default: Mapping[str, int], user: str, quota: str) -> Limit | None:
    """What holds for a user; None: any."""
    found = rights.users.get(key_of(user))
    own = None if found is None else dict(found.quota).get(quota)
    if found is not None and own is not None:
        return Limit(own, found.name)
    if rights.administers(user):
        return None
    roles = [rights.roles[key] for key in rights.all_of(user) if key in rights.roles]
    of_roles = [Limit(most, r.name) for r in roles for name, most in r.quota if name == quota]
    if of_roles:
        return max(of_roles, key=lambda limit: (limit.most, limit.source))
    return Limit(default[quota]) if quota in default else None


def any_quota(rights: Rights, default: Mapping[str, int]) -> bool:
    """Whether there is one at all."""
    return bool(default) or any(h.quota for h in (*rights.users.values(), *rights.roles.values()))


def changed(before: Quota, change: Mapping[str, int | None]) -> Quota:
    """After a change; None: it is no more."""
    after = {**dict(before), **change}
    return tuple((name, most) for name in QUOTAS if (most := after.get(name)) is not None)


def size_of(text: str) -> int | None:
    """``64 MB`` -> bytes (of 1024 to the K); None: it is none."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    size = int(found[1]) << _UNITS.get((found[2] or "").lower(), 0)
    return size if size <= MOST else None


def full(name: str) -> UsageError:
    """DS681 for those who write to what another user owns: nothing is said of him."""
    return UsageError(
        "DS681",
        f"{name} takes no more rows: its owner keeps as much as his quota allows",
        hint="its owner can make room, or an administrator",
    )


def over(user: str, quota: str, limit: Limit, used: int, asks: str) -> UsageError:
    """DS680 to DS683.

    asks  what is refused"""
    code, helps = {
        QUERIES: ("DS680", "drop a query"),
        STATE: ("DS681", "drop something, or use shorter windows and RETAIN"),
        ROWS: ("DS682", "send smaller frames"),
        SESSIONS: ("DS683", "close a session"),
    }[quota]
    whose = "the server's default" if limit.source is None else f"of {limit.source}"
    return UsageError(
        code,
        f"{user} may have no {asks}: the quota {quota} is {limit.most} ({whose}), and {used} are "
        "used",
        hint=f"{helps}; SHOW QUOTAS tells what is used; an administrator changes it: ALTER USER "
        f"{user} WITH ({quota} = n)",
    )
