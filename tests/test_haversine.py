"""HAVERSINE: distances on the sphere, against those by vectors, and what is no place."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sql.expr import Col
from dsms.sql.functions import call
from dsms.sql.types import FLOAT
from tests.effort import examples
from tests.oracle.scalar import evaluate
from tests.scalars import every_way, lit, same

R = 6_371_008.8
FOUR = call("haversine", [Col(k, FLOAT) for k in range(4)])
Place = tuple[float, float]


def by_vectors(a: Place, b: Place) -> float:
    """The angle between the two directions, in metres."""
    (x, y, z), (u, v, w) = _direction(a), _direction(b)
    cross = math.hypot(y * w - z * v, z * u - x * w, x * v - y * u)
    return R * math.atan2(cross, x * u + y * v + z * w)


def _direction(place: Place) -> tuple[float, float, float]:
    lat, lon = (math.radians(x) for x in place)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


KNOWN = [
    ((0.0, 0.0), (0.0, 0.0), 0.0),
    ((0.0, 0.0), (0.0, 180.0), math.pi * R),
    ((90.0, 0.0), (-90.0, 77.0), math.pi * R),
    ((0.0, -90.0), (0.0, 270.0), 0.0),
    ((0.0, 0.0), (0.0, 1.0), math.pi * R / 180),
    ((52.52, 13.405), (48.8566, 2.3522), 877_464.6),  # Berlin and Paris
]


@pytest.mark.parametrize(("a", "b", "metres"), KNOWN)
def test_known_distances(a: Place, b: Place, metres: float) -> None:
    (found,), errors = every_way(FOUR, [FLOAT] * 4, [(*a, *b)])
    assert errors == 0
    assert found == pytest.approx(metres, rel=1e-7, abs=1e-6)


LATITUDES = st.one_of(st.floats(-90, 90), st.sampled_from([0.0, 90.0, -90.0, 45.0]))
LONGITUDES = st.one_of(st.floats(-360, 360), st.sampled_from([0.0, 180.0, -180.0, 360.0]))
PLACES = st.tuples(LATITUDES, LONGITUDES, LATITUDES, LONGITUDES)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(PLACES, min_size=1, max_size=8))
def test_distances_are_those_of_the_sphere(rows: list[tuple[float, float, float, float]]) -> None:
    found, errors = every_way(FOUR, [FLOAT] * 4, rows)
    assert errors == 0
    for row, metres in zip(rows, found, strict=True):
        assert isinstance(metres, float)
        assert metres == pytest.approx(by_vectors(row[:2], row[2:]), rel=1e-9, abs=1e-2)
        assert metres == pytest.approx(evaluate(FOUR, row), rel=1e-14, abs=1e-8)


def test_no_places_and_nothing() -> None:
    rows = [
        (90.5, 0.0, 0.0, 0.0),
        (0.0, -361.0, 0.0, 0.0),
        (0.0, 0.0, -math.inf, 0.0),
        (0.0, 0.0, 0.0, math.inf),
        (None, 500.0, 0.0, 0.0),
        (math.nan, 0.0, 0.0, 0.0),
    ]
    found, errors = every_way(FOUR, [FLOAT] * 4, rows)
    assert errors == 4 and found[:5] == [None] * 5 and same(found[5], math.nan)
    fixed = call("haversine", [lit(0.0), lit(0.0), Col(0, FLOAT), Col(1, FLOAT)])
    assert every_way(fixed, [FLOAT] * 2, [(0.0, 0.0), (None, 0.0)]) == ([0.0, None], 0)


def test_in_queries() -> None:
    made = Engine()
    made.execute(
        "CREATE STREAM s (lat FLOAT, lon FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE QUERY q AS SELECT lat FROM s WHERE HAVERSINE(lat, lon, 52.52, 13.405) < 1000"
    )
    made.ingest("s", [[52.521, 13.4, 1], [52.6, 13.4, 2], [95.0, 0.0, 3]])
    made.heartbeat("s", 9)
    rows = [row for p in made.subscribe("q", 0).take() if p.data for row in p.data.to_pylist()]
    assert [row["lat"] for row in rows] == [52.521]
    with pytest.raises(DsmsError, match=r"DS704.*latitudes from -90 to 90"):
        made.execute("SELECT HAVERSINE(lat, lon, 0, 0) FROM s [RANGE 1 h]")
