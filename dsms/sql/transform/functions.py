"""CREATE and DROP of functions of one's own."""

from __future__ import annotations

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.literals import bad
from dsms.sql.transform.rules import listed, node, only, rule, token_rule


class Functions:
    """Functions and aggregates that are made of others."""

    parameters = listed
    parameter_def = node(ast.ParameterDef)
    returns = only

    @token_rule("AGGREGATE", "FUNCTION")
    def function_kind(self, pos: Pos, token: Token) -> ast.FunctionKind:
        return ast.FunctionKind(token.type)

    @rule
    def create_function(
        self,
        pos: Pos,
        replacing: bool | None,
        kind: ast.FunctionKind,
        absent: bool | None,
        name: ast.Ident,
        parameters: tuple[ast.ParameterDef, ...] | None,
        returns: ast.TypeName | None,
        body: ast.Expr,
    ) -> ast.CreateFunction:
        if replacing and absent:
            what = f"{'an' if kind is ast.FunctionKind.AGGREGATE else 'a'} {kind.lower()}"
            raise bad("DS109", pos, f"{what} that is there is replaced or let be, not both")
        return ast.CreateFunction(
            kind, name, parameters or (), body, returns, bool(absent), bool(replacing), pos=pos
        )

    @token_rule("STRING")
    def python_source(
        self, pos: Pos, place: Token, fingerprint: Token | None = None
    ) -> ast.PythonSource:
        known = None if fingerprint is None else literals.unquote(fingerprint)
        return ast.PythonSource(literals.unquote(place), known, pos=pos)

    @rule
    def drop_function(
        self, pos: Pos, kind: ast.FunctionKind, present: bool | None, name: ast.Ident
    ) -> ast.DropFunction:
        return ast.DropFunction(kind, name, bool(present), pos=pos)
