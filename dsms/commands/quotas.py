"""Quotas at work: what WITH says of them, what users have taken, and who may have no more.

State is that of the streams, tables and queries that a user owns, as SHOW MEMORY counts it: rows,
state, results for those who resume.  Synopses that queries share are nobody's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dsms.api import Rows
from dsms.commands.rows import as_rows
from dsms.commands.show_memory import held
from dsms.commands.slices import Free
from dsms.errors import UsageError
from dsms.operators.pieces import finished
from dsms.rights.model import ADMINISTRATOR, Quota, key_of
from dsms.rights.quotas import (
    QUERIES,
    QUOTAS,
    ROWS,
    SESSIONS,
    STATE,
    Limit,
    any_quota,
    changed,
    full,
    limit_of,
    over,
)
from dsms.rights.seen import seen
from dsms.running.faults import stop
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sizes import MOST, size_of
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.codes import error, suggest
from dsms.sql.types import INT, STRING

PATIENT = 4  # a user's largest query is stopped when he has a quarter more than he may
# statements after which more is kept
GROWING = (
    ast.AddColumn
    | ast.CreateStream
    | ast.CreateTable
    | ast.CreateQuery
    | ast.ResumeQuery
    | ast.Insert
    | ast.Update
    | ast.SelectStatement
)
_HELD = ("streams", "indices", "tables", "queries", "results", "subscribers")


def with_quota(before: Quota, options: tuple[ast.Option, ...]) -> Quota:
    """What WITH makes of a quota.  Raises DS214, DS215."""
    change: dict[str, int | None] = {}
    for option in options:
        name = option.name.text.casefold()
        if name not in QUOTAS:
            raise error(
                "DS214",
                f"there is no quota {option.name.text}",
                option.name,
                suggest(option.name.text, QUOTAS, "quotas"),
            )
        change[name] = _most(option, name)
    return changed(before, change)


def _most(option: ast.Option, name: str) -> int | None:
    match option.value:
        case bool() | float() | ast.Duration():
            most = None
        case int(number):
            most = number if 0 <= number <= MOST else None
        case str(text) if text.casefold() == "null":
            return None
        case str(text):
            most = size_of(text) if name == STATE else None
    if most is None:
        what = "bytes, or a text such as '64 MB'" if name == STATE else "a number"
        raise error("DS215", f"{name} takes {what}, not less than 0", option, "write NULL for none")
    return most


# ---------------------------------------------------------------- what is taken


def _owner(runtime: Runtime, name: str) -> str | None:
    return runtime.rights.owners.get(runtime.catalog.key_of(name))


def states(runtime: Runtime) -> Free[Counter[str]]:
    """Bytes by owner, a line of SHOW MEMORY at a time."""
    found: Counter[str] = Counter()
    for line in held(runtime):
        if line.part in _HELD and line.holder is not None:
            owner = _owner(runtime, line.holder)
            if owner is not None:
                found[owner] += line.bytes
        yield None
    return found


def queries_of(runtime: Runtime, user: str) -> list[Registered]:
    """Those that he owns."""
    return [q for q in runtime.queries.values() if _owner(runtime, q.name) == key_of(user)]


def _told(runtime: Runtime, user: str, used: int) -> int | None:
    """Bytes of his state, as he may know them: none where he sees rows late that his queries have
    already."""
    sees = seen(runtime.catalog, runtime.rights, user)
    late = not sees.sees_all and any(sees.sees_late(q.reads) for q in queries_of(runtime, user))
    return None if late else used


def _limit(runtime: Runtime, user: str, quota: str) -> Limit | None:
    return limit_of(runtime.rights, runtime.settings.quota, user, quota)


# ---------------------------------------------------------------- who may have no more


def check_queries(runtime: Runtime, user: str | None) -> None:
    """Raise DS680 for one query more; what comes back from a data folder comes back."""
    if user is None or runtime.replaying:
        return
    limit = _limit(runtime, user, QUERIES)
    if limit is not None and (used := len(queries_of(runtime, user))) >= limit.most:
        raise over(user, QUERIES, limit, used, "more queries")


def check_state(runtime: Runtime, user: str, statement: ast.Statement, more: int = 0) -> None:
    """Raise DS681 for a statement that keeps more: of who makes something, and of who owns what is
    written to, or gets a column.

    more  bytes that it will take, as far as that is known"""
    match statement:
        case ast.CreateStream() | ast.CreateTable() | ast.CreateQuery() | ast.ResumeQuery():
            who, table = user, ""
        case ast.Insert(table=name) | ast.Update(table=name) | ast.AddColumn(name=name):
            who, table = _owner(runtime, name.text) or "", name.text
        case _:
            return
    limit = _limit(runtime, who, STATE)
    if limit is None:
        return
    used = finished(states(runtime))[key_of(who)]
    if used < limit.most and used + more <= limit.most:
        return
    if key_of(who) != key_of(user):
        raise full(table)
    size = f"{more} bytes " if more else ""
    raise over(user, STATE, limit, _told(runtime, user, used), f"statement that keeps {size}more")


def minding_state(runtime: Runtime) -> Free[dict[str, UsageError]]:
    """Why rows for streams of these owners (keys) are refused: what they keep is as large as it may
    be.  The largest query of whoever has a quarter more is stopped: its streams are others', whose
    rows are not refused."""
    if not any_quota(runtime.rights, runtime.settings.quota):
        return {}
    found, taken = {}, (yield from states(runtime))
    for key, used in taken.items():
        user = runtime.rights.users.get(key)
        limit = None if user is None else _limit(runtime, user.name, STATE)
        if user is None or limit is None or used < limit.most:
            continue
        told = _told(runtime, user.name, used)
        found[key] = over(user.name, STATE, limit, told, "more rows")
        if used > limit.most + limit.most // PATIENT:
            running = [q for q in queries_of(runtime, user.name) if q.failure is None]
            if running:
                largest = max(running, key=lambda query: query.nbytes())
                stop([largest], over(user.name, STATE, limit, told, "more state"))
    return found


# ---------------------------------------------------------------- what is told


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """What a user has taken of one thing, and may; `used` None: it is counted nowhere."""

    user: str
    quota: str
    limit: Limit | None
    used: int | None


def quota_lines(runtime: Runtime) -> Free[list[QuotaLine]]:
    """Four of each user, and of the administrator of the token."""
    size = yield from states(runtime)
    return list(_quota_lines(runtime, size))


def _quota_lines(runtime: Runtime, size: Counter[str]) -> Iterator[QuotaLine]:
    sessions = runtime.settings.sessions
    opened = Counter(key_of(s.user or "") for s in (sessions.lines() if sessions else ()))
    queries = Counter(_owner(runtime, query.name) for query in runtime.queries.values())
    names = [user.name for _, user in sorted(runtime.rights.users.items())]
    if opened[ADMINISTRATOR]:
        names.append(ADMINISTRATOR)
    for name in names:
        key = key_of(name)
        used: dict[str, int | None] = {
            QUERIES: queries[key],
            STATE: size[key],
            ROWS: None if sessions is None else sessions.rows_per_second(name),
            SESSIONS: None if sessions is None else opened[key],
        }
        for quota in QUOTAS:
            yield QuotaLine(name, quota, _limit(runtime, name, quota), used[quota])


def user_stats(runtime: Runtime) -> Free[dict[str, dict[str, int]]]:
    """Figures of each user for metrics: by quota what is used, and the limit if there is one."""
    found: dict[str, dict[str, int]] = {}
    for line in (yield from quota_lines(runtime)):
        figures = found.setdefault(line.user, {})
        if line.used is not None:
            figures[line.quota] = line.used
        if line.limit is not None:
            figures[f"{line.quota}_limit"] = line.limit.most
    return found


def show_quotas(runtime: Runtime, catalog: Catalog, of: ast.Ident | None) -> Free[Rows]:
    """A line for each user and quota, or for one's own; `of`: for that user, or all who have that
    role."""
    rights = runtime.rights
    lines = yield from quota_lines(runtime)
    if not catalog.sees_all:
        lines = [line for line in lines if key_of(line.user) == key_of(catalog.user or "")]
        lines = [
            replace(line, used=_told(runtime, line.user, line.used or 0))
            if line.quota == STATE
            else line
            for line in lines
        ]
    if of is not None:
        lines = [line for line in lines if key_of(of.text) in rights.all_of(line.user)]
    limits = [line.limit for line in lines]
    return as_rows(
        [
            ("user", STRING, [line.user for line in lines]),
            ("quota", STRING, [line.quota for line in lines]),
            ("limit", INT, [None if found is None else found.most for found in limits]),
            ("used", INT, [line.used for line in lines]),
            ("of", STRING, [_source(found) for found in limits]),
        ]
    )


def _source(limit: Limit | None) -> str | None:
    return None if limit is None else limit.source or "the server"
