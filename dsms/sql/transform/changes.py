"""Statements that change queries while they run, and comments."""

from __future__ import annotations

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.transform.rules import Clause, Parts, node, place_of, rule
from dsms.sql.transform.windows import once


class Changes:
    """PAUSE, RESUME and ALTER QUERY, and COMMENT ON."""

    pause_query = node(ast.PauseQuery)
    resume_query = node(ast.ResumeQuery)
    rename_query = node(ast.RenameQuery)

    @rule
    def set_query(self, pos: Pos, name: ast.Ident, *options: ast.Option) -> ast.SetQuery:
        once(tuple(Clause(f"the option {o.name.text.lower()}", o, o.pos) for o in options))
        return ast.SetQuery(name, options, pos=pos)

    def comment(self, parts: Parts) -> ast.Comment:
        kind, name, text = parts[2], parts[3], parts[5]
        said = literals.unquote(text) if text.type == "STRING" else None
        return ast.Comment(kind, name, said, pos=place_of(parts))
