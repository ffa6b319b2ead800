"""A query comes in the place of another one, under its name: one that is resumed, or replaced.

The new one begins beside the old one, under a name that nobody can write, over what is kept of its
windows and piece by piece, as any query does; the old one goes on meanwhile.  When the new one
stands where its streams are it takes over, between two instants: readers of an answer are told the
net change, and results are numbered on.  Until then whatever goes wrong leaves the old one as it
was.

Where that takes several pieces two records are written, for the beginning and for the end; so a
restart makes the same of it, and one that finds no end gives the new one up.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from dsms.api import Cancel
from dsms.commands.dating import unseen_tables
from dsms.commands.define import start_periodic
from dsms.commands.feeding import catch_up, fed_anew
from dsms.commands.lookup import start_lookup
from dsms.commands.naming import call
from dsms.commands.periodic import forget
from dsms.commands.slices import Apart, Pieces, Ready
from dsms.commands.store import Store, Write
from dsms.errors import DsmsError, UsageError
from dsms.operators.pieces import go_on
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.plan.physical import Phys
from dsms.plan.planner import notes
from dsms.running.beginning import begin, beginning, is_kept
from dsms.running.inheriting import inherit
from dsms.running.net_change import Difference
from dsms.running.prepare import prepare
from dsms.running.query import RunningQuery
from dsms.running.registered import HIDDEN, Registered, is_hidden
from dsms.running.results import ResultLog
from dsms.running.runtime import Runtime
from dsms.running.shed import remember
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.types import ALWAYS

RECORD = "succeeded"  # in the journal: it has, or was given up


def check_unread(runtime: Runtime, query: Registered, code: str) -> None:
    """Raise that code while other queries read the answer of this one."""
    key, others = query.home, runtime.queries.values()
    if any(key in map(Catalog.key, other.definition.over) for other in others):
        message = f"the answer of query {query.name} is read by other queries"
        raise UsageError(code, message, hint="drop these first: DROP QUERY")


def check_alone(runtime: Runtime, query: Registered) -> None:
    """Raise DS436 while another one is to take over from the query."""
    if query.home + HIDDEN in runtime.queries:
        message = f"another query is about to take the place of {query.name}"
        raise UsageError("DS436", message, hint="wait until it has")


@dataclass(slots=True)
class Successor:
    """The query `key` is to be what `definition` says.

    phys   the plan of a continuous one
    text   of the statement, as it is written down
    write  what is to be changed in the catalog when it takes over
    owner  whose it is then; empty: as before"""

    runtime: Runtime
    store: Store
    key: str
    definition: QueryDef
    bound: lp.Output
    phys: Phys | None
    text: str
    write: Write = lambda s: None
    owner: tuple[str | None, ...] = ()
    cancel: Cancel | None = None
    failure: DsmsError | None = None

    @property
    def hidden(self) -> str:
        return self.key + HIDDEN

    def pieces(self) -> Pieces[tuple[str, ...]]:
        """Begin, and take over; what the user should know of it.

        Raises DS436 while another one is to take over from the same query."""
        runtime, old = self.runtime, self.runtime.queries[self.key]
        check_alone(runtime, old)
        definition = replace(_hidden(self.definition), feeds=None, places=())
        running = None if self.phys is None else prepare(runtime, definition, self.phys)
        if running is None or not running.streams or running.early or old.feed is not None:
            return self._at_once(definition, running)
        return (yield from self._filled(running))

    # ------------------------------------------------------------ in one go

    def _at_once(self, definition: QueryDef, running: RunningQuery | None) -> tuple[str, ...]:
        runtime = self.runtime
        try:
            told = self._begun(definition, running)
            new = runtime.queries[self.hidden]
            new.check()
            told = (*told, *unseen_tables(runtime, new))
            stand(runtime, self.key)
            self.store(self.write, "statement", self.text.encode())
        except BaseException as error:
            withdraw(runtime, self.key)
            raise _under_its_name(error) from None
        take_over(runtime, self.key, self.owner, self.definition)
        return told

    def _begun(self, definition: QueryDef, running: RunningQuery | None) -> tuple[str, ...]:
        runtime = self.runtime
        if definition.on_lookup:
            return start_lookup(runtime, definition, self.bound)
        if running is None:
            return start_periodic(runtime, definition, self.bound, None, answers=False)
        self._register(running)
        past: tuple[str, ...] = ()
        if running.streams:
            past = begin(runtime, running)
        else:
            running.start()
            changed = (runtime.tables[t].last_change for t in running.tables)
            running.advance(max(changed, default=running.clock))
        running.pipeline.look = go_on
        return (*running.notes, *past)

    def _register(self, running: RunningQuery) -> None:
        runtime = self.runtime
        running.notes = notes(running.phys)
        runtime.dispatch.register(self.hidden, running)
        runtime.clocks.reads(self.hidden, sorted(set(running.streams.values())))
        if self.cancel is not None:
            running.pipeline.look = self.cancel.check

    # ------------------------------------------------------------ piece by piece

    def _filled(self, running: RunningQuery) -> Pieces[tuple[str, ...]]:
        runtime = self.runtime
        stand(runtime, self.key)
        self.store(lambda s: None, "statement", self.text.encode())
        old, clock = runtime.queries[self.key], runtime.clock_of(running.reads)
        has = inherit(
            runtime.parts, old, running, clock, lambda node: is_kept(runtime, node, clock)
        )
        self._register(running)
        runtime.dispatch.find_parts()
        past, filling = beginning(runtime, running, has, tells=False)
        if runtime.replaying:
            for _ in filling:
                pass
            return ()  # it waits for the record of its end
        runtime.beginnings[self.hidden] = to_the_end = self._to_the_end(running, filling)
        try:
            for step in to_the_end:
                yield step
                if self.hidden not in runtime.beginnings:  # somebody could not wait
                    break
                if self.cancel is not None:
                    self.cancel.check()
        except BaseException:
            to_the_end.close()
            if runtime.beginnings.pop(self.hidden, None) is not None:
                self._given_up()
            raise
        if self.failure is not None:
            raise _under_its_name(self.failure)
        return (*running.notes, *past, *unseen_tables(runtime, running))

    def _to_the_end(
        self, running: RunningQuery, filling: Iterator[None]
    ) -> Generator[Ready | None, None, None]:
        """Behind the last piece it takes over; or it is gone, and `failure` says why."""
        yield from filling
        runtime, old = self.runtime, self.runtime.queries[self.key]
        running.pipeline.look = go_on
        difference: Difference | None = None
        try:
            if _has_change(old, running):
                difference = Difference(old, running)
                for key in (self.key, self.hidden):
                    stand(runtime, key)
                    difference.follow()
                    yield None
                if difference.large:
                    task = Apart(difference.run)
                    yield task
                    task.result()
            del runtime.beginnings[self.hidden]
            stand(runtime, self.key)
            stand(runtime, self.hidden)
            running.check()
            body = json.dumps([self.key, True, list(self.owner)]).encode()
            self.store(self.write, RECORD, body)
        except DsmsError as error:
            self.failure = error
            runtime.beginnings.pop(self.hidden, None)
            self._given_up()
        else:
            take_over(runtime, self.key, self.owner, difference=difference)
        finally:
            if difference is not None:
                difference.close()

    def _given_up(self) -> None:
        withdraw(self.runtime, self.key)
        self.store(lambda s: None, RECORD, json.dumps([self.key, False, []]).encode())


def _under_its_name(error: BaseException) -> BaseException:
    """What is said of the hidden query is said of the one that it was to be."""
    if isinstance(error, DsmsError):
        error.message = error.message.replace(HIDDEN, "")
    return error


def ended(runtime: Runtime, body: bytes) -> None:
    """The record of an end comes back."""
    key, done, owner = json.loads(body)
    if done:
        stand(runtime, key)
        stand(runtime, key + HIDDEN)
        take_over(runtime, key, tuple(owner))
    else:
        withdraw(runtime, key)


def give_up(runtime: Runtime, store: Store) -> list[str]:
    """Behind a restart: queries that were to take over, and had not, are gone; the names of those
    that stay."""
    keys = [key[: -len(HIDDEN)] for key in runtime.queries if is_hidden(key)]
    for key in keys:
        withdraw(runtime, key)
        store(lambda s: None, RECORD, json.dumps([key, False, []]).encode())
    return [runtime.queries[key].name for key in keys]


# ---------------------------------------------------------------- the change


def _hidden(query: QueryDef) -> QueryDef:
    """It, under a name that nobody can write."""
    place = query.place and query.place + HIDDEN
    return replace(query, name=query.name + HIDDEN, place=place)


def _shown(query: QueryDef) -> QueryDef:
    """It, under its own name again."""
    return replace(
        query, name=query.name.replace(HIDDEN, ""), place=query.place.replace(HIDDEN, "")
    )


def stand(runtime: Runtime, key: str) -> None:
    """The query stands where its clock is, however calls were divided."""
    if runtime.feeding.order:
        catch_up(runtime)
    query = runtime.queries[key]
    groups = runtime.shared.of(query.reads[0]) if query.grouped else ()
    for unit in (*groups, query):
        runtime.run_unit(unit, None)
    runtime.follow()
    runtime.dispatch.told(key)


def withdraw(runtime: Runtime, key: str) -> None:
    """The query that was to take over from that one is gone."""
    hidden = key + HIDDEN
    if hidden not in runtime.queries:
        return
    gone = runtime.dispatch.unregister(hidden)
    runtime.parts.left(hidden, gone)
    if isinstance(gone, EvaluatedQuery):
        forget(runtime, gone)
    runtime.catalog.queries.pop(hidden, None)
    runtime.catalog.plans.pop(hidden, None)
    runtime.clocks.forget(hidden)


def take_over(
    runtime: Runtime,
    key: str,
    owner: tuple[str | None, ...] = (),
    definition: QueryDef | None = None,
    difference: Difference | None = None,
) -> None:
    """The new query is the one of that name from here on.  Both stand where their clocks are."""
    hidden, old = key + HIDDEN, runtime.queries[key]
    new = runtime.dispatch.unregister(hidden)
    runtime.catalog.queries.pop(hidden, None)
    runtime.catalog.plans.pop(hidden, None)
    runtime.clocks.forget(hidden)
    put_in_place(runtime, key, new)
    if old.feed is not None:
        remember(runtime, runtime.inputs[Catalog.key(old.definition.feeds or "")], old)
    new.feed, old.feed = old.feed, None
    call(runtime, new, definition or _shown(new.definition))
    if new.feed is not None:
        entry = runtime.inputs[Catalog.key(new.definition.feeds or "")]
        new.feed.places = new.definition.places
        new.feed.floor = max(new.feed.floor, entry.completed)
        fed_anew(runtime, new)
    runtime.answers.known(key, runtime.catalog)
    runtime.clocks.reads(key, new.reads)
    for user in owner:
        runtime.rights = runtime.rights.changed({"owners": [[key, user]]})
    _go_on(old, new, difference)
    if isinstance(new, RunningQuery):
        runtime.parts.joined(key)
    stand(runtime, key)


def put_in_place(runtime: Runtime, key: str, new: Registered) -> Registered:
    """Rows go to the new query instead of the old one, and what that alone used is gone."""
    old = runtime.dispatch.replace(key, new)
    runtime.parts.left(key, old)
    if isinstance(old, EvaluatedQuery):
        forget(runtime, old)
    return old


def _shape(query: Registered) -> tuple[object, ...]:
    """What readers take for granted."""
    output = query.output
    columns = tuple((f.name, f.type) for f in output.schema)
    return (
        query.definition.on_lookup,
        output.kind,
        output.slide is not None,
        output.restore,
        query.approximate,
        {name for name, value in query.definition.options if value == "scale"},
        columns,
    )


def _alike(old: Registered, new: Registered) -> bool:
    """Whether readers of the one may go on with the other."""
    return _shape(old) == _shape(new) and old.failure is None


def _has_change(old: Registered, new: Registered) -> bool:
    """Whether readers keep up an answer by its changes."""
    continuous = isinstance(new, RunningQuery) and new.output.kind == "rstream"
    return continuous and _alike(old, new)


def _go_on(old: Registered, new: Registered, difference: Difference | None) -> None:
    """Results are numbered on; readers are told what is different."""
    limit, most = new.log.limit, new.log.limit_bytes
    alike, change = _alike(old, new), None
    if _has_change(old, new):
        change = (difference or Difference(old, new)).change()
    elif difference is not None:
        difference.close()
    if alike:
        new.log, new.readers = old.log, old.readers
        new.log.limit = limit
    else:
        new.log = ResultLog(limit, most, next_seq=old.seq, known_from=new.clock, current=old.seq)
        for reader in old.readers:
            what = f"query {new.name} was replaced, and its results are of another kind now"
            reader.finish("DS435", what)
    old.readers = []
    if alike and isinstance(new, PeriodicQuery):
        new.goes_on(getattr(old, "last", None), getattr(old, "answered", ALWAYS))
    if change is not None:
        change.seq = new.seq
        new.publish(change)
    if isinstance(new, RunningQuery):
        new.sink.seq = new.seq
