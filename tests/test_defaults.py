"""DEFAULT of DECIMALs, also in lists: rounded as CAST rounds, and refused where it does not fit."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError, QueryError
from dsms.intake.defaults import filled
from dsms.sql.types import Default, Field, decimal

STREAM = "CREATE STREAM s (v INT, x {} DEFAULT {}, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"


@pytest.mark.parametrize(
    ("written", "stands"),
    [
        ("23.455", "23.46"),
        ("DECIMAL '-23.455'", "-23.46"),
        ("23.445", "23.45"),
        ("99.994", "99.99"),
        ("5", "5.00"),
        ("1e-300", "0.00"),
        ("-0.0", "0.00"),
    ],
)
def test_it_is_rounded_as_cast_rounds(written: str, stands: str) -> None:
    engine = Engine()
    engine.execute(STREAM.format("DECIMAL(4, 2)", written))
    engine.ingest("s", {"v": [1], "t": [1]})
    engine.heartbeat("s", 2)
    (found,) = engine.execute(f"SELECT x, CAST({written} AS DECIMAL(4, 2)) AS c FROM s")
    assert found.data.to_pylist() == [{"x": Decimal(stands), "c": Decimal(stands)}]


@pytest.mark.parametrize(
    "written", ["100", "99.995", "-1e30", "-CAST('inf' AS FLOAT)", "1e300", "DECIMAL '123.4'"]
)
def test_it_is_refused_where_it_does_not_fit(written: str) -> None:
    engine = Engine()
    with pytest.raises(QueryError, match="DS235"):
        engine.execute(STREAM.format("DECIMAL(4, 2)", written))
    engine.execute(STREAM.format("DECIMAL(4, 2)", "1"))
    with pytest.raises(QueryError, match="DS235"):
        engine.execute(f"ALTER STREAM s ADD COLUMN y DECIMAL(4, 2) DEFAULT {written}")


@pytest.mark.parametrize(
    ("written", "stands"),
    [
        ("[1.255]", "[1.26]"),
        ("[1.255, NULL, 1e-300, -99.994]", "[1.26, null, 0.00, -99.99]"),
        ("[DECIMAL '1.255', 2]", "[1.26, 2.00]"),
    ],
)
def test_items_of_a_list_are_rounded_too(written: str, stands: str) -> None:
    engine = Engine()
    engine.execute(STREAM.format("LIST(DECIMAL(4, 2))", written))
    engine.ingest("s", {"v": [1], "t": [1]})
    engine.heartbeat("s", 2)
    (found,) = engine.execute(f"SELECT x, CAST({written} AS LIST(DECIMAL(4, 2))) AS c FROM s")
    assert found.data.to_pylist() == [{"x": stands, "c": stands}]
    for large in ("[100]", "[99.995]", "[1e300]"):
        with pytest.raises(QueryError, match="too large for LIST"):
            engine.execute(f"ALTER STREAM s ADD COLUMN y LIST(DECIMAL(4, 2)) DEFAULT {large}")


@pytest.mark.parametrize(
    ("type_", "written", "stands"),
    [
        ("INT", "CAST('-17' AS INT)", -17),
        ("INT", "-NULL", None),
        ("FLOAT", "CAST('1.5' AS FLOAT)", 1.5),
        ("DECIMAL(4, 2)", "CAST('1.255' AS DECIMAL(4, 2))", Decimal("1.26")),
        ("LIST(INT)", "CAST('[1,2]' AS LIST(INT))", "[1, 2]"),
        ("INT", "CAST('9223372036854775808' AS INT)", "too large"),
        ("INT", "CAST('1_0' AS INT)", "no constant"),
        ("DECIMAL(4, 2)", "CAST('abc' AS DECIMAL(4, 2))", "no constant"),
        ("LIST(INT)", "CAST('[x' AS LIST(INT))", "no constant"),
    ],
)
def test_texts_are_cast(type_: str, written: str, stands: object) -> None:
    """And never kept as they are in a column of another type."""
    engine = Engine()
    if stands in ("too large", "no constant"):
        with pytest.raises(QueryError, match=str(stands)):
            engine.execute(STREAM.format(type_, written))
        return
    engine.execute(STREAM.format(type_, written))
    engine.ingest("s", {"v": [1], "t": [1]})
    engine.heartbeat("s", 2)
    (found,) = engine.execute(f"SELECT x, {written} AS c FROM s")
    assert found.data.to_pylist() == [{"x": stands, "c": stands}]


def test_one_that_an_earlier_version_took_is_told_when_it_is_needed() -> None:
    column = Field("x", decimal(4, 2), default=Default(Decimal("123.4")))
    with pytest.raises(DsmsError, match="DS703"):
        filled(column, 3)
