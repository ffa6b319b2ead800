"""How a one-time query gets at what it reads, and what it says, or refuses, where some of that is
gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsms.api import Cancel
from dsms.errors import UsageError
from dsms.oneshot.reads import Read
from dsms.reads import history, partial, views
from dsms.reads.leaves import batches, instant, lacking, waiting
from dsms.reads.stream_rows import gone, subwindows
from dsms.running.letting_go import kept_share
from dsms.running.read_transaction import Access
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog


def access(
    runtime: Runtime,
    plan: lp.Node,
    needed: Mapping[int, Read],
    live: Mapping[int, Read],
    cancel: Cancel | None,
    complete: bool,
) -> Access:
    """How a one-time query gets at what it reads, and at what of it is `live`; it may be that it
    must not lack any of that."""
    names = {relation(n) for read in needed.values() for n in lp.leaves_of(read.node)}
    known = {name: _object(runtime, name) for name in names}

    def check() -> None:
        for name, there in known.items():
            if _object(runtime, name) is not there:
                raise UsageError(
                    "DS411", f"{name} was dropped while a query was reading it", hint="ask again"
                )

    return Access(
        lambda: instant(runtime, needed.values()),
        lambda read, at: subwindows(runtime, read, at),
        lambda read, at: batches(runtime, plan, read, at, cancel),
        check,
        lambda at: waiting(runtime, needed.values(), at),
        lambda at: since(runtime, plan, live.values(), at, complete),
    )


def since(
    runtime: Runtime, plan: lp.Node, needed: Iterable[Read], at: int, complete: bool
) -> int | None:
    """The instant from which on an answer as of `at` lacks no row of a stream; None: it lacks none.
    Raises DS407 where it must be `complete` and is not, DS363 where a query has let go of rows."""
    if complete:
        needed = list(needed)
        _check_kept(runtime, needed, at)
    found = list(lacking(runtime, plan, needed, at))
    if complete and found:
        lost, read = max(found, key=lambda lack: lack[0])
        query = runtime.queries.get(Catalog.key(relation(read.node)))
        if query is None:
            raise gone(runtime, read, lost)
        if read.kind == "history":
            raise history.gone(query, lost)
        is_partial = partial.partial_from(runtime, query, at) == lost
        raise partial.gone(query, lost) if is_partial else views.gone(runtime, query, lost)
    return max((at for at, _ in found), default=None)


def _check_kept(runtime: Runtime, needed: Iterable[Read], at: int) -> None:
    leaves = (leaf for read in needed for leaf in lp.leaves_of(read.node))
    for leaf in leaves:
        query = runtime.queries.get(Catalog.key(relation(leaf)))
        share = None if query is None else kept_share(query, at)
        if query is not None and share is not None:
            message = f"query {query.name} has let go of rows: it rests on {share:.1%} of them"
            raise UsageError("DS363", message, hint="wait until they would have left its windows")


def relation(node: lp.Node) -> str:
    """The address of what a leaf reads."""
    assert isinstance(node, lp.StreamScan | lp.TableScan)
    return node.stream.address if isinstance(node, lp.StreamScan) else node.table.address


def _object(runtime: Runtime, name: str) -> object:
    key = Catalog.key(name)
    kinds: tuple[Mapping[str, object], ...] = (runtime.inputs, runtime.tables, runtime.queries)
    return next((k[key] for k in kinds if key in k), None)
