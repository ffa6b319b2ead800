"""Where a SLIDE counts rows of a stream, each of these is an instant of its own.

Time goes through points.  An instant t has one at which everything else happens that happens at t:
rows of other streams come, rows expire, tables change.  Then it has one for each row of the counted
stream, in order of arrival.  So the point of a row sees that row and those before it, and
everything else as of the whole instant.  Points are numbered in order, and numbers stand for
instants; how long something lasts is given by the instants that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS
from tests.oracle.facts import Change, Row
from tests.oracle.instants import instants
from tests.oracle.lasting import with_deaths
from tests.oracle.relational import Evaluator


@dataclass
class Points:
    """`real`: the instant of each point; `counted`: the point of each row of the counted stream;
    `streams`, `tables`: what came, at points."""

    real: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    streams: dict[str, list[Row]] = field(default_factory=dict)
    tables: dict[str, list[Change]] = field(default_factory=dict)

    @staticmethod
    def of(
        plan: lp.Node,
        name: str,
        streams: Mapping[str, Sequence[Row]],
        tables: Mapping[str, Sequence[Change]],
    ) -> Points:
        """The points of a plan over that input, where rows of `name` are counted."""
        found = with_deaths(
            plan,
            lambda deaths: instants(plan, streams, tables, deaths=deaths),
            lambda steps: Evaluator(steps, streams, tables),
        )
        found |= {c.at for changes in tables.values() for c in changes}
        out, whole = Points(), {ALWAYS: ALWAYS}
        rows = list(streams[name])
        for instant in sorted(t for t in found if t > ALWAYS):
            whole[instant] = out._point(instant)
            for row in rows:
                if row.ts == instant:
                    out.counted.append(out._point(instant))
        for other, come in streams.items():
            out.streams[other] = [replace(row, ts=whole[row.ts]) for row in come]
        out.streams[name] = [replace(row, ts=p) for row, p in zip(rows, out.counted, strict=True)]
        out.tables = {
            n: [replace(c, at=whole[c.at]) for c in changes] for n, changes in tables.items()
        }
        return out

    def _point(self, instant: int) -> int:
        self.real.append(instant)
        return len(self.real) - 1

    def instant(self, point: int) -> int:
        """The instant of a point."""
        return ALWAYS if point == ALWAYS else self.real[point]
