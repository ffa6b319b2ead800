"""What a plan that is run once needs of each leaf: the caller fetches that much, or reports that it
is not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dsms.plan import over, windows
from dsms.plan.identity import leaves
from dsms.sql import logical as lp
from dsms.sql.plan_reads import unwindowed
from dsms.sql.types import ALWAYS
from dsms.sql.window import UNBOUNDED, Time, Unbounded, WindowSpec


@dataclass(frozen=True, slots=True)
class Read:
    """One leaf.  `floor`: rows up to that instant are got from elsewhere; `ago`: rows younger than
    that are not looked at.

    archive   rows of an archive as of the instant (`dsms.oneshot.pushdown` says which of them)
    stream    rows of a stream up to `upto(at)`, in order of (ts, arrival): those with ts >
              `since(at)`; where that is ALWAYS and `rows` is set, the newest so many will do
    history   rows that a query has told, as rows of a stream
    table     rows of a table as of the instant (`VersionedTable.current`), ts: when each was born
    versions  all versions of a non-retroactive relation that stream rows may ask for, ts: born,
              exp: ended
    appended  what the block over INTERNAL windows below `node` has appended, from the beginning,
              numbered serially
    """

    kind: Literal["stream", "table", "versions", "appended", "archive", "history"]
    node: lp.StreamScan | lp.TableScan | lp.Append
    spec: WindowSpec = UNBOUNDED
    floor: int = ALWAYS
    ago: int = 0

    def since(self, at: int) -> int:
        """The instant after which rows are needed."""
        found = windows.since(self.spec, at)
        return self.floor if found is None else max(found - self.ago, self.floor)

    def upto(self, at: int) -> int:
        """The instant up to which rows are needed."""
        return max(at - self.ago, ALWAYS) if at > ALWAYS else at

    @property
    def rows(self) -> int | None:
        """How many of the newest rows are enough, if the window counts them."""
        return windows.newest(self.spec)


def found_within(node: lp.AsofJoin, left: Iterable[Read]) -> WindowSpec:
    """A window that holds all rows that left rows find, if these are read so."""
    lengths = [windows.longest(read.spec) for read in left]
    if node.span is None or None in lengths:
        return UNBOUNDED
    return Time(max(lengths, default=0) + node.span)  # type: ignore[type-var, operator]


def reads(node: lp.Node, spec: WindowSpec = UNBOUNDED, ago: int = 0) -> dict[int, Read]:
    """By leaf number what the plan needs; `spec`: the window over the node, where it may be moved
    to the leaf, of which no row is looked at before it is `ago` old."""
    match node:
        case lp.StreamScan():
            kind: Literal["stream", "archive", "history"]
            kind = "stream" if node.live else "history" if node.history else "archive"
            return {node.leaf: Read(kind, node, spec, ago=ago)}
        case lp.TableScan():
            return {node.leaf: Read("table", node)}
        case lp.Append():
            return {min(leaves(node)): Read("appended", node)}
        case lp.Window(spec=Unbounded(until=until)):
            return reads(node.child, spec, ago + until)
        case lp.Window():
            return reads(node.child, node.spec)
        case lp.Project():
            return reads(node.child, spec, ago)
        case lp.Select():
            return reads(node.child, spec if windows.commutes(spec) else UNBOUNDED, ago)
        case lp.Over():
            return reads(node.child, UNBOUNDED if ago else over.seen_from(node, spec))
        case lp.JoinNRR():
            return {**reads(node.child), node.table.leaf: Read("versions", node.table)}
        case lp.Match(skip=True):
            steps = [reads(unwindowed(child)) for child in node.inputs]
            return {leaf: read for step in steps for leaf, read in step.items()}
        case lp.AsofJoin():
            left = reads(node.left)
            return {**left, **reads(node.right, found_within(node, left.values()))}
        case _:
            return {
                leaf: read for child in lp.children(node) for leaf, read in reads(child).items()
            }
