"""Functions over arities, types and edge values: answered alike in every way, or refused with a
code, no DS9xx."""

from __future__ import annotations

import pytest

import dsms
from dsms.errors import DsmsError
from tests.effort import effort
from tests.faults.function_child import Bench, Disagreement
from tests.faults.functions import Told, faults

QUICK = 80  # expressions, over 1,024 rows each
ALL = 2_000
FUZZ = 17_000  # for each step of --fuzz: a million evaluations


def test_drawn_expressions_are_answered_alike_in_every_way() -> None:
    count = QUICK if effort() == 0 else ALL if effort() == 1 else FUZZ * effort()
    told = Told()
    found = faults(0, count, told)
    assert sum(told.counts.values()) > 20 * count
    assert not found, "\n".join(f"{d.number}: {d.how}: {d.said}" for d in found)


@pytest.mark.parametrize("number", [80, 627, 4243, 4610, 10400, 11581])
def test_what_was_found_once(number: int) -> None:
    Bench(0).suffer([number])


def test_a_disagreement_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.faults.function_child.evaluate", lambda expr, row: "another value")
    monkeypatch.setattr("tests.faults.function_child.expression", lambda number: "i + 1")
    with pytest.raises(Disagreement, match="the oracle"):
        Bench(0).suffer([1])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("concat()", "DS207"),
        ("concat('a')", "DS207"),
        ("mod()", "DS207"),
        ("mod(1)", "DS207"),
        ("greatest()", "DS207"),
        ("coalesce()", "DS207"),
        ("date_trunc('year', INTERVAL '1' DAY)", "DS207"),
    ],
)
def test_arguments_that_a_function_does_not_take_are_refused_with_a_code(
    text: str, code: str
) -> None:
    with pytest.raises(DsmsError) as problem:
        dsms.Engine().execute(f"SELECT {text}")
    assert problem.value.code == code
