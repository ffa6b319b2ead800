"""A SELECT over [SESSION ...] and [WHEN ...] has the rows of the episodes that are open."""

from __future__ import annotations

import pytest

from dsms.api import Rows
from dsms.engine import Engine


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ("SESSION 2 s BY k", [("a", 2), ("a", 3), ("b", 3)]),
        ("SESSION (v * INTERVAL 1 SECOND) BY k", [("a", 2), ("a", 3), ("b", 3)]),
        ("SESSION 1 s", [("a", 3), ("b", 3)]),
        ("WHEN v > 2 UNTIL v < 1 BY k", [("a", 3), ("b", 3)]),
        ("WHEN v > 8 UNTIL v < 1 BY k", []),
    ],
)
def test_rows_of_open_episodes(window: str, told: list[tuple[str, int]]) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    rows = [["a", 2, 0], ["b", 2, 500_000], ["a", 2, 4_000_000], ["a", 3, 5_000_000]]
    engine.ingest("s", [*rows, ["b", 3, 5_000_000]])
    engine.heartbeat("s", 5_000_000)
    (answer,) = engine.execute(f"SELECT k, v FROM s [{window}]")
    assert isinstance(answer, Rows)
    assert sorted(map(tuple, (r.values() for r in answer.data.to_pylist()))) == told
