"""What stands before OVER: aggregates, LAG, ROW_NUMBER()."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.aggregates.cards.python import PYTHON_AGGREGATE
from dsms.errors import QueryError
from dsms.sql import ast, functions
from dsms.sql.binder.aggregates import agg_call, is_aggregate_call
from dsms.sql.binder.calls import call, cast
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.typenames import default_type
from dsms.sql.codes import error
from dsms.sql.expr import AggCall, Call, Expr, Lit
from dsms.sql.printer import to_sql
from dsms.sql.types import INT

LAG, ROW_NUMBER = "lag", "row_number"
RANKS = ("rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
FIRST_ROWS = (
    "the first rows of each key as they change are QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER "
    "BY x DESC) <= 3, which is ORDER BY x DESC LIMIT 3 PER k"
)
MOST_BACK = 1_000_000


def is_call(node: ast.Over, name: str) -> bool:
    """Whether a function of that name stands before OVER."""
    found = node.call
    return isinstance(found, ast.FuncCall) and found.name.text.casefold() == name


def bind_call(env: Env, node: ast.Over) -> tuple[AggCall, int | None]:
    """The typed call; of LAG, how many rows it goes back.  Raises DS372, DS374, and what aggregates
    do."""
    given = node.call
    if not isinstance(given, ast.FuncCall):
        message = "OVER stands behind one call, and scaled sums are made of several"
        raise error("DS372", message, node, "leave scale out, or compute it in a subquery")
    match given.name.text.casefold():
        case "lag":
            return _lag(env, given)
        case "lead":
            raise _lead(given)
        case "row_number":
            _plain(given, 0, 0)
            return AggCall(ROW_NUMBER, (), INT, name=to_sql(node)), None
        case name if name in RANKS:
            message = f"{name.upper()} goes by an order of its own, which later rows change"
            hint = f"in the order of the stream ROW_NUMBER() counts; {FIRST_ROWS}"
            raise error("DS372", message, given, hint)
    if not is_aggregate_call(given):
        message = f"{given.name.text.upper()} can't stand before OVER"
        hint = "aggregates can, such as SUM(x), and FIRST(x), LAST(x), LAG(x, n), ROW_NUMBER()"
        raise error("DS372", message, given, hint)
    found = agg_call(env, given)
    if functions.aggregate(found.fn).sampled or found.fn == PYTHON_AGGREGATE:
        message = f"{given.name.text.upper()} does not follow single rows, as OVER does"
        raise error("DS372", message, given, "use an exact aggregate that is built in")
    return AggCall(
        found.fn, found.args, found.type, found.distinct, found.filter, found.params, to_sql(node)
    ), None


def _lag(env: Env, node: ast.FuncCall) -> tuple[AggCall, int]:
    """``LAG(x)``, ``LAG(x, n)``, ``LAG(x, n, default)``."""
    _plain(node, 1, 3)
    value, back = bind(env, node.args[0]), 1
    if len(node.args) > 1:
        number = bind(env, node.args[1])
        if not isinstance(number, Lit) or number.type != INT or not _in_range(number.value):
            message = "LAG goes back a constant number of rows"
            raise error("DS372", message, node.args[1], f"write a number from 0 to {MOST_BACK}")
        assert isinstance(number.value, int)
        back = number.value
    args: Sequence[Expr] = [cast(value, default_type(value.type))]
    if len(node.args) > 2:
        args = _alike(value, bind(env, node.args[2]), node)
    return AggCall(LAG, tuple(args), args[0].type, params=(back,), name=to_sql(node)), back


def _in_range(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MOST_BACK


def _alike(value: Expr, default: Expr, node: ast.FuncCall) -> Sequence[Expr]:
    """Both, of one type.  Raises DS208."""
    both = call("coalesce", [value, default], node)
    assert isinstance(both, Call)
    return [cast(a, default_type(both.type)) for a in both.args]


def _lead(node: ast.FuncCall) -> QueryError:
    message = (
        "LEAD looks at a row that is yet to come, and what a row says is settled when it comes"
    )
    x = to_sql(node.args[0]) if node.args else "x"
    hint = (
        f"look back from the next row: LAG({x}) OVER (...) beside its own {x}; each row then says "
        "what the one before it was"
    )
    return error("DS374", message, node, hint)


def _plain(node: ast.FuncCall, least: int, most: int) -> None:
    name = node.name.text.upper()
    if node.star or node.distinct or node.filter is not None:
        what = "*" if node.star else "DISTINCT" if node.distinct else "FILTER"
        raise error("DS304", f"{name} does not take {what}", node, f"leave {what} out")
    if not least <= len(node.args) <= most:
        forms = "LAG(x), LAG(x, n) or LAG(x, n, default)" if most else f"{name}()"
        raise error("DS207", f"{name} does not take {len(node.args)} arguments", node, forms)
