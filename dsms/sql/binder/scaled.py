"""WITH (shed = scale), WITH (sample = scale), rewritten before binding: sums that make up for rows
that were shed, or are not in the sample.

Golab 2006, section 2.4.3; Horvitz and Thompson 1952.  With w, the weight of a row, which was kept
with the chance 1 / w:

    COUNT(*)   SUM(w)              its variance is estimated by SUM(w * (w - 1))
    COUNT(x)   SUM(w), of rows where x is not NULL
    SUM(x)     SUM(x * w)                                       SUM(x * x * w * (w - 1))
    AVG(x)     SUM(x * w) / SUM(w), a = that, n = SUM(w)        SUM((x - a)^2 * w * (w - 1)) / n^2

In a sample of p percent w is 100 / p.

Each item that is one of these gets another one beside it, its name and ``_error``: the standard
error.  All are made of sums of rows, so they are incremental, subtractable and shared as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from dsms.sql import ast
from dsms.sql.binder.aggregates import is_aggregate_call
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.codes import error
from dsms.sql.expr import AggCall
from dsms.sql.logical import GroupBy, Node, children
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced
from dsms.sql.types import INTERVAL

LEAST = Decimal("1e-300")  # percent; what is no share of rows is refused elsewhere
SCALED = ("COUNT", "SUM", "AVG")


@dataclass(frozen=True, slots=True)
class _Asked:
    """An option `shed = scale` or `sample = scale`, and what is told where it can't be."""

    option: ast.Option

    @property
    def sample(self) -> bool:
        return self.option.name.text.casefold() == "sample"

    def refused(self, message: str, at: ast.Node | None = None, hint: str = "") -> Exception:
        """DS361 or DS366."""
        reads = "a SAMPLE" if self.sample else "one stream that may shed"
        name = "sample" if self.sample else "shed"
        unsaid = f"{name} = scale is for COUNT, SUM and AVG over {reads}; leave it out"
        code = "DS366" if self.sample else "DS361"
        return error(code, message, at or self.option, hint or unsaid)


def scaled(query: ast.Query, options: Sequence[ast.Option], catalog: Catalog) -> ast.Query:
    """The query with its sums scaled up, where `options` say so: they make up for what was shed, or
    is not in the sample that is read, or both.  Raises DS361 and DS366 where nothing does."""
    asked = [_Asked(o) for o in options if _scales(o)]
    if not asked:
        return query
    first, select = asked[0], query.body
    if not isinstance(select, ast.Select):
        raise first.refused("the parts of a set operation can't be scaled")
    weights = [(_chance if a.sample else _weight)(select, a, catalog) for a in asked]
    _check(select, query, first)
    scale = _Scale(reduce(_times, weights))
    items: list[ast.SelectItem | ast.StarItem] = []
    for item in select.items:
        items += scale.items(item)
    if not scale.found:
        raise first.refused("there is no COUNT, SUM or AVG in it")
    having = None if select.having is None else scale.of(select.having)
    ordered = tuple(replace(o, expr=scale.of(o.expr)) for o in query.order_by)
    per = query.per
    if per is not None:
        per = replace(per, keys=tuple(map(scale.of, per.keys)))
    body = replace(select, items=tuple(items), having=having)
    return replace(query, body=body, order_by=ordered, per=per)


def check_summed(plain: Node, options: Sequence[ast.Option]) -> None:
    """`plain`: the query as it would be without them, for which sums are of what there are sums of.
    Raises DS361 and DS366 for those of intervals: an estimate is a FLOAT."""
    asked = next(_Asked(o) for o in options if _scales(o))
    for call in _summed(plain):
        if call.fn != "count" and any(a.type == INTERVAL for a in call.args):
            hint = "sum a number, or leave it out"
            raise asked.refused("an estimate is a FLOAT, which no INTERVAL is", hint=hint)


def _summed(node: Node) -> Iterator[AggCall]:
    """The aggregates of a query; of one with grouping sets, of each of them."""
    if isinstance(node, GroupBy):
        yield from node.aggs
        return
    for child in children(node):
        yield from _summed(child)


def _scales(option: ast.Option) -> bool:
    named = option.name.text.casefold() in ("shed", "sample")
    return named and str(option.value).casefold() == "scale"


def _weight(select: ast.Select, asked: _Asked, catalog: Catalog) -> ast.Expr:
    """The column of weights of the one stream that it reads."""
    ref = select.from_[0] if len(select.from_) == 1 else None
    if not isinstance(ref, ast.TableRef):
        raise asked.refused("it does not read one stream alone")
    stream = catalog.find(ref.name.text, ref.name.quoted)
    if not isinstance(stream, StreamDef) or stream.weight is None:
        message = f"rows of {ref.name.text} have no weights"
        raise asked.refused(message, hint="declare the stream WITH (shed = random)")
    table, at = ref.alias or ref.name, asked.option.pos
    column = ast.Ident(stream.schema[stream.weight].name, quoted=True, pos=at)
    return ast.ColumnRef(column, table, pos=at)


def _chance(select: ast.Select, asked: _Asked, catalog: Catalog) -> ast.Expr:
    """What a row of the one sample that it reads stands for."""
    ref = select.from_[0] if len(select.from_) == 1 else None
    if not isinstance(ref, ast.TableRef | ast.SubqueryRef) or ref.sample is None:
        hint = "write SAMPLE p PERCENT behind the one thing that it reads"
        raise asked.refused("it does not read one sample alone", hint=hint)
    if ref.sample.by:
        message = "rows of a SAMPLE with BY are drawn together, so errors are not those of rows"
        raise asked.refused(message, ref.sample, "leave BY out, or sample = scale")
    return ast.FloatLit(float(100 / Fraction(max(ref.sample.percent, LEAST))), pos=asked.option.pos)


def _check(select: ast.Select, query: ast.Query, asked: _Asked) -> None:
    if select.distinct:
        raise asked.refused("nothing makes up for values that DISTINCT misses", select)
    if select.output is not None and select.output.kind is ast.OutputKind.WSTREAM:
        raise asked.refused("sums over results can't be scaled", select.output)
    outside = replace(select, from_=()) if asked.sample else select
    per = () if query.per is None else (query.per,)
    for node in (outside, *query.order_by, *per):
        for part in ast.walk(node):
            if isinstance(part, ast.Query):
                raise asked.refused("its subquery can't be scaled", part)
            if is_aggregate_call(part):
                _check_call(part, asked)


def _check_call(call: ast.Node, asked: _Asked) -> None:
    assert isinstance(call, ast.FuncCall)
    name = call.name.text.upper()
    if call.distinct or name not in SCALED:
        shown = f"{name}(DISTINCT ...)" if call.distinct else name
        raise asked.refused(f"nothing makes up for rows that {shown} misses", call)


class _Scale:
    """Rewrites calls over rows of a weight; `found`: whether there were any."""

    def __init__(self, weight: ast.Expr) -> None:
        self.weight = weight
        self.found = False

    def items(self, item: ast.SelectItem | ast.StarItem) -> list[ast.SelectItem | ast.StarItem]:
        """What stands for an item of the select list."""
        if isinstance(item, ast.StarItem) or not any(map(is_aggregate_call, ast.walk(item.expr))):
            return [item]
        self.found = True
        name = item.alias or ast.Ident(to_sql(item.expr), quoted=True, pos=item.pos)
        made: list[ast.SelectItem | ast.StarItem] = [
            replace(item, expr=self.of(item.expr), alias=name)
        ]
        if isinstance(item.expr, ast.FuncCall) and is_aggregate_call(item.expr):
            beside = ast.Ident(f"{name.text}_error", quoted=True, pos=item.pos)
            made.append(ast.SelectItem(self._error(item.expr), beside, pos=item.pos))
        return made

    def of(self, node: ast.Expr) -> ast.Expr:
        """The expression over what scaled sums are."""
        made: ast.Expr = replaced(
            node, lambda part: self._call(part) if isinstance(part, ast.FuncCall) else None
        )
        return made

    def _call(self, call: ast.FuncCall) -> ast.Expr | None:
        if not is_aggregate_call(call):
            return None
        count = self._sum(call, self._present(call, self.weight))
        match call.name.text.upper():
            case "COUNT":
                return _call("COALESCE", count, ast.FloatLit(0.0))
            case "SUM":
                return self._sum(call, _times(_value(call), self.weight))
            case _:
                return _over(self._sum(call, _times(_value(call), self.weight)), count)

    def _error(self, call: ast.FuncCall) -> ast.Expr:
        less = ast.Binary("-", self.weight, ast.FloatLit(1.0))
        spread = _times(self.weight, less)
        kind = call.name.text.upper()
        if kind == "COUNT":
            variance = self._sum(call, self._present(call, spread))
            return _call("COALESCE", _root(variance), ast.FloatLit(0.0))
        value = _value(call)
        squares = self._sum(call, _times(_times(value, value), spread))
        if kind == "SUM":
            return _root(squares)
        mean = self._call(call)
        count = self._sum(call, self._present(call, self.weight))
        assert mean is not None
        mixed = _times(_times(ast.FloatLit(2.0), mean), self._sum(call, _times(value, spread)))
        ones = _times(_times(mean, mean), self._sum(call, self._present(call, spread)))
        return _over(
            _root(ast.Binary("+", ast.Binary("-", squares, mixed), ones)),
            count,
        )

    def _sum(self, call: ast.FuncCall, value: ast.Expr) -> ast.Expr:
        return replace(call, name=ast.Ident("SUM"), args=(value,), star=False)

    @staticmethod
    def _present(call: ast.FuncCall, value: ast.Expr) -> ast.Expr:
        """The value, of rows where what is counted is not NULL."""
        if call.star or not call.args:
            return value
        given = ast.IsNull(call.args[0], negated=True, pos=call.pos)
        return ast.Case((ast.When(given, value, pos=call.pos),), pos=call.pos)


def _value(call: ast.FuncCall) -> ast.Expr:
    return ast.Cast(call.args[0], ast.TypeName("FLOAT"), pos=call.pos)


def _call(name: str, *args: ast.Expr) -> ast.Expr:
    return ast.FuncCall(ast.Ident(name), args)


def _times(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    return ast.Binary("*", left, right)


def _over(left: ast.Expr, right: ast.Expr) -> ast.Expr:
    return ast.Binary("/", left, right)


def _root(variance: ast.Expr) -> ast.Expr:
    """Rounding may make nothing a little less than nothing."""
    return _call("SQRT", _call("ABS", variance))
