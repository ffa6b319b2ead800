"""ALTER STREAM and ALTER TABLE."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.transform.rules import node


class Alterations:
    """What changes a stream or table that is there."""

    alter_stream = node(ast.AlterStream)
    reopen = node(ast.Reopen)
