"""Names of columns in SQL that is written from a plan."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql import ast
from dsms.sql.types import Schema


def names_of(schema: Schema) -> list[str]:
    return [f.name for f in schema]


def unique(names: Sequence[str]) -> list[str]:
    """The names, with numbers where they would repeat (in any case)."""
    seen: set[str] = set()
    out = []
    for name in names:
        shown, n = name or "c", 1
        while shown.casefold() in seen:
            n += 1
            shown = f"{name or 'c'}_{n}"
        seen.add(shown.casefold())
        out.append(shown)
    return out


def ident(name: str, among: Sequence[str]) -> ast.Ident:
    """The name, quoted if another differs from it in case only."""
    return ast.Ident(name, sum(n.casefold() == name.casefold() for n in among) > 1)
