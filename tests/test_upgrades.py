"""Values of earlier versions of a stored class, as they are read now."""

from __future__ import annotations

from typing import Any

import pytest

from dsms.operators.periodic import LazyOp
from dsms.sharing.request import Request
from dsms.sql.window import (
    NO_SLIDE,
    Landmark,
    Now,
    Partitioned,
    Rows,
    Slide,
    Time,
    Unbounded,
    WindowSpec,
)
from dsms.storage import layout
from dsms.storage.layout import LayoutError

WINDOW = {
    "kind": "time",
    "length": 0,
    "until": 0,
    "since": 0,
    "partition": (),
    "internal": False,
    "slide": None,
    "align": None,
    "zone": None,
    "calendar": None,
    "slide_calendar": None,
    "archive": False,
}
DAYS = {"slide": 7, "align": 3, "zone": "Asia/Tokyo", "slide_calendar": (1, "day")}
OVER_DAYS = Slide(7, align=3, zone="Asia/Tokyo", calendar=(1, "day"))


def window(**told: Any) -> Any:
    """A window as version 1 has it, with all kinds in one class."""
    fields = WINDOW | told
    return layout.value(("logical.window_spec", 1, tuple(fields)), *fields.values())


@pytest.mark.parametrize(
    ("told", "now"),
    [
        ({"kind": "time", "length": 5, "until": 2}, Time(5, 2)),
        (
            {"kind": "time", "length": 9, "calendar": (2, "day"), **DAYS},
            Time(9, calendar=(2, "day"), slide=OVER_DAYS),
        ),
        ({"kind": "now", "internal": True}, Now(internal=True)),
        (
            {"kind": "rows", "length": 3, "until": 1, "slide": 2},
            Rows(3, 1, slide=Slide(2, by_rows=True)),
        ),
        ({"kind": "rows", "length": 3, "archive": True}, Rows(3, archive=True)),
        ({"kind": "partitioned", "length": 3, "partition": (1, 0)}, Partitioned(3, by=(1, 0))),
        (
            {"kind": "partitioned", "length": 3, "slide": 2},
            Partitioned(3, slide=Slide(2, by_rows=True)),
        ),
        ({"kind": "unbounded", **DAYS}, Unbounded(slide=OVER_DAYS)),
        ({"kind": "landmark", "since": 4}, Landmark(4)),
    ],
)
def test_one_class_of_windows_has_become_many(told: dict[str, Any], now: WindowSpec) -> None:
    assert window(**told) == now


@pytest.mark.parametrize(
    ("told", "slide"),
    [
        ({"kind": "time", "length": 5, "slide": 2}, Slide(2)),
        ({"kind": "rows", "length": 5, "slide": 2}, Slide(2, by_rows=True)),
        ({"kind": "time"}, NO_SLIDE),  # of a query that is looked up
        ({"kind": "unbounded"}, NO_SLIDE),  # of requests that differ in their SLIDE alone
    ],
)
def test_windows_that_stood_for_a_slide(told: dict[str, Any], slide: Slide) -> None:
    shape = (
        "shared.request",
        1,
        ("stream", "where", "keys", "aggs", "length", "until", "beat", "above", "schema"),
    )
    assert layout.value(shape, "s", (), (), (), 5, 0, window(**told), (), ()) == Request(
        "s", (), (), (), 5, 0, slide, (), ()
    )
    shape = ("periodic.lazy_op", 1, ("beat", "waiting"))
    layout.fill(made := layout.new(shape), (shape, window(**told), []))
    assert made == LazyOp(slide)


def test_an_output_says_its_slide_alone() -> None:
    shape = ("logical.output", 1, ("child", "kind", "explicit", "restore", "slide", "schema"))
    made = [
        layout.value(shape, None, "rstream", True, False, told, ())
        for told in (None, window(slide=5, length=9))
    ]
    assert [output.slide for output in made] == [None, Slide(5)]


def test_what_has_gone_is_not_made_anew() -> None:
    with pytest.raises(LayoutError, match=r"`logical.window_spec` has no field"):
        layout.value(("logical.window_spec", 2, tuple(WINDOW)), *WINDOW.values())
