"""CREATE, DROP, PAUSE and RESUME of sources and sinks."""

from __future__ import annotations

from typing import Any

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.literals import bad
from dsms.sql.transform.rules import Clause, node, rule, token_rule
from dsms.sql.transform.windows import once

PLACES = ("env", "file")  # of secrets


def _made(
    kind: ast.ConnectorKind,
    pos: Pos,
    replacing: bool | None,
    absent: bool | None,
    name: ast.Ident,
    about: ast.Ident,
    connector: ast.Ident,
    options: Any,
) -> ast.CreateConnector:
    if replacing and absent:
        raise bad("DS109", pos, f"a {kind.lower()} that is there is replaced or let be, not both")
    said, replaced, there = options or (), bool(replacing), bool(absent)
    return ast.CreateConnector(kind, name, about, connector, said, there, replaced, pos=pos)


class Connectors:
    """Sources and sinks."""

    pause_connector = node(ast.PauseConnector)
    resume_connector = node(ast.ResumeConnector)

    @token_rule("SOURCE", "SINK")
    def connector_kind(self, pos: Pos, token: Token) -> ast.ConnectorKind:
        return ast.ConnectorKind(token.type)

    @token_rule("NAME", "STRING")
    def secret_option(
        self, pos: Pos, name: ast.Ident, place: Token, key: Token
    ) -> ast.SecretOption:
        if place.lower() not in PLACES:
            what = f"a value is read from env('NAME') or file('name'), not {place}(...)"
            raise bad("DS112", pos, what)
        return ast.SecretOption(name, place.lower(), literals.unquote(key), pos=pos)

    @rule
    def connector_options(self, pos: Pos, *options: Any) -> tuple[Any, ...]:
        once(tuple(Clause(f"the option {o.name.text.lower()}", o, o.pos) for o in options))
        return options

    @rule
    def create_source(self, pos: Pos, *parts: Any) -> ast.CreateConnector:
        return _made(ast.ConnectorKind.SOURCE, pos, *parts)

    @rule
    def create_sink(self, pos: Pos, *parts: Any) -> ast.CreateConnector:
        return _made(ast.ConnectorKind.SINK, pos, *parts)

    @rule
    def drop_connector(
        self, pos: Pos, kind: ast.ConnectorKind, present: bool | None, name: ast.Ident
    ) -> ast.DropConnector:
        return ast.DropConnector(kind, name, bool(present), pos=pos)
