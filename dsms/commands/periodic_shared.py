"""A query with SLIDE that is answered from synopses, which it may share with others."""

from __future__ import annotations

from dataclasses import replace

from dsms.commands.periodic_registration import Registration
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.running.beginning import look_back
from dsms.running.past import Past, pasts
from dsms.running.runtime import Runtime
from dsms.sharing import ungrouped
from dsms.sharing.incremental import Answers
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.member import Member
from dsms.sharing.threshold import apart, seeking
from dsms.sql import logical as lp


def shared(new: Registration) -> PeriodicQuery:
    """The query as a member of the group that answers it."""
    runtime, plan = new.runtime, new.plan
    errors = new.errors()
    wanted = plan.wanted
    if isinstance(wanted, JoinRequest):
        return _joined(new, wanted)
    assert wanted is not None
    stream, entry = wanted.stream, runtime.inputs[wanted.stream]
    member = runtime.shared.join(
        wanted, errors, plan.counted, entry.definition.subwindow, not apart(new.options)
    )
    member.seeking = seeking(new.options)
    query = new.query(member, errors, {0: stream}, ())
    settle(runtime, member, query, plan.core, plan.counted)
    query.clock = query.registered
    if plan.path.kind == "ISS":
        member.path, member.kept = "ISS", Answers()
    member.plain = ungrouped.kind(member)
    if stream in runtime.first_rows:
        query.begin(runtime.first_rows[stream])
    return query


def settle(
    runtime: Runtime, member: Member, query: EvaluatedQuery, core: lp.Output, counted: bool
) -> None:
    """The query is answered from synopses of its stream from now on."""
    (stream,) = query.reads
    first, clock = runtime.inputs[stream].next_complete, runtime.clock_of((stream,))
    query.registered_at(clock)
    if counted:
        query.registered = first
        look_back(runtime, query, [_in_rows(p) for p in pasts(core.child)], clock)
    whole = runtime.shared.settle(
        member, query, runtime.rings.get(stream), runtime.handed_on(stream), first
    )
    query.numbers = member.numbers
    if not counted:
        query.partial_until = whole
    else:  # the synopses may have more than the ring
        query.full_at = tuple((s, min(at, max(whole + 1, first))) for s, at in query.full_at)


def _in_rows(past: Past) -> Past:
    """A length over arrival numbers (`over_numbers`) as the number of rows that it is."""
    if past.rows is not None or past.length is None:
        return past
    return replace(past, rows=past.length, length=None)


def _joined(new: Registration, wanted: JoinRequest) -> PeriodicQuery:
    runtime, errors = new.runtime, new.errors()
    synopsis = str(new.options.get("synopsis", "auto"))
    member = runtime.shared.joins.join(wanted, errors, runtime, synopsis)
    streams = {p.leaf: p.stream for p in pasts(new.plan.core.child)}
    query = new.query(member, errors, streams, ())
    query.registered_at(runtime.clock_of(query.reads))
    query.clock = query.registered
    query.partial_until = runtime.shared.joins.settle(member, query, runtime)
    return query
