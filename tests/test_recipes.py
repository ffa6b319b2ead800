"""CONTRIBUTING's recipes: a step that is forgotten is named here.  Operator variants:
`test_variants`."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import dsms.plan.rules
import dsms.synopses
from dsms.aggregates.registry import algebra
from dsms.plan.rules import RULES
from dsms.sql.functions import FUNCTIONS
from dsms.synopses.cells import SynopsisKind
from dsms.synopses.joins import JoinSynopsis
from dsms_client.protocol import OPS, PUSH_KINDS, Op
from dsms_server.requests import Requests
from tests import test_rewrites
from tests.grouping import call
from tests.oracle.scalar import FUNCTIONS as DEFINED
from tests.oracle.scalar import LAZY
from tests.synopsis_model import synopses
from tests.test_join_synopses import KINDS as JOINS

PROTOCOL = (Path(__file__).resolve().parent.parent / "server" / "protocol.md").read_text(
    encoding="utf-8"
)


def modules(package: object) -> set[str]:
    """Names of the files of a package."""
    return {p.stem for p in Path(package.__file__).parent.glob("*.py")} - {"__init__"}  # type: ignore[attr-defined]


# -- a scalar function (its kernel: `test_functions`; its name in the reference: `test_reference`)


def test_the_oracle_defines_every_scalar_function() -> None:
    assert set(FUNCTIONS) - {*DEFINED, *LAZY, "cast", "try_cast"} == set()


# -- a rewrite rule


def test_a_rule_is_a_file_a_function_and_an_entry() -> None:
    shared = {"base", "join_search"}
    assert sorted(r.name for r in RULES) == sorted(modules(dsms.plan.rules) - shared)
    assert all(r.apply.__module__ == f"dsms.plan.rules.{r.name}" and r.apply.__doc__ for r in RULES)


def test_what_a_rule_changes_is_shown() -> None:
    shown = Path(test_rewrites.__file__).read_text(encoding="utf-8")
    assert [r.name for r in RULES if f'"{r.name}"' not in shown] == []


# -- a wire request


def line(name: str) -> str:
    """The line of the protocol's tables that begins with that word."""
    found = re.search(rf"^\| (?:`\w+`, )*`{name}`.*$", PROTOCOL, re.MULTILINE)
    return found[0] if found else ""


@pytest.mark.parametrize(("name", "op"), OPS.items())
def test_a_request_is_explained(name: str, op: Op) -> None:
    _, _, fields, _, _ = line(name).split("|")
    assert set(re.findall(r"`(\w+)\??`", fields)) == {*op.required, *op.optional}


def test_requests_are_what_is_served() -> None:
    served = [
        n
        for n, f in inspect.getmembers(Requests, inspect.isfunction)
        if list(inspect.signature(f).parameters)[1:] == ["message", "ident", "size"]
    ]
    assert sorted(served) == sorted(f"_{name}" for name in OPS)


@pytest.mark.parametrize("kind", PUSH_KINDS)
def test_a_push_is_explained(kind: str) -> None:
    assert line(kind)


# -- a synopsis


def test_every_synopsis_is_compared_with_its_rows() -> None:
    found = [import_module(f"dsms.synopses.{name}") for name in modules(dsms.synopses)]
    there = {
        c
        for m in found
        for c in vars(m).values()
        if isinstance(c, type) and c.__module__ == m.__name__ and hasattr(c, "kind")
    }
    compared = {type(make()) for make in synopses(algebra(call("sum", "i"))).values()} | set(JOINS)
    assert there - {JoinSynopsis} == compared
    assert {c.kind for c in compared} == set(get_args(SynopsisKind))
