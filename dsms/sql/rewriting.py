"""Replacing parts of a syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from dsms.sql import ast


def replaced(
    node: Any, swap: Callable[[ast.Node], ast.Node | None], within_queries: bool = False
) -> Any:
    """The node with every part for which `swap` answers replaced by that answer; queries are left
    alone, or are gone through too."""
    if isinstance(node, tuple):
        return tuple(replaced(n, swap, within_queries) for n in node)
    if not isinstance(node, ast.Node) or (isinstance(node, ast.Query) and not within_queries):
        return node
    found = swap(node)
    if found is not None:
        return found
    changed = {
        f.name: replaced(getattr(node, f.name), swap, within_queries)
        for f in fields(node)
        if f.name != "pos"
    }
    return replace(node, **changed)
