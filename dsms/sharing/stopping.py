"""A fault in what the queries of a group share stops them all."""

from __future__ import annotations

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
