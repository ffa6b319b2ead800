"""Names, literals, times and expressions."""

from __future__ import annotations

from typing import Any

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.foreign import instead
from dsms.sql.functions.paths import key_path
from dsms.sql.literals import bad
from dsms.sql.transform.rules import (
    Parts,
    listed,
    node,
    only,
    place,
    place_of,
    rule,
    token_rule,
    word,
)

TYPED = ("try_cast", "json_value")  # functions whose arguments end in AS and a type
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _fixed_length(length: ast.Duration, pos: Pos, what: str) -> ast.Duration:
    if length.unit in literals.MONTHS:
        raise bad(
            "DS107", pos, f"{what} has a fixed length, and months and years have none", "write DAYS"
        )
    return length


class Times:
    """Durations and instants."""

    @token_rule("INT", "FLOAT", "TIME_UNIT", "ATTACHED")
    def length(self, pos: Pos, number: Token, unit: Token | None = None) -> ast.Duration:
        if unit is not None:
            return literals.duration(number, unit, pos)
        digits = number.rstrip(_LETTERS)  # attached: 10s
        return literals.duration(digits, number[len(digits) :], pos)

    @token_rule("INT", "FLOAT")
    def bare_seconds(self, pos: Pos, number: Token) -> ast.Duration:
        return literals.duration(number, None, pos)

    instant_word = word

    @token_rule("STRING")
    def instant(self, pos: Pos, *parts: Token) -> ast.Instant:
        return ast.Instant(literals.instant(literals.unquote(parts[-1]), pos), pos=pos)

    @rule
    def instant_offset(self, pos: Pos, length: ast.Duration) -> ast.Instant:
        return ast.Instant(
            literals.in_range(_fixed_length(length, pos, "an offset from 1970").micros, pos),
            pos=pos,
        )


class Literals(Times):
    @token_rule(
        "NAME", "QUOTED", "ARCHIVE", "LEFT", "RIGHT", "DECIMAL", "TIMESTAMP", "DATE", "INTERVAL"
    )
    def name(self, pos: Pos, token: Token) -> ast.Ident:
        if token.type != "QUOTED":
            return ast.Ident(str(token), pos=pos)
        if len(token) == 2:
            raise bad("DS106", pos, 'a quoted name can\'t be empty: ""')
        return ast.Ident(literals.unquote(token), True, pos=pos)

    column_name = from_name = valid_name = reserved_function = archive_name = name
    names = listed

    @token_rule("DISTINCT")
    def option_word(self, pos: Pos, token: Token) -> ast.Ident:
        """A reserved word as an option's name; quoted, as it prints."""
        return ast.Ident(token.lower(), True, pos=pos)

    @token_rule("NAME", "TIMESTAMP", "DOUBLE_PRECISION", "INT")
    def type(self, pos: Pos, name: Token, *args: Token) -> ast.TypeName:
        return ast.TypeName(
            " ".join(name.upper().split()), tuple(literals.integer(a, pos) for a in args), pos=pos
        )

    @token_rule("NAME", "TIMESTAMP", "DOUBLE_PRECISION")
    def type_of_items(self, pos: Pos, name: Token, item: ast.TypeName) -> ast.TypeName:
        return ast.TypeName(" ".join(name.upper().split()), (), item, pos=pos)

    @rule
    def list_type(self, pos: Pos, item: ast.TypeName) -> ast.TypeName:
        return ast.TypeName("LIST", (), item, pos=pos)

    field_def = node(ast.FieldName)

    @token_rule("NAME", "TIMESTAMP", "DOUBLE_PRECISION")
    def struct_type(self, pos: Pos, name: Token, *fields: ast.FieldName) -> ast.TypeName:
        return ast.TypeName(" ".join(name.upper().split()), (), None, fields, pos=pos)

    @token_rule("INT")
    def int_literal(self, pos: Pos, token: Token) -> ast.IntLit:
        # one more than INT can hold is fine behind a minus, and only there: the parser looks again
        return ast.IntLit(literals.integer(token, pos, limit=literals.INT_MAX + 1), pos=pos)

    @token_rule("FLOAT")
    def float_literal(self, pos: Pos, token: Token) -> ast.FloatLit:
        return ast.FloatLit(literals.floating(token, pos), pos=pos)

    @token_rule("STRING")
    def string_literal(self, pos: Pos, token: Token) -> ast.StringLit:
        return ast.StringLit(literals.unquote(token), pos=pos)

    @token_rule("BYTES")
    def bytes_literal(self, pos: Pos, token: Token) -> ast.BytesLit:
        return ast.BytesLit(literals.byte_string(token, pos), pos=pos)

    @token_rule("PARAMETER")
    def parameter(self, pos: Pos, mark: Token) -> ast.Parameter:
        if mark.isdecimal():
            return ast.Parameter(int(mark), pos=pos)  # the parser has numbered it
        return ast.Parameter(0, str(mark), pos=pos)

    null_literal = node(ast.NullLit)

    @token_rule("TRUE", "FALSE")
    def truth(self, pos: Pos, token: Token) -> ast.BoolLit:
        return ast.BoolLit(token.type == "TRUE", pos=pos)

    bool_literal = only

    @token_rule("STRING")
    def decimal_literal(self, pos: Pos, text: Token) -> ast.DecimalLit:
        return ast.DecimalLit(literals.decimal_text(literals.unquote(text), pos), pos=pos)

    @token_rule("STRING")
    def timestamp_literal(self, pos: Pos, text: Token) -> ast.TimestampLit:
        return ast.TimestampLit(literals.instant(literals.unquote(text), pos), pos=pos)

    @token_rule("DATE", "TYPED", "STRING")
    def typed_literal(self, pos: Pos, word: Token, text: Token) -> ast.TypedLit:
        sql = word.upper()
        return ast.TypedLit(sql, literals.typed(literals.unquote(text), sql, pos), pos=pos)

    @token_rule("STRING", "TIME_UNIT")
    def interval_string(self, pos: Pos, text: Token, unit: Token | None = None) -> ast.IntervalLit:
        length = literals.interval(literals.unquote(text), unit, pos)
        return ast.IntervalLit(_fixed_length(length, pos, "an INTERVAL"), pos=pos)

    interval_text = interval_string

    @token_rule("STRING", "TIME_UNIT")
    def spelled(self, pos: Pos, text: Token, unit: Token | None = None) -> ast.Duration:
        """``INTERVAL '5' MINUTE`` where a length of time stands."""
        length = literals.interval(literals.unquote(text), unit, pos)
        if length.micros < 0 or length.months < 0:
            raise bad("DS107", pos, "a length of time that is negative", "leave the - out")
        return length

    spelled_length = only

    @rule
    def interval_length(self, pos: Pos, length: ast.Duration) -> ast.IntervalLit:
        return ast.IntervalLit(_fixed_length(length, pos, "an INTERVAL"), pos=pos)


class Predicates:
    """What is true or false."""

    is_null = node(ast.IsNull)
    is_not_null = node(ast.IsNull, negated=True)
    is_distinct = node(ast.IsDistinct)
    is_not_distinct = node(ast.IsDistinct, negated=True)
    between = node(ast.Between)
    not_between = node(ast.Between, negated=True)
    in_query = node(ast.InQuery)
    not_in_query = node(ast.InQuery, negated=True)
    like = node(ast.Like)
    not_like = node(ast.Like, negated=True)
    ilike = node(ast.Like, any_case=True)
    not_ilike = node(ast.Like, negated=True, any_case=True)
    escape = only
    exists = node(ast.Exists)
    not_ = node(ast.Not)
    row = listed

    @rule
    def is_bool(self, pos: Pos, operand: ast.Expr, truth: ast.BoolLit) -> ast.IsBool:
        return ast.IsBool(operand, truth.value, pos=pos)

    @rule
    def is_not_bool(self, pos: Pos, operand: ast.Expr, truth: ast.BoolLit) -> ast.IsBool:
        return ast.IsBool(operand, truth.value, True, pos=pos)

    @rule
    def is_unknown(self, pos: Pos, operand: ast.Expr) -> ast.IsBool:
        return ast.IsBool(operand, None, pos=pos)

    @rule
    def is_not_unknown(self, pos: Pos, operand: ast.Expr) -> ast.IsBool:
        return ast.IsBool(operand, None, True, pos=pos)

    @rule
    def in_list(self, pos: Pos, operand: ast.Expr, items: tuple[ast.Expr, ...]) -> ast.Expr:
        return _in_items(operand, items, False, pos)

    @rule
    def not_in_list(self, pos: Pos, operand: ast.Expr, items: tuple[ast.Expr, ...]) -> ast.Expr:
        return _in_items(operand, items, True, pos)

    @token_rule("COMPARE", "EQUAL")
    def comparison(self, pos: Pos, left: ast.Expr, op: Token, right: ast.Expr) -> ast.Comparison:
        return ast.Comparison("<>" if op == "!=" else str(op), left, right, pos=place(op) or pos)

    @token_rule("ALL", "ANY_OF")
    def any_or_all(self, pos: Pos, word: Token) -> bool:
        return word.type == "ALL"

    @token_rule("COMPARE", "EQUAL")
    def quantified(
        self, pos: Pos, left: ast.Expr, op: Token, every: bool, query: ast.Query
    ) -> ast.Quantified:
        sign = "<>" if op == "!=" else str(op)
        return ast.Quantified(sign, left, every, query, pos=place(op) or pos)

    @rule
    def or_(self, pos: Pos, *operands: ast.Expr) -> ast.Or:
        return ast.Or(operands, pos=pos)

    @rule
    def and_(self, pos: Pos, *operands: ast.Expr) -> ast.And:
        return ast.And(operands, pos=pos)


def _in_items(operand: ast.Expr, items: tuple[ast.Expr, ...], negated: bool, pos: Pos) -> ast.Expr:
    # IN ((SELECT ...)): the parentheses say nothing
    if len(items) == 1 and isinstance(items[0], ast.ScalarQuery):
        return ast.InQuery(operand, items[0].query, negated, pos=pos)
    return ast.InList(operand, items, negated, pos=pos)


class Expressions(Literals, Predicates):
    """Arithmetic, columns, calls."""

    @token_rule("CONCAT", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT")
    def binary(self, pos: Pos, left: ast.Expr, op: Token, right: ast.Expr) -> ast.Binary:
        return ast.Binary(str(op), left, right, pos=place(op) or pos)

    @rule
    def negate(self, pos: Pos, operand: ast.Expr) -> ast.Expr:
        match operand:
            case ast.IntLit(value) if value >= 0:
                return ast.IntLit(-value, pos=pos)
            case ast.FloatLit(value) if not str(value).startswith("-"):
                return ast.FloatLit(-value, pos=pos)
        return ast.Negate(operand, pos=pos)

    plus = paren = only
    cast = node(ast.Cast)
    scalar_query = node(ast.ScalarQuery)

    @rule
    def row_expr(self, pos: Pos, *items: ast.Expr) -> ast.RowExpr:
        return ast.RowExpr(items, pos=pos)

    @rule
    def list_of(self, pos: Pos, *items: ast.Expr) -> ast.FuncCall:
        """``[1, 2]`` is the call LIST_VALUE(1, 2)."""
        return ast.FuncCall(ast.Ident("LIST_VALUE", pos=pos), items, pos=pos)

    @rule
    def subscript(self, pos: Pos, of: ast.Expr, place: ast.Expr) -> ast.FuncCall:
        """``l[i]`` is the call ELEMENT_AT(l, i)."""
        return ast.FuncCall(ast.Ident("ELEMENT_AT", pos=pos), (of, place), pos=pos)

    @token_rule("STRING")
    def struct_field(self, pos: Pos, key: Token | ast.Ident, of: ast.Expr) -> tuple[ast.Expr, ...]:
        text = key.text if isinstance(key, ast.Ident) else literals.unquote(key)
        return ast.StringLit(text, pos=pos), of

    @rule
    def struct_value(self, pos: Pos, *fields: tuple[ast.Expr, ...]) -> ast.FuncCall:
        """``{'a': 1}`` is the call NAMED_STRUCT('a', 1)."""
        parts = tuple(part for field in fields for part in field)
        return ast.FuncCall(ast.Ident("NAMED_STRUCT", pos=pos), parts, pos=pos)

    @rule
    def member(self, pos: Pos, of: ast.Expr, name: ast.Ident) -> ast.FuncCall:
        """``(s).a`` is the call STRUCT_EXTRACT(s, 'a')."""
        field = ast.StringLit(name.text, pos=name.pos)
        return ast.FuncCall(ast.Ident("STRUCT_EXTRACT", pos=pos), (of, field), pos=pos)

    @token_rule("STRING")
    def json_text(self, pos: Pos, of: ast.Expr, key: Token) -> ast.FuncCall:
        """``j ->> 'a'`` is the call JSON_VALUE(j, '$."a"')."""
        path = ast.StringLit(key_path(literals.unquote(key)), pos=place(key) or pos)
        return ast.FuncCall(ast.Ident("JSON_VALUE", pos=pos), (of, path), pos=pos)

    @token_rule("STRING")
    def at_time_zone(self, pos: Pos, of: ast.Expr, zone: Token) -> ast.FuncCall:
        """``t AT TIME ZONE 'zone'`` is the call AT_ZONE(t, 'zone')."""
        place_ = ast.StringLit(literals.unquote(zone), pos=place(zone) or pos)
        return ast.FuncCall(ast.Ident("AT_ZONE", pos=pos), (of, place_), pos=pos)

    @rule
    def case(self, pos: Pos, operand: ast.Expr | None, *rest: Any) -> ast.Case:
        return ast.Case(rest[:-1], operand, rest[-1], pos=pos)

    when = node(ast.When)
    otherwise = only

    column = node(ast.ColumnRef)

    @rule
    def qualified_column(self, pos: Pos, table: ast.Ident, name: ast.Ident) -> ast.ColumnRef:
        return ast.ColumnRef(name, table, pos=pos)

    arguments = listed
    filter = only
    wstream_argument = node(ast.WstreamArg)

    @rule
    def call(self, pos: Pos, name: ast.Ident, condition: ast.Expr | None) -> ast.FuncCall:
        return ast.FuncCall(name, filter=condition, pos=pos)

    @rule
    def call_star(self, pos: Pos, name: ast.Ident, condition: ast.Expr | None) -> ast.FuncCall:
        return ast.FuncCall(name, star=True, filter=condition, pos=pos)

    @rule
    def call_arguments(
        self,
        pos: Pos,
        name: ast.Ident,
        distinct: bool | None,
        args: tuple[ast.Expr, ...],
        order: tuple[ast.OrderItem, ...] | None,
        condition: ast.Expr | None,
    ) -> ast.FuncCall:
        shown = order or ()
        return ast.FuncCall(name, args, bool(distinct), filter=condition, order_by=shown, pos=pos)

    @rule
    def call_as(
        self, pos: Pos, name: ast.Ident, args: tuple[ast.Expr, ...], to: ast.TypeName
    ) -> ast.FuncCall:
        if name.quoted or name.text.casefold() not in TYPED:
            raise bad(
                "DS110",
                name.pos,
                f"{name.text}(... AS type) is not known",
                instead(name.text, "function") or "write CAST(x AS type), or TRY_CAST",
            )
        return ast.FuncCall(name, args, to=to, pos=pos)

    def call_from(self, parts: Parts) -> ast.FuncCall:
        name, field, operand = parts[0], parts[2], parts[4]
        if name.quoted or name.text.upper() != "EXTRACT":
            raise bad(
                "DS110",
                name.pos,
                f"{name.text}(... FROM ...) is not known; only EXTRACT is written with FROM",
                "separate the arguments by commas, for example TRIM(text) or LTRIM(text)",
            )
        return ast.FuncCall(
            name, (ast.StringLit(field.lower(), pos=place_of([field])), operand), pos=name.pos
        )
