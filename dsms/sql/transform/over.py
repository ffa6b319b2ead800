"""OVER: of which rows before each row a function is."""

from __future__ import annotations

from typing import Any

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.transform.rules import Parts, listed, place_of, rule, values
from dsms.sql.transform.windows import Windows


def _follows(parts: Parts) -> bool:
    return bool(parts[-1].type == "FOLLOWING")


class Overs(Windows):
    """What stands in the parentheses behind OVER."""

    partition_by = listed

    def no_bound(self, parts: Parts) -> ast.FrameBound:
        return ast.FrameBound(following=_follows(parts), pos=place_of(parts))

    def current_row(self, parts: Parts) -> ast.FrameBound:
        return ast.FrameBound(current=True, pos=place_of(parts))

    def rows_bound(self, parts: Parts) -> ast.FrameBound:
        pos = place_of(parts)
        return ast.FrameBound(literals.count(parts[0], pos), following=_follows(parts), pos=pos)

    def range_bound(self, parts: Parts) -> ast.FrameBound:
        return ast.FrameBound(parts[0], following=_follows(parts), pos=place_of(parts))

    def rows_frame(self, parts: Parts) -> ast.Frame:
        return ast.Frame(True, *values(parts), pos=place_of(parts))

    def range_frame(self, parts: Parts) -> ast.Frame:
        return ast.Frame(False, *values(parts), pos=place_of(parts))

    @rule
    def over(
        self, pos: Pos, base: Any, by: Any, order: Any, frame: ast.Frame | None
    ) -> tuple[Any, ...]:
        return by or (), order or (), frame, base

    @rule
    def over_name(self, pos: Pos, name: ast.Ident) -> tuple[Any, ...]:
        return (), (), None, name

    named_windows = listed

    @rule
    def named_window(
        self, pos: Pos, name: ast.Ident, base: Any, by: Any, order: Any, frame: ast.Frame | None
    ) -> ast.NamedWindow:
        return ast.NamedWindow(name, by or (), order or (), frame, base, pos=pos)

    @rule
    def over_call(self, pos: Pos, call: ast.FuncCall, over: tuple[Any, ...]) -> ast.Over:
        return ast.Over(call, *over, pos=pos)
