"""Calls of functions of one's own become what they stand for, before names and types are looked up.

So all that comes after (plans, synopses that queries share, what is rendered for others) knows
built-in functions alone, and a query keeps the meaning that it was registered with: its text is
kept with the calls expanded.  What is put in place of a parameter is an `ast.Argument`, by which
the binder checks its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from dsms.errors import DsmsError
from dsms.sql import ast, functions
from dsms.sql.binder.aggregates import is_aggregate_call
from dsms.sql.catalog import Catalog, FunctionDef
from dsms.sql.codes import error
from dsms.sql.parser import check_depth, parse_one
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced
from dsms.sql.types import BOOL, INT
from dsms.sql.unbind import type_name

LARGEST = 20_000  # nodes that calls of one statement may stand for
Calls = tuple[tuple[ast.Expr, ast.Expr], ...]
_BEFORE = "SELECT "

_COUNT_IF = FunctionDef("COUNT_IF", True, (("c", BOOL),), INT, "COUNT(*) FILTER (WHERE c)")
# aggregates that are built in, and are others with something said; one's own of that name, made
# before there were these, come first
BUILT_IN = {"count_if": _COUNT_IF, "countif": _COUNT_IF}


def callable_in(catalog: Catalog) -> Mapping[str, FunctionDef]:
    """By name what calls stand for: functions of one's own, and the few built in like them."""
    return {**BUILT_IN, **catalog.functions}


def expanded(statement: ast.Statement, catalog: Catalog) -> ast.Statement:
    """The statement without calls of functions of one's own; EXPLAIN keeps what they stand for.

    Raises QueryError DS243 to DS245, DS304, DS105."""
    known = callable_in(catalog)
    if isinstance(statement, ast.CreateFunction) or not _calls(statement, known):
        return statement
    work = Expansion(known)
    made: ast.Statement = work.of(statement)
    check_depth(made)
    _check_values(made, work)
    return replace(made, calls=tuple(work.calls)) if isinstance(made, ast.Explain) else made


def _check_values(made: ast.Statement, work: Expansion) -> None:
    """Values of LOOKUP are told apart by their order in the text, which is kept: there each must
    stand once, and in that order.  Raises DS243."""
    if not any(isinstance(part, ast.Parameter) for part in ast.walk(made)):
        return
    if _marked(to_sql(made)) != settled(made):
        call = next(
            c for c, _ in work.calls if any(isinstance(p, ast.Parameter) for p in ast.walk(c))
        )
        message = f"the text of {to_sql(call)} does not have each value of LOOKUP once, in order"
        raise error("DS243", message, call, "compare what it stands for, without a call")


def _marked(text: str) -> ast.Statement | None:
    """The statement again; None where a value stands where none may."""
    try:
        return parse_one(text)
    except DsmsError:
        return None


def is_own(node: ast.Node, known: Mapping[str, FunctionDef]) -> bool:
    """Whether it is a call of one of these."""
    return isinstance(node, ast.FuncCall) and node.name.text.casefold() in known


def settled(node: Any) -> Any:
    """What was bound, with casts in place of arguments that needed one, and of those that were not
    bound."""

    def swap(part: ast.Node) -> ast.Node | None:
        if not isinstance(part, ast.Argument):
            return None
        operand = settled(part.operand)
        cast = part.given.cast is not False
        return ast.Cast(operand, part.type, pos=part.pos) if cast else operand

    return replaced(node, swap, within_queries=True)


@lru_cache(1024)
def body_of(definition: FunctionDef) -> ast.Expr:
    """The text of a function as syntax; places are those in the text."""
    parsed = parse_one(_BEFORE + definition.body)
    assert isinstance(parsed, ast.SelectStatement) and isinstance(parsed.query.body, ast.Select)
    (item,) = parsed.query.body.items
    assert isinstance(item, ast.SelectItem)
    return item.expr


def aggregates_of(body: ast.Node) -> list[ast.FuncCall]:
    """The calls of aggregates in it, each once."""
    found = [part for part in ast.walk(body) if is_aggregate_call(part)]
    return list(dict.fromkeys(part for part in found if isinstance(part, ast.FuncCall)))


def _calls(node: ast.Node, known: Mapping[str, FunctionDef], inside: bool = True) -> bool:
    """Whether there is such a call below; `inside`: of queries, too."""
    stack = [node]
    while stack:
        item = stack.pop()
        if is_own(item, known):
            return True
        if inside or not isinstance(item, ast.Query):
            stack.extend(ast.children(item))
    return False


@dataclass(slots=True)
class Expansion:
    """Puts what calls stand for in their places.

    calls  each call, and what it stands for
    size   nodes of all that was put in
    """

    known: Mapping[str, FunctionDef]
    calls: list[tuple[ast.Expr, ast.Expr]] = field(default_factory=list)
    size: int = 0

    def of(self, node: Any) -> Any:
        """The node with all calls in it expanded."""
        return replaced(node, self._swap, within_queries=True)

    def _swap(self, part: ast.Node) -> ast.Node | None:
        if isinstance(part, ast.SelectItem) and part.alias is None:
            if not _calls(part.expr, self.known, inside=False):
                return None
            called = ast.Ident(to_sql(part.expr), quoted=True, pos=part.pos)
            return replace(part, expr=self.of(part.expr), alias=called)
        if isinstance(part, ast.Over) and is_own(part.call, self.known):
            return self._over(part)
        if not is_own(part, self.known):
            return None
        assert isinstance(part, ast.FuncCall)
        made = self._call(part, self.known[part.name.text.casefold()])
        if all(call != part for call, _ in self.calls):
            self.calls.append((part, made))
        return made

    def _over(self, over: ast.Over) -> ast.Expr | None:
        """OVER behind each of the aggregates that the call stands for."""
        if not self.known[over.call.name.text.casefold()].aggregate:
            return over
        body = self._swap(over.call)
        by, order = self.of(over.partition_by), self.of(over.order_by)

        def swap(part: ast.Node) -> ast.Node | None:
            if isinstance(part, ast.Argument):
                return part
            if not is_aggregate_call(part):
                return None
            assert isinstance(part, ast.FuncCall)
            return replace(over, call=part, partition_by=by, order_by=order)

        made: ast.Expr = replaced(body, swap)
        return made

    def _call(self, call: ast.FuncCall, definition: FunctionDef) -> ast.Expr:
        _check(call, definition)
        arguments = [self._argument(a, definition, k) for k, a in enumerate(call.args)]
        body = body_of(definition)
        made: ast.Expr = _Putting(call, definition, arguments).of(body)
        if definition.aggregate and (call.distinct or call.filter is not None):
            made = _narrowed(made, call.distinct, self.of(call.filter))
        self.size += _size(made)
        if self.size > LARGEST:
            message = f"calls of functions of one's own stand for more than {LARGEST} nodes here"
            raise error("DS245", message, call, "compute what is used twice in a subquery")
        return made

    def _argument(self, given: ast.Expr, definition: FunctionDef, k: int) -> ast.Argument:
        operand = self.of(given)
        type_ = type_name(definition.parameters[k][1])
        return ast.Argument(
            operand, type_, definition.signature, ast.Given(_size(operand)), pos=given.pos
        )


def _check(call: ast.FuncCall, definition: FunctionDef) -> None:
    """Whether it can be called so, but for the types.  Raises DS243, DS244, DS304."""
    said = definition.signature
    what = call.odd
    if what in ("*", "ORDER BY") or (what and not definition.aggregate) or call.order_by:
        what = "ORDER BY" if call.order_by else what
        message = f"{said} does not take {what}"
        raise error("DS304", message, call, f"leave {what} out")
    if len(call.args) != len(definition.parameters):
        given = len(call.args)
        message = (
            f"{said} takes {_number(len(definition.parameters))}, and here are {given or 'none'}"
        )
        raise error("DS243", message, call, f"it stands for {definition.body}")
    if call.distinct and (why := _not_distinct(definition)) is not None:
        hint = "aggregate a subquery: FROM (SELECT DISTINCT ...)"
        raise error("DS244", f"{said} can't be taken of DISTINCT values: {why}", call, hint)


def _number(count: int) -> str:
    return "no arguments" if not count else "1 argument" if count == 1 else f"{count} arguments"


def _not_distinct(definition: FunctionDef) -> str | None:
    """Why DISTINCT has no meaning for the aggregate; None: each of its parts goes by the values of
    its one parameter, or doesn't look at how often values occur."""
    if len(definition.parameters) != 1:
        return "it takes more than one" if definition.parameters else "it takes none"
    for part in aggregates_of(body_of(definition)):
        card = functions.aggregate(part.name.text)
        plain = not part.star and isinstance(part.args[0], ast.ColumnRef) and card.distinct
        if not (plain or card.blind):
            return f"{to_sql(part)} goes by other values than {definition.parameters[0][0]}"
    return None


def _narrowed(body: ast.Expr, distinct: bool, where: ast.Expr | None) -> ast.Expr:
    """The body with all its aggregates over distinct values, and over rows that meet `where`."""

    def swap(part: ast.Node) -> ast.Node | None:
        if isinstance(part, ast.Argument):
            return part
        if not is_aggregate_call(part):
            return None
        assert isinstance(part, ast.FuncCall)
        once = part.distinct or (distinct and functions.aggregate(part.name.text).distinct)
        return replace(part, distinct=once, filter=_both(part.filter, where))

    narrowed: ast.Expr = replaced(body, swap)
    return narrowed


def _both(one: ast.Expr | None, other: ast.Expr | None) -> ast.Expr | None:
    if one is None or other is None:
        return other if one is None else one
    sides = (one, other)
    parts = [p for side in sides for p in (side.operands if isinstance(side, ast.And) else (side,))]
    return ast.And(tuple(parts), pos=other.pos)


@dataclass(slots=True)
class _Putting:
    """Arguments in place of parameters; all else stands where the call does."""

    call: ast.FuncCall
    definition: FunctionDef
    arguments: list[ast.Argument]

    def of(self, node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(map(self.of, node))
        if not isinstance(node, ast.Node):
            return node
        if isinstance(node, ast.ColumnRef):
            names = [name for name, _ in self.definition.parameters]
            return self.arguments[next(k for k, n in enumerate(names) if node.name.matches(n))]
        parts = {f.name: self.of(getattr(node, f.name)) for f in fields(node) if f.name != "pos"}
        return replace(node, **parts, pos=self._place(node.pos))

    def _place(self, inside: ast.Pos) -> ast.Pos:
        at, made = self.call.pos, self.definition
        inside = ast.Pos(inside.line, inside.column - (len(_BEFORE) if inside.line == 1 else 0))
        return ast.Within(at.line, at.column, f"{made.kind} {made.name}", made.body, inside)


def _size(node: ast.Node) -> int:
    """Nodes of a tree; arguments, which stand in many places, are not counted again."""
    count, stack = 0, [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Argument):
            count += part.given.size
        else:
            count += 1
            stack.extend(ast.children(part))
    return count
