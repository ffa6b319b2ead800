"""Stops of queries that do not follow from their input: written down, so that they hold after a
crash, too.

A function in Python that was too slow then may be fast enough when rows come back out of the
journal, and a limit of memory may be another one; the query that stopped over it was told to have
stopped.  What a failing row does (`on_error`) follows from the row, and needs no record.  What the
query had answered by then it answers again, and perhaps more of the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from dsms.commands.store import Store
from dsms.errors import DsmsError, QueryError, UsageError
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime

RECORD = "stopped"  # in the journal: a query stops here
BY_CHANCE = frozenset({"DS246", "DS247", "DS248", "DS249", "DS630", "DS681"})


@dataclass(slots=True)
class Stops:
    """What is written down of stops.

    seen   `Registered.stops` at the last look
    known  why they stopped, by the queries' keys, as far as it is written down"""

    seen: int = field(default_factory=lambda: Registered.stops)
    known: dict[str, DsmsError] = field(default_factory=dict)

    def write(self, runtime: Runtime, store: Store) -> None:
        """Write down those that are new.  Where that can't be done now, the next call tries."""
        if self.seen == Registered.stops or runtime.durable is None or runtime.replaying:
            return
        seen = Registered.stops
        try:
            for key, query in runtime.queries.items():
                why = query.failure
                if why is None or why.code not in BY_CHANCE or self.known.get(key) is why:
                    continue
                if key in runtime.beginnings:  # it may not stay
                    continue
                said = {"key": key, "code": why.code, "message": why.message, "hint": why.hint}
                store(lambda s: None, RECORD, json.dumps(said).encode())
                self.known[key] = why
        except DsmsError:
            return
        self.known = {k: why for k, why in self.known.items() if k in runtime.queries}
        self.seen = seen


def again(runtime: Runtime, body: bytes) -> None:
    """The record of a stop comes back."""
    said = json.loads(body)
    query = runtime.queries.get(said["key"])
    if query is None or query.failure is not None:
        return
    kind = QueryError if said["code"].startswith("DS2") else UsageError
    query.fail(kind(said["code"], said["message"], hint=said["hint"]))
    for group in list(runtime.shared.of(None)):
        sharing = [m.query for m in group.members if m.query is not None]
        if query in sharing and all(q.failure is not None for q in sharing):
            runtime.shared.expel(group)
            for one in sharing:
                runtime.backlog.remove(group.name, one.name)
