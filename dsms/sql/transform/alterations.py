"""ALTER STREAM and ALTER TABLE."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.ast import Pos
from dsms.sql.literals import bad
from dsms.sql.transform.rules import Clause, node, rule
from dsms.sql.transform.windows import once


class Alterations:
    """What changes a stream or table that is there."""

    alter_stream = node(ast.AlterStream)
    reopen = node(ast.Reopen)
    set_since = node(ast.SetSince)

    @rule
    def set_stream(self, pos: Pos, name: ast.Ident, *options: ast.Option) -> ast.SetStream:
        once(tuple(Clause(f"the option {o.name.text.lower()}", o, o.pos) for o in options))
        return ast.SetStream(name, options, pos=pos)

    @rule
    def rename_stream(self, pos: Pos, *names: ast.Ident) -> ast.Rename:
        return ast.Rename(ast.ObjectKind.STREAM, *names, pos=pos)

    @rule
    def rename_table(self, pos: Pos, *names: ast.Ident) -> ast.Rename:
        return ast.Rename(ast.ObjectKind.TABLE, *names, pos=pos)

    @rule
    def rename_stream_column(self, pos: Pos, *names: ast.Ident) -> ast.RenameColumn:
        return ast.RenameColumn(ast.ObjectKind.STREAM, *names, pos=pos)

    @rule
    def rename_table_column(self, pos: Pos, *names: ast.Ident) -> ast.RenameColumn:
        return ast.RenameColumn(ast.ObjectKind.TABLE, *names, pos=pos)

    @rule
    def add_column(self, pos: Pos, stream: ast.Ident, column: Clause) -> ast.AddColumn:
        if column.name == "PRIMARY KEY":
            raise bad("DS110", column.pos, "a stream has no PRIMARY KEY", "tables have")
        if column.value.computed is not None:
            raise bad("DS110", column.pos, "no computed column can be added", "give it a DEFAULT")
        return ast.AddColumn(stream, column.value, pos=pos)
