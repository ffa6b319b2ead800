"""What the language's rules need to know of a plan: does it append only, does it read a stream, may
rows leave unpredictably?  (The planner's patterns of Golab 2006, §3.5.1 say more; these three are
properties of the query.)"""

from __future__ import annotations

from typing import assert_never

from dsms.sql.logical import (
    Append,
    AsofJoin,
    Distinct,
    GroupBy,
    Join,
    JoinNRR,
    Node,
    SemiJoin,
    SetOp,
    StreamScan,
    TableScan,
    TopN,
    Values,
    Window,
    children,
)
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
    keeps_all,
)


def append_only(node: Node) -> bool:
    """Do rows, once there, stay for ever?"""
    match node:
        case StreamScan() | Values():
            return True
        case TableScan() | GroupBy() | SetOp() | TopN():
            return False
        case Window(spec=spec):
            return keeps_all(spec) and append_only(node.child)
        case Append():
            return not node.mixed
        case Join(kind=kind):
            return kind == "inner" and append_only(node.left) and append_only(node.right)
        case SemiJoin():
            return not node.anti and append_only(node.left) and append_only(node.right)
        case _:
            return all(append_only(c) for c in children(node))


def strict(node: Node) -> bool:
    """May rows leave at instants that could not be foretold when they came?"""
    match node:
        case TableScan() | GroupBy() | SetOp() | SemiJoin() | TopN():
            return not append_only(node)
        case Window(spec=spec):
            return _strict_window(spec, node.child)
        case Append():
            return False
        case AsofJoin():
            return strict(node.left)
        case Join(kind=kind):
            return kind != "inner" or strict(node.left) or strict(node.right)
        case _:
            return any(strict(c) for c in children(node))


def _strict_window(spec: WindowSpec, child: Node) -> bool:
    match spec:
        case Rows() | Partitioned() | Latest() | Session() | When():
            return True
        case Now():
            return False
        case Time() | Unbounded() | Landmark() | Lasting() | Throttled() | First():
            return strict(child)
        case _:
            assert_never(spec)


def reads_stream(node: Node) -> bool:
    """Is there a stream below?"""
    return isinstance(node, StreamScan) or any(reads_stream(c) for c in children(node))


def why_not_append_only(node: Node) -> str:
    """The reason a window can't be put over this result (Golab 2006, §3.3.3 and §3.4)."""
    match node:
        case GroupBy():
            return (
                "an aggregate over external windows is one current answer that is replaced, "
                "not a stream of results"
            )
        case Distinct():
            return "rows of DISTINCT leave when their values leave the window"
        case TopN():
            return "the first rows of a relation are taken back when others come before them"
        case SemiJoin(anti=True) | SetOp():
            return "rows that no longer satisfy the negation are taken back"
        case Join(kind="left" | "right" | "full"):
            return "the padded row of an outer join is taken back when a match comes"
        case TableScan():
            return "rows of a table are updated and deleted"
        case Window(spec=Latest()):
            return "rows of a stream with KEY are replaced and deleted"
        case Join() | JoinNRR() | AsofJoin() | SemiJoin() | Window():
            guilty: list[Node] = [
                c for c in children(node) if not append_only(c) and not isinstance(c, Window)
            ]
            return (
                why_not_append_only(guilty[0])
                if guilty
                else "rows leave when the windows inside slide on"
            )
        case _:
            guilty = [c for c in children(node) if not append_only(c)]
            return why_not_append_only(guilty[0]) if guilty else "rows leave it"
