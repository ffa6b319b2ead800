"""What the queries of a group share takes rows; a fault in it stops them all."""

from __future__ import annotations

from dsms.intake.outcome import Released
from dsms.periodic.elastic import Backlog
from dsms.running.faults import stop
from dsms.sharing.group import Group
from dsms.sharing.registry import Registry


def stop_group(shared: Registry, backlog: Backlog, group: Group, fault: Exception) -> bool:
    """The group goes, and its queries stop; False as `stop` says."""
    queries = [m.query for m in group.members if m.query is not None]
    if not stop(queries, fault):
        return False
    shared.expel(group)
    for query in queries:
        backlog.remove(group.name, query.name)
    return True


def take_in(group: Group, stream: str, released: Released, first: int | None) -> None:
    """The group gets the stream's rows; `first`: the instant of its first one, if one came."""
    if first is not None:
        group.begin(first)
    for batch in released.complete:
        group.take(stream, batch)
