"""Statements that read definitions back."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.transform.rules import Parts, constant, place_of


class Inspections:
    """SHOW CREATE."""

    role_kind = constant(ast.MadeKind.ROLE)

    def show_create(self, parts: Parts) -> ast.ShowCreate:
        kind, name = parts[2:]
        return ast.ShowCreate(ast.MadeKind(kind), name, pos=place_of(parts))

    def show_create_all(self, parts: Parts) -> ast.ShowCreate:
        return ast.ShowCreate(pos=place_of(parts))
