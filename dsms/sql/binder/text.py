"""What a computed column is called: its text."""

from __future__ import annotations

from dsms.sql import ast


def text(node: ast.Node) -> str:
    """The expression as the printer writes it."""
    try:
        from dsms.sql.printer import to_sql
    except ImportError:
        return repr(node)
    return to_sql(node)
