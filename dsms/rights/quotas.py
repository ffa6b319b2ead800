"""Quotas: what a user may take, of himself, of his roles, or as the server says of all.

One's own quota holds.  Who has none of a kind has the largest that his roles have, and else the
server's; each user has it for himself.  Administrators have those alone that are their own.
"""

from __future__ import annotations

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


def full(name: str) -> UsageError:
    """DS681 for those who write to what another user owns: nothing is said of him."""
    return UsageError(
        "DS681",
        f"{name} takes no more rows: its owner keeps as much as his quota allows",
        hint="its owner can make room, or an administrator",
    )


def over(user: str, quota: str, limit: Limit, used: int | None, asks: str) -> UsageError:
    """DS680 to DS683.

    asks  what is refused;  used  None: he must not know"""
    code, helps = {
        QUERIES: ("DS680", "drop a query"),
        STATE: ("DS681", "drop something, or use shorter windows and RETAIN"),
        SESSIONS: ("DS683", "close a session"),
    }[quota]
    helps = f"{helps}; SHOW QUOTAS tells what is used; " if limit.most else ""
    return UsageError(
        code,
        f"{user} may have no {asks}: {_shown(quota, limit)}"
        + ("" if used is None else f", and {used} are used"),
        hint=f"{helps}{_way_out(user, quota)}",
    )


def too_long(user: str, limit: Limit, rows: int, seconds: int) -> UsageError:
    """DS682 for a frame of so many rows, more than may come in so many seconds."""
    if not limit.most:
        return UsageError(
            "DS682", f"{user} may send no rows: {_shown(ROWS, limit)}", hint=_way_out(user, ROWS)
        )
    return UsageError(
        "DS682",
        f"{user} may send {limit.most * seconds} rows in a frame, what may come in {seconds} s, "
        f"and this one has {rows}: {_shown(ROWS, limit)}",
        hint=f"send smaller frames; {_way_out(user, ROWS)}",
    )


def _shown(quota: str, limit: Limit) -> str:
    whose = "the server's default" if limit.source is None else f"of {limit.source}"
    return f"the quota {quota} is {limit.most} ({whose})"


def _way_out(user: str, quota: str) -> str:
    return f"an administrator changes it: ALTER USER {user} WITH ({quota} = n)"
