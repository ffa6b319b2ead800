"""An aggregate is what its card says, and a new one follows the recipe (CONTRIBUTING, "An
aggregate")."""

from __future__ import annotations

import ast
import re
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dsms
from dsms.aggregates import warm
from dsms.aggregates.cards import CARDS, FAMILIES, Card
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.registry import algebra, follow
from dsms.errors import QueryError
from dsms.sql.expr import AggCall, Col
from dsms.sql.functions import resolve_aggregate
from dsms.sql.signatures import FunctionError
from dsms.sql.types import BOOL, FLOAT, INT, STRING, TIMESTAMP, Type, decimal
from tests.generate import aggregates as generated
from tests.oracle import aggregates as oracle
from tests.synopsis_model import CALLS

WIDE = decimal(38, 2)
VALUES: dict[Type, tuple[object, ...]] = {
    BOOL: (True, False, True, False, False),
    INT: (3, 1, 3, 2, 8),
    FLOAT: (1.5, 0.5, 1.5, 4.0, 2.0),
    WIDE: tuple(Decimal(n) for n in (3, 1, 3, 2, 8)),
    STRING: ("c", "a", "c", "b", "d"),
    TIMESTAMP: (30, 10, 30, 20, 80),
}
PARAMS = {
    "phi": 0.5,
    "k": 2,
    "lg_k": 11,
    "size": 200,
    "g": 4,
    "scale": "linear",
    "sep": "-",
    "n": 2,
    "edges": "[1, 2]",
}
# what serves calls in Python, a class of a user has: tests/test_python_functions.py
BUILT_IN = [card for card in CARDS.values() if card.family != "python"]
EXACT = [card for card in BUILT_IN if not card.sampled]


def named(cards: list[Card] | None = None):  # type: ignore[no-untyped-def]
    return pytest.mark.parametrize("card", cards or BUILT_IN, ids=lambda c: c.name)


def calls(card: Card, distinct: bool = False) -> list[AggCall]:
    """One for each type of its first argument; a second one is a number, with which the values
    tie."""
    found = []
    for types in (
        (),
        *((t,) for t in VALUES),
        *((t, INT) for t in VALUES),
        (INT, BOOL),
        (FLOAT, FLOAT),
    ):
        try:
            how = resolve_aggregate(card.name, types, params=tuple(PARAMS[p] for p in card.params))
        except FunctionError:
            continue
        if how.fn == card.name and not any(how.casts):
            args = tuple(Col(k, t) for k, t in enumerate(types))
            found.append(AggCall(card.name, args, how.type, distinct, params=how.params))
    return found


def rows_for(call: AggCall) -> list[tuple[object, ...]]:
    if not call.args:
        return [()] * 5
    second = True if call.args[-1].type == BOOL else 7
    return [(value, second)[: len(call.args)] for value in VALUES[call.args[0].type]]


def lowered(call: AggCall, rows: list[tuple[object, ...]]) -> object:
    """What a cell of these rows answers."""
    how, order = algebra(call), np.arange(len(rows))
    args = tuple(pa.array([r[k] for r in rows], a.type.arrow) for k, a in enumerate(call.args))
    return how.lower(how.lift(CellRows(np.zeros_like(order), order, order, args), 1))[0].as_py()


# ---------------------------------------------------------------- the recipe


@named()
def test_its_family_serves_it(card: Card) -> None:
    family = import_module(f"dsms.aggregates.{card.family}")
    assert callable(family.algebra)
    assert card.sampled or callable(family.follow)
    assert calls(card)


@named(EXACT)
def test_it_is_defined_and_tried(card: Card) -> None:
    """By the oracle, in random queries, and in the cells of all synopses."""
    assert card.name == "count_star" or card.name in oracle._AGGREGATES
    templates = [
        *(t for group in generated.PLAIN.values() for t in group),
        *generated.BY_ARRIVAL,
        *generated.RUNS,
        *generated.LISTS,
        *generated.ARRAYS,
    ]
    assert card.name == "count_star" or any(
        re.match(rf"{card.name}\b", t, re.IGNORECASE) for t in templates
    )
    assert any(call.fn == card.name for group in CALLS.values() for call in group)


@named(EXACT)
def test_its_kernels_are_made_ready(card: Card) -> None:
    assert card.warm or any(other.warm for other in EXACT if other.family == card.family)
    bound = {call.fn for call in warm.calls()}
    assert card.name in bound or not card.warm


def test_the_files_of_cards_are_the_files_of_families() -> None:
    assert set(FAMILIES) == {card.family for card in CARDS.values()}
    aliases = [name for card in CARDS.values() for name in (card.name, *card.aliases)]
    assert len(aliases) == len(set(aliases))


def test_others_ask_cards_and_keep_no_lists_of_names() -> None:
    """Two or more names of aggregates together, outside their room; MIN and MAX have an operator of
    their own."""
    root = Path(dsms.__file__).parent.parent
    lists = []
    for path in (
        p for top in ("dsms", "server", "clients") for p in sorted((root / top).rglob("*.py"))
    ):
        if "aggregates" in path.relative_to(root).parts[:2]:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case (
                    ast.Tuple(elts=parts)
                    | ast.Set(elts=parts)
                    | ast.List(elts=parts)
                    | ast.MatchOr(patterns=parts)
                ):
                    names = {
                        getattr(getattr(p, "value", p), "value", getattr(p, "value", None))
                        for p in parts
                    }
                    if len(names) > 1 and names <= set(CARDS) and names != {"min", "max"}:
                        lists.append(f"{path}:{parts[0].lineno} {names}")
    assert lists == []


# ---------------------------------------------------------------- traits


@named()
def test_only_what_is_invertible_subtracts(card: Card) -> None:
    for call in calls(card):
        how = algebra(call)
        if type(how).__name__ == "Counters":  # those keep all values, and so can always
            assert how.subtractable
            continue
        assert how.subtractable == card.invertible
        assert not (card.invertible and card.picks)


@named(EXACT)
def test_what_is_blind_to_duplicates_is_so(card: Card) -> None:
    for call in calls(card):
        rows = rows_for(call)
        once = list(dict.fromkeys(rows))
        same = [oracle.aggregate(call, some) for some in (rows, once)]
        assert same[0] == same[1] or not card.blind
    if card.distinct:
        for call in calls(card, distinct=True):
            assert (type(algebra(call)).__name__ == "Counters") != card.blind


@named()
def test_what_is_total_answers_over_nothing(card: Card) -> None:
    for call in calls(card):
        assert (lowered(call, []) is not None) == card.total


@named(EXACT)
def test_what_is_ordered_asks_which_row_is_older(card: Card) -> None:
    def turns(call: AggCall) -> bool:
        return oracle.aggregate(call, rows_for(call)) != oracle.aggregate(
            call, rows_for(call)[::-1]
        )

    assert any(map(turns, calls(card))) == card.ordered


@named(EXACT)
def test_what_picks_answers_with_one_of_the_values(card: Card) -> None:
    for call in calls(card) if card.picks else ():
        assert call.type == call.args[0].type
        assert lowered(call, rows_for(call)) in {r[0] for r in rows_for(call)}


@named([card for card in BUILT_IN if card.sampled])
def test_what_is_sampled_follows_no_rows(card: Card) -> None:
    for call in calls(card):
        with pytest.raises(QueryError, match="put together from sub-windows"):
            follow(call, "anyhow")
