"""What `make test` leaves to `make test-all`: of products of parameters no value, only pairs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from tests.effort import effort, examples, kept, positions, thinned


def places(*sizes: int) -> list[Mapping[str, int]]:
    """The cases of a product of parameters with so many values each."""
    names = [f"p{k}" for k in range(len(sizes))]
    return [dict(zip(names, case, strict=True)) for case in product(*map(range, sizes))]


@pytest.mark.parametrize(
    ("sizes", "count"), [((7,), 7), ((2, 7), 7), ((6, 8, 2, 2), 8), ((3, 3), 3), ((2, 2, 2), 2)]
)
def test_each_value_of_each_parameter_comes_once(sizes: tuple[int, ...], count: int) -> None:
    cases = places(*sizes)
    shown = [case for case, stays in zip(cases, kept(cases), strict=True) if stays]
    assert len(shown) == count
    for name, size in zip(cases[0], sizes, strict=True):
        assert {case[name] for case in shown} == set(range(size))


def test_small_parameters_do_not_go_in_step() -> None:
    cases = places(2, 2, 8)
    shown = [case for case, stays in zip(cases, kept(cases), strict=True) if stays]
    assert {(case["p0"], case["p1"]) for case in shown} == set(product(range(2), repeat=2))


def test_of_very_many_each_nth_is_shown() -> None:
    assert kept(places(7), 3) == [True, False, False, True, False, False, True]
    assert sum(kept(places(9), 1000)) == 1


def test_positions_of_parameters_are_told_by_their_names() -> None:
    assert positions([("a", "x"), ("a", "y"), ("b", "y")]) == [
        {"0": 0, "1": 0},
        {"0": 0, "1": 1},
        {"0": 1, "1": 1},
    ]


@thinned()
@pytest.mark.parametrize("few", range(2))
@pytest.mark.parametrize("many", range(4))
def test_a_product(few: int, many: int) -> None:
    assert effort() or few == many % 2


def test_of_a_product_some_are_left_out_by_this_pytest(request: pytest.FixtureRequest) -> None:
    there = [i for i in request.session.items if getattr(i, "originalname", "") == "test_a_product"]
    shown = [item for item in there if not item.get_closest_marker("slow")]
    assert len(shown) == (len(there) if effort() else min(4, len(there)))


@pytest.mark.xdist_group("spark")
def test_who_needs_one_process_names_it(request: pytest.FixtureRequest) -> None:
    grouped = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@spark") == bool(grouped)


@pytest.mark.parametrize(("all_", "few"), [(1, 1), (6, 2), (60, 2), (90, 3), (300, 10)])
def test_random_examples(all_: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for said, count in (("0", few), ("1", all_), ("20", 20 * all_)):
        monkeypatch.setenv("DSMS_TEST_EFFORT", said)
        assert examples(all_) == count
