"""The oracle: answers and deltas of a bound query, recomputed from the definitions at every
instant."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dsms.sql import logical as lp
from dsms.sql.multi_joins import binary
from dsms.sql.types import ALWAYS
from tests.oracle.facts import Change, Fact, Row, Values, changed, in_order, net
from tests.oracle.instants import instants
from tests.oracle.keys import arrivals, by_value
from tests.oracle.lasting import with_deaths
from tests.oracle.relational import Evaluator
from tests.oracle.windows import lasts


@dataclass(frozen=True, slots=True)
class Delta:
    """What is pushed: at which instant, of which kind, which row; `key` is its place among those of
    one instant."""

    at: int
    kind: Literal["insert", "delete"]
    values: Values
    key: tuple[int, ...] = ()


class Oracle:
    """One bound query over given input.

    `streams`: accepted rows by stream name; `tables`: changes by table name, in order; `ages`: how
    old rows are when who asks sees them, by the names of streams that he sees late.  `kind` says
    what is reported where the query leaves it open (the default follows from `is_monotonic`).
    """

    def __init__(
        self,
        output: lp.Output,
        streams: Mapping[str, Sequence[Row]],
        tables: Mapping[str, Sequence[Change]] | None = None,
        ages: Mapping[str, int] | None = None,
    ) -> None:
        tables, ages = tables or {}, ages or {}
        plain = binary(output)
        assert isinstance(plain, lp.Output)
        self.output = output = plain
        self.kind = (
            output.kind
            if output.explicit
            else "istream"
            if is_monotonic(output.child)
            else "rstream"
        )
        found = with_deaths(
            output.child,
            lambda deaths: instants(output.child, streams, tables, ages, deaths=deaths),
            lambda steps: Evaluator(steps, streams, tables, ages=ages),
        )
        self.instants = sorted(found | {ALWAYS})
        self._evaluator = Evaluator(self.instants, streams, tables, ages=ages)

    def answer(self, at: int) -> list[Fact]:
        """Q(at): the rows of the answer, in the order of ORDER BY if there is one, else by key."""
        rows = self._evaluator.at(self.output.child, bisect_right(self.instants, at) - 1)
        return rows if isinstance(self.output.child, lp.Sort) else in_order(rows)

    def deltas(self, upto: int) -> list[Delta]:
        """What is pushed up to that instant, in order: instant, deletes before inserts, then
        keys."""
        out: list[Delta] = []
        places: dict = {}
        for step, now in enumerate(self.instants):
            if now > upto:
                break
            left, entered = self._shown(step, places)
            if self.kind == "rstream":
                out += [Delta(now, "delete", f.values, arrivals(f.key)) for f in left]
            pushed = left if self.kind == "dstream" else entered
            out += [Delta(now, "insert", f.values, arrivals(f.key)) for f in pushed]
        return out

    def _shown(self, step: int, places: dict) -> tuple[list[Fact], list[Fact]]:
        """Rows with parts by identity, the others by value; `places`: keys taken over from rows
        they stand in for.

        Where keys are equal by that, the row that came in first goes first."""
        child = self.output.child
        left, entered = changed(
            self._evaluator.at(child, step - 1), self._evaluator.at(child, step)
        )
        came = {f.ident: (f.birth, f.key) for f in left}
        left = [replace(f, key=places.pop(f.ident, f.key)) for f in left]
        if by_value(child):
            left, entered, taken = net(left, entered)
            places |= taken
        return sorted(left, key=lambda f: (f.key, came[f.ident])), in_order(entered)


def is_monotonic(node: lp.Node) -> bool:
    """Can no row of this answer ever leave, whatever comes?  (The MON label, Golab 2006,
    §3.5.1.)"""
    inputs = all(is_monotonic(child) for child in lp.children(node))
    match node:
        case lp.Append():
            return not node.mixed
        case lp.Window():
            return inputs and lasts(node.spec)
        case lp.TableScan() | lp.GroupBy() | lp.SetOp() | lp.TopN():
            return False
        case lp.Join():
            return inputs and node.kind == "inner"
        case lp.SemiJoin():
            return inputs and not node.anti
        case lp.Sort():
            return inputs and node.limit is None and not node.offset
        case _:
            return inputs
