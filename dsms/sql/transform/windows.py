"""Windows, and options that are said once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.literals import bad
from dsms.sql.transform.expressions import Expressions
from dsms.sql.transform.rules import (
    Clause,
    Parts,
    clause,
    listed,
    node,
    only,
    place_of,
    rule,
    token_rule,
)


def once(clauses: tuple[Clause, ...]) -> dict[str, Clause]:
    """The clauses by name; the same one twice is an error."""
    found: dict[str, Clause] = {}
    for one in clauses:
        if one.name in found:
            raise bad("DS109", one.pos, f"{one.name} is said twice")
        found[one.name] = one
    return found


class Windows(Expressions):
    """Windows: a core (RANGE, ROWS, ...) and its options in any order, save that SLIDE closes the
    window."""

    until = row_age = only

    @token_rule("INT")
    def until_rows(self, pos: Pos, count: Token) -> int:
        return literals.count(count, pos)

    range_window = node(ast.RangeWindow)
    now_window = node(ast.NowWindow)
    unbounded_window = node(ast.UnboundedWindow)
    landmark_window = node(ast.LandmarkWindow)
    partition_keys = window_keys = listed

    @rule
    def session_window(
        self, pos: Pos, gap: ast.Duration | ast.Expr, by: tuple[ast.Expr, ...] | None
    ) -> ast.SessionWindow:
        return ast.SessionWindow(gap, by or (), pos=pos)

    @rule
    def when_window(
        self, pos: Pos, start: ast.Expr, stop: ast.Expr, by: tuple[ast.Expr, ...] | None
    ) -> ast.WhenWindow:
        return ast.WhenWindow(start, stop, by or (), pos=pos)

    @rule
    def computed_window(
        self, pos: Pos, length: ast.Expr, until: ast.Duration | None
    ) -> ast.LastingWindow:
        return ast.LastingWindow(length, True, until, pos=pos)

    @token_rule("INT")
    def first_window(self, pos: Pos, keys: tuple[ast.Expr, ...], count: Token) -> ast.FirstWindow:
        return ast.FirstWindow(literals.count(count, pos), keys, pos=pos)

    @rule
    def throttled_window(
        self,
        pos: Pos,
        keys: tuple[ast.Expr, ...],
        length: ast.Duration,
        until: ast.Duration | None,
    ) -> ast.ThrottledWindow:
        return ast.ThrottledWindow(length, until, keys, pos=pos)

    @rule
    def valid_window(
        self, pos: Pos, end: ast.Expr, until: ast.Duration | None
    ) -> ast.LastingWindow:
        return ast.LastingWindow(end, False, until, pos=pos)

    @token_rule("INT")
    def rows_window(self, pos: Pos, count: Token, until: int | None) -> ast.RowsWindow:
        return ast.RowsWindow(literals.count(count, pos), until, pos=pos)

    @token_rule("INT")
    def partition_window(
        self,
        pos: Pos,
        keys: tuple[ast.Expr, ...],
        count: Token,
        until: int | None,
        age: ast.Duration | None,
    ) -> ast.RowsWindow:
        return ast.RowsWindow(literals.count(count, pos), until, keys, age, pos=pos)

    internal = clause("INTERNAL")
    with_archive = clause("ARCHIVE")
    slide = clause("SLIDE")
    align_to = clause("ALIGN TO")

    def time_zone(self, parts: Parts) -> Clause:
        return Clause("TIME ZONE", literals.unquote(parts[2]), place_of(parts))

    def slide_bare(self, parts: Parts) -> Clause:
        return Clause("SLIDE", parts[1], place_of(parts))  # seconds or rows: the window knows

    def slide_rows(self, parts: Parts) -> Clause:
        return Clause("SLIDE", literals.count(parts[1], place_of(parts)), place_of(parts))

    @rule
    def window(self, pos: Pos, core: ast.Window, *options: Clause) -> ast.Window:
        said = once(options)
        return replace(
            core,
            internal="INTERNAL" in said,
            archive="ARCHIVE" in said,
            slide=_slide(core, options, said),
        )

    @rule
    def window_clause(
        self, pos: Pos, length: ast.Duration, until: ast.Duration | None, *options: Clause
    ) -> Any:
        core = ast.RangeWindow(length, until, pos=pos)
        said = once(options)
        return replace(core, internal="INTERNAL" in said, slide=_slide(core, options, said))

    from_window = output_window = only


def _slide(
    core: ast.Window, options: tuple[Clause, ...], said: dict[str, Clause]
) -> ast.Slide | None:
    after = [said[name] for name in ("ALIGN TO", "TIME ZONE") if name in said]
    if "SLIDE" not in said:
        if after:
            raise bad(
                "DS108",
                after[0].pos,
                f"{after[0].name} says where slides begin, and this window has no SLIDE",
                "write SLIDE before it",
            )
        return None
    slide = said["SLIDE"]
    early = [c for c in after if options.index(c) < options.index(slide)]
    if early:
        raise bad("DS108", early[0].pos, f"{early[0].name} stands after SLIDE")
    align, zone = (said[n].value if n in said else None for n in ("ALIGN TO", "TIME ZONE"))
    return ast.Slide(_every(core, slide), align, zone, pos=slide.pos)


def _every(core: ast.Window, slide: Clause) -> ast.Duration | int:
    by_rows = isinstance(core, ast.RowsWindow)
    if isinstance(slide.value, Token):
        if not by_rows:
            return literals.duration(slide.value, None, slide.pos)
        if slide.value.type == "FLOAT":
            raise bad(
                "DS108",
                slide.pos,
                "SLIDE of a ROWS window counts rows, which are whole",
                "or give a unit of time",
            )
        return literals.count(slide.value, slide.pos)
    if isinstance(slide.value, int) and not isinstance(core, ast.RowsWindow | ast.RangeWindow):
        message = "only [RANGE t] and ROWS windows slide by rows"
        raise bad("DS108", slide.pos, message, "give SLIDE a unit of time")
    return slide.value
