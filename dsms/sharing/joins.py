"""Where a periodic aggregate over a window join finds others that share the join and its synopses
(Golab 2006, §8.3.2).

SS3  A group answers queries over the same join with the same GROUP BY: over windows of equal length
     n s, 1 <= n <= b, and of lengths n1 s and n2 s, b - g <= n1, n2 <= b.  If all windows differ by
     the same, none need flags.
Grow Where a query asks for longer windows, finer sub-windows or other columns, the group is made
     anew for all of its members, if the rings still hold what their windows reach; otherwise the
     query has a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dsms.operators.expressions import ErrorCounter
from dsms.periodic.query import PeriodicQuery
from dsms.running.past import Past, complete_after
from dsms.sharing import ungrouped
from dsms.sharing.columns import needed
from dsms.sharing.join_group import JoinGroup
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.make_join_group import (
    Surroundings,
    fitting_shape,
    in_reach,
    new_group,
    renew,
)
from dsms.sharing.member import Above, Member
from dsms.sharing.python_calls import python_calls
from dsms.sharing.request import phase_of

CELLS = 1 << 22  # of a group that is made anew, at most


@dataclass(slots=True)
class Joins:
    """The groups over joins."""

    groups: list[JoinGroup] = field(default_factory=list)
    made: int = 0

    def of(self, stream: str | None) -> Iterator[JoinGroup]:
        """Those that read a stream (None: all)."""
        for group in self.groups:
            if stream is None or stream in group.streams:
                yield group

    def join(
        self, wanted: JoinRequest, errors: ErrorCounter, runtime: Surroundings, synopsis: str
    ) -> Member[JoinRequest]:
        """A member for the request: of a group that answers it as it is, that can be made to, or of
        a new one."""
        group = self._fitting(wanted, synopsis) or self._grown(wanted, runtime, synopsis)
        if group is None:
            group = self._new(wanted, runtime, synopsis)
            self.groups.append(group)
        return Member[JoinRequest](wanted, group, Above(wanted.above, len(wanted.keys), errors))

    def fits(self, wanted: JoinRequest) -> bool:
        """Whether a group answers it as it is."""
        return self._fitting(wanted, "auto") is not None

    def settle(
        self, member: Member[JoinRequest], query: PeriodicQuery, runtime: Surroundings
    ) -> int:
        """The member becomes part of its group; answers the instant from which its answers miss
        nothing."""
        group = _group_of(member)
        member.query = query
        group.members.append(member)
        member.plain = ungrouped.kind(member)
        group.hear_waiting()
        for stream in group.streams:
            if stream in runtime.first_rows:
                group.begin(runtime.first_rows[stream])
        pasts = [Past(k, f"{k}", n) for k, n in enumerate(member.request.lengths)]
        missing = {f"{k}": group.gone[k] for k in range(len(group.sides))}
        return complete_after(pasts, {}, missing, query.registered)

    def leave(self, member: Member[JoinRequest]) -> None:
        """The member's query is gone: so is what it alone used."""
        group = _group_of(member)
        group.members = [m for m in group.members if m is not member]
        used = {c for m in group.members for c in needed(m.request.aggs, bool(m.request.keys))}
        group.feed.columns = {c: column for c, column in group.feed.columns.items() if c in used}
        if not group.members:
            self.groups = [g for g in self.groups if g is not group]
            space = group.feed.space  # which has the feed, too
            space.feeds = [feed for feed in space.feeds if feed is not group.feed]

    # -- finding a place ---------------------------------------------------------------------------

    def _alike(self, wanted: JoinRequest, synopsis: str) -> list[JoinGroup]:
        going = (g for g in self.groups if g.failure is None and synopsis in ("auto", g.feed.asked))
        asked, calls = (wanted.join, wanted.keys), python_calls(wanted.aggs)
        alike = (g for g in going if (g.asked.join, g.asked.keys) == asked)
        # a fault in Python stops all that share it
        return [g for g in alike if python_calls(g.feed.columns) == calls]

    def _fitting(self, wanted: JoinRequest, synopsis: str) -> JoinGroup | None:
        """SS3; of several the one with the fewest intervals."""
        found = []
        for group in self._alike(wanted, synopsis):
            shape = group.feed.shape
            known = set(needed(wanted.aggs, bool(wanted.keys))) <= set(group.feed.columns)
            meets = wanted.span % shape.span == 0 and phase_of(wanted, shape.span) == shape.phase
            if known and meets and wanted.used <= group.stem.used and shape.answers(wanted.lengths):
                found.append(group)
        return min(found, key=lambda g: g.feed.shape.cells, default=None)

    def _grown(self, wanted: JoinRequest, runtime: Surroundings, synopsis: str) -> JoinGroup | None:
        """A group made anew for its members and the new one, where no answer misses a row for
        it."""
        for group in self._alike(wanted, synopsis):
            requests = [m.request for m in group.members]
            shape = fitting_shape([*requests, wanted])
            if shape is None or group.stem.flow is not None:
                continue
            few = shape.cells * group.feed.space.groups <= CELLS
            if few and in_reach(group, shape, runtime):
                renew(group, [*requests, wanted], shape, runtime)
                return group
        return None

    def _new(self, wanted: JoinRequest, runtime: Surroundings, synopsis: str) -> JoinGroup:
        self.made += 1
        name = f"{wanted.join.left.stream} * {wanted.join.right.stream}#{self.made}"
        return new_group(name, wanted, synopsis, runtime)


def _group_of(member: Member[JoinRequest]) -> JoinGroup:
    assert isinstance(member.group, JoinGroup)
    return member.group
