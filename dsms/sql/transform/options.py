"""WITH (name = value, ...) and SET."""

from __future__ import annotations

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.transform.queries import Queries
from dsms.sql.transform.rules import Clause, Parts, place_of, rule
from dsms.sql.transform.windows import once


class Options(Queries):
    """Options and their values."""

    @rule
    def options(self, pos: Pos, *options: ast.Option) -> Clause:
        once(tuple(Clause(f"the option {o.name.text.lower()}", o, o.pos) for o in options))
        return Clause("WITH", options, pos)

    def option(self, parts: Parts) -> ast.Option:
        value = parts[-1]
        return ast.Option(
            parts[-3], _option_value(value) if type(value) is Token else value, pos=place_of(parts)
        )

    def negative(self, parts: Parts) -> int | float:
        return -_option_value(parts[1])  # type: ignore[operator]

    def set(self, parts: Parts) -> ast.Set:
        return ast.Set(self.option(parts[1:]), pos=place_of(parts))


def _option_value(token: Token) -> str | int | float | bool:
    pos = place_of([token])
    match token.type:
        case "INT":
            return literals.integer(token, pos)
        case "FLOAT":
            return literals.floating(token, pos)
        case "TRUE" | "FALSE":
            return token.type == "TRUE"
        case "STRING" | "QUOTED":
            return literals.unquote(token)
        case _:
            return token.lower()
