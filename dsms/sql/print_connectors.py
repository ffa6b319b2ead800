"""Statements about sources and sinks as text."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.print_expressions import name, option_value, string


def text(node: ast.Statement) -> str | None:
    """The statement, if it is one of these."""
    match node:
        case ast.CreateConnector():
            return _create(node)
        case ast.DropConnector(kind, what, if_exists):
            return f"DROP {kind}{' IF EXISTS' if if_exists else ''} {name(what)}"
        case ast.PauseConnector(kind, what):
            return f"PAUSE {kind} {name(what)}"
        case ast.ResumeConnector(kind, what):
            return f"RESUME {kind} {name(what)}"
        case _:
            return None


def option(node: ast.Option | ast.SecretOption) -> str:
    """``name = value``"""
    if isinstance(node, ast.SecretOption):
        return f"{name(node.name)} = {node.place}({string(node.key)})"
    return f"{name(node.name)} = {option_value(node.value)}"


def _create(node: ast.CreateConnector) -> str:
    verb = "CREATE OR REPLACE" if node.or_replace else "CREATE"
    absent = " IF NOT EXISTS" if node.if_not_exists else ""
    head = f"{verb} {node.kind}{absent} {name(node.name)}"
    about, connector = name(node.object), name(node.connector)
    way = f"INTO {about} FROM {connector}"
    if node.kind is ast.ConnectorKind.SINK:
        way = f"FROM {about} TO {connector}"
    said = f" WITH ({', '.join(map(option, node.options))})" if node.options else ""
    return f"{head} {way}{said}"
