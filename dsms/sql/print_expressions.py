"""Names, values, times and expressions as text.  Called by dsms.sql.printer."""

from __future__ import annotations

import re
from collections.abc import Callable

from dsms import typed_texts
from dsms.sql import ast, literals
from dsms.sql.grammar import reserved

# How tightly an expression binds: the order of grammar/cql.lark, loosest first.
OR, AND, NOT, IS, COMPARE, PREDICATE, CONCAT, SUM, PRODUCT, UNARY, POSTFIX, ATOM = range(12)
_BINARY = {"||": CONCAT, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT}
_PLAIN = re.compile(r"[^\W\d]\w*")
_LISTS = ("LIST_VALUE", "ELEMENT_AT")  # calls that signs stand for, too
_FUNCTIONS = ("LEFT", "RIGHT")  # reserved, and yet function names


# ---------------------------------------------------------------- names and values


def name(ident: ast.Ident) -> str:
    """The name, quoted if it was, or if it could not be read back otherwise."""
    plain = (
        not ident.quoted and _PLAIN.fullmatch(ident.text) and ident.text.upper() not in reserved()
    )
    return ident.text if plain else '"' + ident.text.replace('"', '""') + '"'


def names(idents: tuple[ast.Ident, ...]) -> str:
    return ", ".join(map(name, idents))


def string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def type_name(type_: ast.TypeName) -> str:
    if type_.item is not None:
        return f"{type_.name}({type_name(type_.item)})"
    if type_.fields:
        fields = ", ".join(f"{name(f.name)} {type_name(f.type)}" for f in type_.fields)
        return f"{type_.name}({fields})"
    return f"{type_.name}({','.join(map(str, type_.args))})" if type_.args else type_.name


def instant(moment: ast.Instant) -> str:
    return f"TIMESTAMP '{literals.instant_text(moment.micros)}'"


def option_value(value: str | int | float | bool | ast.Duration) -> str:
    """The right side of ``name = value``."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return repr(value)
        case ast.Duration():
            return literals.duration_text(value)
        case str():
            word = _PLAIN.fullmatch(value) and value == value.lower()
            return (
                value
                if word and (value == "null" or value.upper() not in reserved())
                else string(value)
            )


# ---------------------------------------------------------------- expressions


class Expressions:
    """Prints expressions; queries and windows inside them are printed by `query` and `window`."""

    def __init__(
        self, query: Callable[[ast.Query], str], window: Callable[[ast.Window], str]
    ) -> None:
        self.query = query
        self.window = window

    def text(self, expr: ast.Expr, level: int = OR) -> str:
        """The expression, in parentheses if it binds looser than `level`."""
        binds, text = self._print(expr)
        return text if binds >= level else f"({text})"

    def list(self, items: tuple[ast.Expr, ...]) -> str:
        return ", ".join(map(self.text, items))

    def _print(self, expr: ast.Expr) -> tuple[int, str]:
        match expr:
            case ast.Or(operands):
                return OR, " OR ".join(self.text(o, AND) for o in operands)
            case ast.And(operands):
                return AND, " AND ".join(self.text(o, NOT) for o in operands)
            case ast.Not(operand):
                return NOT, f"NOT {self.text(operand, NOT)}"
            case ast.IsNull() | ast.IsBool() | ast.IsDistinct():
                return IS, self._is(expr)
            case ast.Comparison(op, left, right):
                return COMPARE, f"{self.text(left, PREDICATE)} {op} {self.text(right, PREDICATE)}"
            case ast.Quantified(op, operand, every, query):
                word = "ALL" if every else "ANY"
                return COMPARE, f"{self.text(operand, PREDICATE)} {op} {word} ({self.query(query)})"
            case ast.Between() | ast.Like() | ast.InList() | ast.InQuery():
                return PREDICATE, self._predicate(expr)
            case ast.Binary(op, left, right):
                binds = _BINARY[op]
                return binds, f"{self.text(left, binds)} {op} {self.text(right, binds + 1)}"
            case ast.Negate(operand):
                inner = self.text(operand, UNARY)
                return UNARY, f"-({inner})" if inner.startswith("-") else f"-{inner}"
            case ast.IntLit() | ast.FloatLit():
                return self._number(expr)
            case ast.Argument(operand, given=ast.Given(cast=False)):
                return self._print(operand)
            case _:
                return ATOM, self._atom(expr)

    def _is(self, expr: ast.IsNull | ast.IsBool | ast.IsDistinct) -> str:
        negated = " NOT" if expr.negated else ""
        match expr:
            case ast.IsNull(operand):
                return f"{self.text(operand, IS)} IS{negated} NULL"
            case ast.IsBool(operand, value):
                truth = "UNKNOWN" if value is None else "TRUE" if value else "FALSE"
                return f"{self.text(operand, IS)} IS{negated} {truth}"
            case ast.IsDistinct(left, right):
                return (
                    f"{self.text(left, IS)} IS{negated} DISTINCT FROM {self.text(right, COMPARE)}"
                )

    def _predicate(self, expr: ast.Between | ast.Like | ast.InList | ast.InQuery) -> str:
        subject = self.text(expr.operand, CONCAT) + (" NOT" if expr.negated else "")
        match expr:
            case ast.Between(_, low, high):
                return f"{subject} BETWEEN {self.text(low, CONCAT)} AND {self.text(high, CONCAT)}"
            case ast.Like(_, pattern, escape):
                tail = f" ESCAPE {self.text(escape, CONCAT)}" if escape is not None else ""
                sign = "ILIKE" if expr.any_case else "LIKE"
                return f"{subject} {sign} {self.text(pattern, CONCAT)}{tail}"
            case ast.InList(_, items):
                return f"{subject} IN ({self.list(items)})"
            case ast.InQuery(_, query):
                return f"{subject} IN ({self.query(query)})"

    def _number(self, literal: ast.IntLit | ast.FloatLit) -> tuple[int, str]:
        text = repr(literal.value)
        return (UNARY if text.startswith("-") else ATOM), text

    def _atom(self, expr: ast.Expr) -> str:
        match expr:
            case ast.ColumnRef(column, table):
                return f"{name(table)}.{name(column)}" if table is not None else name(column)
            case ast.FuncCall():
                return self._call(expr)
            case ast.Over():
                return self._over(expr)
            case ast.GroupingSets(sets):
                return f"GROUPING SETS ({', '.join(f'({self.list(keys)})' for keys in sets)})"
            case ast.Cast(operand, type_) | ast.Argument(operand, type_):
                return f"CAST({self.text(operand)} AS {type_name(type_)})"
            case ast.Case():
                return self._case(expr)
            case ast.Exists(query):
                return f"EXISTS ({self.query(query)})"
            case ast.ScalarQuery(query):
                return f"({self.query(query)})"
            case ast.RowExpr(items):
                return f"({self.list(items)})"
            case ast.WstreamArg(operand, window):
                return f"Wstream({self.text(operand)})[{self.window(window)}]"
            case _:
                return _literal(expr)

    def _call(self, call: ast.FuncCall) -> str:
        if call.name.text in _LISTS and not call.name.quoted:
            return self._of_lists(call)
        if call.name.text == "NAMED_STRUCT" and not call.name.quoted:
            return self._struct(call)
        return self._named(call)

    def _struct(self, call: ast.FuncCall) -> str:
        """``{'a': 1}`` as it is written."""
        keys, values = call.args[::2], call.args[1::2]
        if len(keys) != len(values) or not all(isinstance(k, ast.StringLit) for k in keys):
            return self._named(call)
        pairs = zip(keys, values, strict=True)
        return f"{{{', '.join(f'{self.text(k)}: {self.text(v)}' for k, v in pairs)}}}"

    def _of_lists(self, call: ast.FuncCall) -> str:
        """``[a, b]`` and ``l[i]`` as they are written."""
        if call.name.text == _LISTS[0]:
            return f"[{self.list(call.args)}]"
        if len(call.args) != 2:
            return self._named(call)
        return f"{self.text(call.args[0], POSTFIX)}[{self.text(call.args[1])}]"

    def _named(self, call: ast.FuncCall) -> str:
        function = (
            call.name.text
            if call.name.text.upper() in _FUNCTIONS and not call.name.quoted
            else name(call.name)
        )
        inside = "*" if call.star else ("DISTINCT " if call.distinct else "") + self.list(call.args)
        inside += f" AS {type_name(call.to)}" if call.to is not None else ""
        inside += f" ORDER BY {self.order(call.order_by)}" if call.order_by else ""
        tail = f" FILTER (WHERE {self.text(call.filter)})" if call.filter is not None else ""
        return f"{function}({inside}){tail}"

    def _over(self, over: ast.Over) -> str:
        return f"{self._named(over.call)} OVER {self.rows(over)}"

    def rows(self, over: ast.Over | ast.NamedWindow) -> str:
        """What stands in the parentheses behind OVER, with them."""
        parts = [] if over.window is None else [name(over.window)]
        parts += [f"PARTITION BY {self.list(over.partition_by)}"] if over.partition_by else []
        parts += [f"ORDER BY {self.order(over.order_by)}"] if over.order_by else []
        parts += [] if over.frame is None else [frame(over.frame)]
        return f"({' '.join(parts)})"

    def order(self, items: tuple[ast.Node, ...]) -> str:
        """What stands behind ORDER BY."""
        return ", ".join(map(self._order_item, items))

    def _order_item(self, item: ast.Node) -> str:
        assert isinstance(item, ast.OrderItem)
        parts = [self.text(item.expr), "DESC" if item.descending else ""]
        if item.nulls_first is not None:
            parts.append("NULLS FIRST" if item.nulls_first else "NULLS LAST")
        return " ".join(part for part in parts if part)

    def _case(self, case: ast.Case) -> str:
        parts = ["CASE"] if case.operand is None else ["CASE", self.text(case.operand)]
        parts += [f"WHEN {self.text(w.condition)} THEN {self.text(w.result)}" for w in case.whens]
        if case.otherwise is not None:
            parts.append(f"ELSE {self.text(case.otherwise)}")
        return " ".join([*parts, "END"])


def frame(node: ast.Frame) -> str:
    """How many rows back OVER looks, or how long."""
    unit, start = "ROWS" if node.rows else "RANGE", frame_bound(node.start)
    if node.end is None:
        return f"{unit} {start}"
    return f"{unit} BETWEEN {start} AND {frame_bound(node.end)}"


def frame_bound(bound: ast.FrameBound) -> str:
    """Where it begins, or ends."""
    if bound.current:
        return "CURRENT ROW"
    size = bound.size
    text = literals.duration_text(size) if isinstance(size, ast.Duration) else str(size)
    way = "FOLLOWING" if bound.following else "PRECEDING"
    return f"{'UNBOUNDED' if size is None else text} {way}"


def _literal(expr: ast.Expr) -> str:
    match expr:
        case ast.StringLit(value):
            return string(value)
        case ast.BytesLit(value):
            return f"X'{value.hex()}'"
        case ast.BoolLit(value):
            return "TRUE" if value else "FALSE"
        case ast.NullLit():
            return "NULL"
        case ast.Parameter(mark=mark):
            return mark
        case ast.PythonSource(place, fingerprint):
            return f"PYTHON {string(place)}{f' {string(fingerprint)}' if fingerprint else ''}"
        case ast.DecimalLit(text):
            return f"DECIMAL '{text}'"
        case ast.TimestampLit(micros):
            return f"TIMESTAMP '{literals.instant_text(micros)}'"
        case ast.TypedLit(sql, value):
            return f"{sql} '{typed_texts.text_of(value, sql)}'"
        case ast.IntervalLit(duration):
            number, unit = literals.duration_text(duration).split()
            return f"INTERVAL '{number}' {unit}"
        case _:
            raise TypeError(f"not an expression: {type(expr).__name__}")


def reach(length: str, until: str | None) -> str:
    """The length of a window, and where it ends."""
    return f"{length} UNTIL {until} AGO" if until is not None else length


def boundaries(slide: ast.Slide, word: str = "SLIDE", unit: str = "") -> str:
    """The instants at which a window slides, or (`word` EVERY) a query is answered; `unit`: what
    stands behind a number of rows."""
    if isinstance(slide.every, int):
        every = f"{slide.every}{unit}"
    else:
        every = literals.duration_text(slide.every)
    parts = [f"{word} {every}"]
    parts += [f"ALIGN TO {instant(slide.align_to)}"] if slide.align_to is not None else []
    parts += [f"TIME ZONE {string(slide.time_zone)}"] if slide.time_zone is not None else []
    return " ".join(parts)
