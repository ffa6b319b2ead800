"""PAUSE QUERY and RESUME QUERY.

A paused query computes and tells nothing, and keeps nothing but its last answer, its log and its
readers.  Resumed it begins anew over what is kept of its windows, as if it were registered then,
and tells its readers what is different.
"""

from __future__ import annotations

from dsms.api import Cancel, Done
from dsms.commands.anew import bound_again
from dsms.commands.explain import registered
from dsms.commands.feeding import check_running
from dsms.commands.slices import Pieces
from dsms.commands.store import Store
from dsms.commands.succeeding import Successor, check_alone, check_unread, put_in_place, stand
from dsms.errors import UsageError
from dsms.running.paused import PausedQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.printer import to_sql


def pause(runtime: Runtime, store: Store, statement: ast.PauseQuery, catalog: Catalog) -> Done:
    """It computes nothing from here on.  Raises DS401, DS431, DS436."""
    query = registered(runtime, statement.name, catalog)
    if isinstance(query, PausedQuery) and query.failure is None:
        return Done(f"query {query.name} is paused already")
    if query.failure is not None:
        message = f"query {query.name} has stopped: there is nothing to pause"
        raise UsageError("DS431", message, hint=f"RESUME QUERY {query.name} begins it anew")
    _check(runtime, query)
    key = query.home
    check_alone(runtime, query)
    check_unread(runtime, query, "DS431")
    stand(runtime, key)
    store(lambda s: None, "statement", to_sql(statement).encode())
    put_in_place(runtime, key, PausedQuery.of(query))
    return Done(f"query {query.name} paused")


def resumed(
    runtime: Runtime,
    store: Store,
    statement: ast.ResumeQuery,
    catalog: Catalog,
    cancel: Cancel | None,
) -> Pieces[Done]:
    """It begins anew, if it is paused or has stopped.  Raises DS401, DS431, DS436, and what
    registering it raises."""
    query = registered(runtime, statement.name, catalog)
    if not isinstance(query, PausedQuery) and query.failure is None:
        return Done(f"query {query.name} is running")
    _check(runtime, query)
    definition, bound = bound_again(runtime, query)
    check_running(runtime, definition)
    alone = bound.slide is None and not definition.on_lookup
    phys = runtime.plan(bound, definition.options, True) if alone else None
    key = query.home
    successor = Successor(
        runtime, store, key, definition, bound, phys, to_sql(statement), cancel=cancel
    )
    told = yield from successor.pieces()
    return Done(f"query {query.name} resumed", told)


def _check(runtime: Runtime, query: Registered) -> None:
    own = runtime.catalog.whose(query.definition)
    if own is not None and own.key:
        raise UsageError("DS431", f"query {query.name} keeps what stream {own.name} holds")
    if query.archived is not None:
        raise UsageError(
            "DS431",
            f"results of query {query.name} are archived, and its archive would have a gap",
            hint="drop it (its archive stays), or leave it running",
        )
