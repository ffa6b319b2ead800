"""Statements about users, roles and what they may do, as text.

Secrets are in it: `dsms.secret_texts` takes them out."""

from __future__ import annotations

from dsms.sql import ast, print_changes
from dsms.sql.print_expressions import Expressions, name, names, option_value, string


def text(node: ast.Statement, expressions: Expressions) -> str:
    """The statement."""
    match node:
        case ast.CreateUser(user, credential):
            return (
                f"CREATE USER {'IF NOT EXISTS ' if node.if_not_exists else ''}{name(user)} "
                f"{_credential(credential)}{_quota(node.quota)}"
            )
        case ast.AlterQuota(holder, quota, role):
            kind = "ROLE" if role else "USER"
            return f"ALTER {kind} {name(holder)}{_quota(quota)}"
        case ast.AlterUser(user, credential, change):
            verb = "" if change is ast.UserChange.SET else f"{change} "
            return f"ALTER USER {name(user)} {verb}{_credential(credential)}"
        case ast.DropUser(user, if_exists):
            return f"DROP USER {'IF EXISTS ' if if_exists else ''}{name(user)}"
        case ast.CreateRole(role, if_not_exists):
            there = "IF NOT EXISTS " if if_not_exists else ""
            return f"CREATE ROLE {there}{name(role)}{_quota(node.quota)}"
        case ast.DropRole(role, if_exists):
            return f"DROP ROLE {'IF EXISTS ' if if_exists else ''}{name(role)}"
        case ast.Grant(privileges, target, to, masks, where):
            shown = ", ".join(f"{name(m.column)} AS {expressions.text(m.shown)}" for m in masks)
            tail = f" MASK ({shown})" if masks else ""
            tail += f" WHERE {expressions.text(where)}" if where is not None else ""
            return f"GRANT {_privileges(privileges)} ON {_object(target)} TO {names(to)}{tail}"
        case ast.Revoke(privileges, target, source):
            return f"REVOKE {_privileges(privileges)} ON {_object(target)} FROM {names(source)}"
        case ast.GrantRole(roles, to):
            return f"GRANT {names(roles)} TO {names(to)}"
        case ast.RevokeRole(roles, source):
            return f"REVOKE {names(roles)} FROM {names(source)}"
        case _:
            return print_changes.text(node)


def _quota(options: tuple[ast.Option, ...]) -> str:
    shown = ", ".join(f"{name(o.name)} = {option_value(o.value)}" for o in options)
    return f" WITH ({shown})" if options else ""


def _credential(node: ast.Credential) -> str:
    return node.kind.value + (f" {string(node.secret)}" if node.secret is not None else "")


def _object(target: ast.Ident | None) -> str:
    return "ALL" if target is None else name(target)


def _privileges(found: tuple[ast.Privilege, ...]) -> str:
    return ", ".join(p.right.value + (f" ({names(p.columns)})" if p.columns else "") for p in found)
