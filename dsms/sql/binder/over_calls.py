"""What stands before OVER: aggregates, LAG, LEAD, ROW_NUMBER(), RANK(), DENSE_RANK()."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.aggregates.cards.python import PYTHON_AGGREGATE
from dsms.sql import ast, functions
from dsms.sql.binder.aggregates import agg_call, is_aggregate_call
from dsms.sql.binder.calls import call, cast
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.lists import without_order
from dsms.sql.binder.typenames import default_type
from dsms.sql.codes import error
from dsms.sql.expr import AggCall, Call, Expr, Lit
from dsms.sql.printer import to_sql
from dsms.sql.types import INT

LAG, LEAD, ROW_NUMBER = "lag", "lead", "row_number"
RANKS = ("rank", "dense_rank")
FRAMELESS = (LAG, LEAD, ROW_NUMBER, *RANKS)
SHARES = ("percent_rank", "cume_dist", "ntile")
FIRST_ROWS = (
    "the first rows of each key as they change are QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER "
    "BY x DESC) <= 3, which is ORDER BY x DESC LIMIT 3 PER k"
)
MOST_BACK = 1_000_000
_ONE_KEY = "order by one expression: RANK() OVER (PARTITION BY k ORDER BY x DESC)"


def is_call(node: ast.Over, *names: str) -> bool:
    """Whether a function of one of these names stands before OVER."""
    found = node.call
    return isinstance(found, ast.FuncCall) and found.name.text.casefold() in names


def bind_call(env: Env, node: ast.Over) -> tuple[AggCall, int | None]:
    """The typed call; of LAG and LEAD, how many rows they go.  Raises DS372, and what aggregates
    do."""
    given = node.call
    if not isinstance(given, ast.FuncCall):
        message = "OVER stands behind one call, and scaled sums are made of several"
        raise error("DS372", message, node, "leave scale out, or compute it in a subquery")
    match given.name.text.casefold():
        case "lag" | "lead" as name:
            return _neighbour(env, given, name)
        case "row_number":
            _plain(given, 0, 0)
            return AggCall(ROW_NUMBER, (), INT, name=to_sql(node)), None
        case name if name in RANKS:
            return _rank(env, node, given, name), None
        case name if name in SHARES:
            message = f"{name.upper()} is of how many rows there are, which later rows change"
            hint = "RANK() OVER (ORDER BY x DESC) is the place that a row had when it came"
            raise error("DS372", message, given, f"{hint}; {FIRST_ROWS}")
    if not is_aggregate_call(given):
        message = f"{given.name.text.upper()} can't stand before OVER"
        hint = (
            "aggregates can, such as SUM(x), and FIRST(x), LAST(x), LAG(x, n), LEAD(x, n), "
            "ROW_NUMBER(), RANK()"
        )
        raise error("DS372", message, given, hint)
    found = agg_call(env, given)
    if functions.aggregate(found.fn).sampled or found.fn == PYTHON_AGGREGATE:
        message = f"{given.name.text.upper()} does not follow single rows, as OVER does"
        raise error("DS372", message, given, "use an exact aggregate that is built in")
    return AggCall(
        found.fn, found.args, found.type, found.distinct, found.filter, found.params, to_sql(node)
    ), None


def _neighbour(env: Env, node: ast.FuncCall, name: str) -> tuple[AggCall, int]:
    """``LAG(x)``, ``LAG(x, n)``, ``LAG(x, n, default)``, and LEAD."""
    _plain(node, 1, 3)
    value, back = bind(env, node.args[0]), 1
    if len(node.args) > 1:
        number = bind(env, node.args[1])
        if not isinstance(number, Lit) or number.type != INT or not _in_range(number.value):
            way = "back" if name == LAG else "on"
            message = f"{name.upper()} goes {way} a constant number of rows"
            raise error("DS372", message, node.args[1], f"write a number from 0 to {MOST_BACK}")
        assert isinstance(number.value, int)
        back = number.value
    args: Sequence[Expr] = [cast(value, default_type(value.type))]
    if len(node.args) > 2:
        args = _alike(value, bind(env, node.args[2]), node)
    return AggCall(name, tuple(args), args[0].type, params=(back,), name=to_sql(node)), back


def _in_range(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MOST_BACK


def _alike(value: Expr, default: Expr, node: ast.FuncCall) -> Sequence[Expr]:
    """Both, of one type.  Raises DS208."""
    both = call("coalesce", [value, default], node)
    assert isinstance(both, Call)
    return [cast(a, default_type(both.type)) for a in both.args]


def _rank(env: Env, node: ast.Over, given: ast.FuncCall, name: str) -> AggCall:
    """``RANK()``, ``DENSE_RANK()``: among the rows up to it, those before it in an order of
    values."""
    _plain(given, 0, 0)
    if len(node.order_by) != 1:
        message = f"{name.upper()}() is a place in an order, and ORDER BY says by which expression"
        raise error("DS372", message, node.order_by[1] if node.order_by else given, _ONE_KEY)
    (item,) = node.order_by
    by = bind(env, item.expr)
    without_order("lt", [by.type], item)
    how = ("desc",) * item.descending + ("nulls first",) * bool(item.nulls_first)
    by = cast(by, default_type(by.type))
    return AggCall(name, (by,), INT, params=how, name=to_sql(node))


def _plain(node: ast.FuncCall, least: int, most: int) -> None:
    name = node.name.text.upper()
    if what := node.odd:
        raise error("DS304", f"{name} does not take {what}", node, f"leave {what} out")
    if not least <= len(node.args) <= most:
        forms = f"{name}(x), {name}(x, n) or {name}(x, n, default)" if most else f"{name}()"
        raise error("DS207", f"{name} does not take {len(node.args)} arguments", node, forms)
