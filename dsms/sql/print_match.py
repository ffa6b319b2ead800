"""MATCH, as it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.print_expressions import name

Text = Callable[[ast.FromItem], str]


def text(item: ast.Match, source: Text, window: Callable[[ast.Window | None], str]) -> str:
    """The item; `source` writes what a step reads, `window` a window in brackets."""
    keys = [name(column.name) for column in item.per]
    per = f" PER ({', '.join(keys)})" if len(keys) > 1 else f" PER {keys[0]}" if keys else ""
    steps = ", ".join(step(s, source) for s in item.steps)
    skip = " SKIP PAST LAST" if item.skip else ""
    return f"MATCH ({steps}){window(item.window)}{per}{skip}"


def step(node: ast.MatchStep, source: Text) -> str:
    """``NOT u s``"""
    alias = node.source.alias
    assert alias is not None
    before = "NOT " if node.kind is ast.StepKind.NONE else ""
    behind = "+" if node.kind is ast.StepKind.MANY else ""
    return f"{before}{name(alias)}{behind} {source(replace(node.source, alias=None))}"
