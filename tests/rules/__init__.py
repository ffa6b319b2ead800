"""Errors of the binder, by subject: code, statement (the fault starts at ^), a part of the message,
a part of the hint."""

from __future__ import annotations

from tests.rules import (
    aggregates,
    archives,
    asof,
    definitions,
    functions,
    match,
    names,
    over,
    queries,
    types,
    windows,
)

RULES = [
    *names.RULES,
    *types.RULES,
    *definitions.RULES,
    *aggregates.RULES,
    *windows.RULES,
    *queries.RULES,
    *asof.RULES,
    *match.RULES,
    *over.RULES,
    *archives.RULES,
    *functions.RULES,
]
