"""WITH (over = shed): which queries can let go of rows of their windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.catalog import Option
from dsms.sql.codes import error
from dsms.sql.window import First, Landmark, Lasting, Now, Throttled, Time, Unbounded

HINT = (
    "inner joins of windows in time let go of rows, below selections, projections, UNION ALL and "
    "non-retroactive tables; leave over = shed out, and a query stops at max_state"
)


def check(
    options: Sequence[ast.Option], said: Mapping[str, Option], node: lp.Node, follows: bool
) -> None:
    """Raise DS334 where no operator can let go of rows, or another one would make wrong answers of
    what is left, and DS362 without `max_state`.  `follows`: it answers whenever its streams go
    on."""
    option = next((o for o in options if o.name.text.casefold() == "over"), None)
    if option is None or said["over"] != "shed":
        return
    if not follows:
        raise _refused("its state is that of windows or synopses, not of joins", option)
    if said.get("strategy") == "nt":
        message = "strategy = nt takes results back with the rows that they are made of"
        raise error("DS334", message, option, "leave strategy out, or over = shed")
    if said.get("joins") == "adaptive":
        message = "adaptive joins keep all rows"
        raise error("DS334", message, option, "joins = pipeline or tree, or leave joins out")
    kinds = list(lp.nodes_of(node))
    why_not = next((why for one in kinds if (why := _why_not(one)) is not None), None)
    if why_not is not None:
        raise _refused(why_not, option)
    if not any(isinstance(one, lp.Join) for one in kinds):
        raise _refused("it joins no windows", option)
    if "max_state" not in said:
        message = "over = shed does not say when rows are let go"
        raise error("DS362", message, option, "add max_state = bytes, such as 100000000")


def _refused(message: str, option: ast.Option) -> QueryError:
    return error("DS334", message, option, HINT)


def _why_not(node: lp.Node) -> str | None:
    """What of a node forbids it that rows are missing below, or needs deletions."""
    match node:
        case lp.StreamScan() | lp.Values() | lp.Select() | lp.Project() | lp.Union() | lp.Unnest():
            return None
        case lp.JoinNRR() | lp.MultiJoin() | lp.Output():
            return None
        case lp.Join():
            return None if node.kind == "inner" else "an outer join pads rows that have no match"
        case lp.AsofJoin():
            return "ASOF JOIN finds the newest row of each key, which must not be missing"
        case lp.Match():
            return "MATCH keeps the rows of its attempts, which must not be missing"
        case lp.Over():
            return "OVER looks at the rows up to each row, of which none must be missing"
        case lp.Window():
            if isinstance(node.spec, Throttled | First):
                return "which rows such a window lets in depends on those before"
            in_time = isinstance(node.spec, Time | Now | Unbounded | Landmark | Lasting)
            return (
                None if in_time else "a window that counts rows, or of episodes, takes results back"
            )
        case lp.GroupBy():
            return "aggregates keep all of their state"
        case lp.Distinct():
            return "DISTINCT and UNION keep all of their state"
        case lp.SemiJoin():
            return "EXISTS and IN keep all of their state"
        case lp.TopN():
            return "LIMIT keeps the rows that may come in when others leave"
        case lp.SetOp():
            return "EXCEPT and INTERSECT keep all of their state"
        case lp.TableScan():
            return "rows of a table are taken back"
        case lp.Answer():
            return f"it reads the answer of {node.query}, which may be taken back"
        case _:
            return "what is appended keeps all of its state"
