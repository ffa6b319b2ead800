"""A running query goes by another name."""

from __future__ import annotations

from dsms.commands.feeding import fed_anew
from dsms.commands.periodic import schedule, unschedule
from dsms.intake.fed import FedInput
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql.catalog import Catalog, QueryDef


def call(runtime: Runtime, query: Registered, definition: QueryDef) -> None:
    """Its definition is that from now on, with the name in it: what goes by the name follows."""
    before = query.name
    if isinstance(query, EvaluatedQuery):
        unschedule(runtime, query)
    query.definition = definition
    if not isinstance(query, EvaluatedQuery):
        return
    inner = getattr(query.evaluator, "inner", None)
    if isinstance(inner, RunningQuery):
        inner.definition = definition
    for leaf, stream in query.streams.items():
        ring = runtime.rings.get(stream)
        need = None if ring is None else ring.needs.get(f"query {before} ({leaf})")
        if need is not None and definition.name != before:
            runtime.keep(stream, f"query {definition.name} ({leaf})", need)
            runtime.release(stream, f"query {before} ({leaf})")
    if isinstance(query, PeriodicQuery):
        query.elastic = False
        schedule(runtime, query)


def rename(runtime: Runtime, key: str, definition: QueryDef) -> None:
    """The query `key` goes by the name in its new definition: for who reads it, for what it feeds,
    for those who may do something with it."""
    query, to = runtime.queries[key], definition.home
    runtime.catalog.moves(definition)
    runtime.dispatch.rename(key, to)
    call(runtime, query, definition)
    runtime.parts.renamed(key, to)
    known = [(to if k == key else k, d) for k, d in runtime.catalog.queries.items()]
    runtime.catalog.queries.clear()
    runtime.catalog.queries.update(known)
    runtime.catalog.plans.pop(key)
    runtime.answers.known(to, runtime.catalog)
    runtime.clocks.forget(key)
    runtime.clocks.reads(to, query.reads)
    if query.feed is not None:
        entry = runtime.inputs[Catalog.key(definition.feeds or "")]
        assert isinstance(entry, FedInput)
        entry.rename(key, to, definition.name)
        fed_anew(runtime, query)
    runtime.rights = runtime.rights.renamed(key, to)
    if key in runtime.comments:
        runtime.comments[to] = runtime.comments.pop(key)
    for reader in query.readers:
        reader.renamed = definition.name
