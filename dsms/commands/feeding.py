"""Queries begin to feed streams, and cease to."""

from __future__ import annotations

from dsms.errors import UsageError
from dsms.intake.fed import FedInput
from dsms.intake.stream import StreamInput
from dsms.running.feeding import Feeding, feed_of
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.running.shed import remember
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, QueryDef


def catch_up(runtime: Runtime) -> None:
    """Queries that feed streams are where their clocks are: what a statement finds of those streams
    does not depend on how calls were divided."""
    for key in runtime.feeding.order:
        entry = runtime.inputs[key]
        assert isinstance(entry, FedInput)
        for name in entry.feeds:
            query = runtime.queries[name]
            groups = runtime.shared.of(query.reads[0]) if query.grouped else ()
            for unit in (*groups, query):
                runtime.run_unit(unit, None)
        runtime.follow()


def check_acyclic(
    runtime: Runtime, definition: QueryDef, bound: lp.Output, catalog: Catalog
) -> None:
    """Raise DS419 where rows of a stream would come back to it, DS507 where it has ended."""
    if definition.feeds is None:
        return
    goal = Catalog.key(definition.feeds)
    reads = sorted({n.stream.home for n in lp.leaves_of(bound) if isinstance(n, lp.StreamScan)})
    found = runtime.feeding.path(reads, goal)
    if found is not None:
        names = [_called(catalog, key) for key in (goal, *found)]
        raise UsageError(
            "DS419",
            f"stream {names[0]} would be fed with its own rows: {' <- '.join(names)}",
            hint="read a stream that does not come from it",
        )
    if runtime.inputs[goal].ended:
        raise UsageError(
            "DS507",
            f"stream {_called(catalog, goal)} was ended: no rows can follow",
            hint="feed another",
        )


def check_running(runtime: Runtime, definition: QueryDef) -> None:
    """Raise DS421 where a query that it reads has stopped."""
    for name in definition.over if not runtime.replaying else ():
        read = runtime.queries[Catalog.key(name)]
        if read.failure is not None:
            name = read.name
            message = f"query {name} has stopped, and its answer stands still"
            raise UsageError("DS421", message, hint=f"drop {name}, and register it anew")


def _called(catalog: Catalog, key: str) -> str:
    return catalog.streams[key].name if key in catalog.streams else "a stream of others"


def feed(runtime: Runtime, key: str, query: Registered) -> None:
    """What the query tells from now on goes into its stream, if it has one."""
    into = query.definition.feeds
    if into is None:
        return
    target = Catalog.key(into)
    entry = runtime.inputs[target]
    if not isinstance(entry, FedInput):
        entry = FedInput.of(entry)
        _put(runtime, target, entry)
        runtime.pump(target)
    query.feed = feed_of(query, entry)
    entry.add(key, query.feed)


def fed_anew(runtime: Runtime, query: Registered) -> None:
    """The query is among the others: find out again what feeds what."""
    if query.feed is not None:
        runtime.feeding = Feeding.over(runtime.inputs, runtime.queries)


def starve(runtime: Runtime, key: str, query: Registered) -> None:
    """The query is gone, and feeds its stream no more."""
    if query.feed is None:
        return
    target = Catalog.key(query.definition.feeds or "")
    entry = runtime.inputs[target]
    assert isinstance(entry, FedInput)
    remember(runtime, entry, query)
    entry.drop(key)
    query.feed = None
    if not entry.feeds and entry.definition.derived is None:
        _put(runtime, target, entry.alone())
    runtime.feeding = Feeding.over(runtime.inputs, runtime.queries)
    runtime.pump(target)


def forget_stream(runtime: Runtime, key: str) -> None:
    """The stream is gone, and so are the queries that fed it."""
    runtime.remove(key)
    runtime.feeding = Feeding.over(runtime.inputs, runtime.queries)


def _put(runtime: Runtime, key: str, entry: StreamInput) -> None:
    runtime.inputs[key] = entry
    runtime.clocks.replace(key, entry)
