"""Functions and aggregates in Python: what they answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.python import PythonAggregate
from dsms.engine import Engine
from dsms.python_functions import Functions, host
from dsms.settings import Settings
from dsms.sql.types import FLOAT
from tests.archive_local import Local
from tests.asking import asked, pushed
from tests.effort import examples
from tests.python_folder import CREATED, LONG, STREAM, S, engine, feed, own_folder, own_functions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from own_folder(tmp_path_factory.mktemp("functions"))


@pytest.fixture
def named(folder: Path) -> Functions:
    return own_functions(folder)


# ---------------------------------------------------------------- what they answer


@pytest.mark.parametrize("window", ["[RANGE 4 s]", "[ROWS 3]", "[RANGE 6 s SLIDE 2 s]"])
def test_a_function_is_what_it_says_in_each_kind_of_query(named: Functions, window: str) -> None:
    made = engine(named)
    for name, y in (("p", "half(x)"), ("h", "x / 2.0")):
        plain = f"SELECT k, {y} AS y FROM s {window} WHERE {y} > 1"
        grouped = f"SELECT {y} AS y, SUM({y}) AS n FROM s {window} GROUP BY {y}"
        made.execute(f"CREATE QUERY {name} AS {plain}; CREATE QUERY g{name} AS {grouped}")
    feed(made)
    for query in ("p", "gp"):
        assert pushed(made, query) == pushed(made, query.replace("p", "h"))
    assert asked(made, "SELECT half(x) FROM s [RANGE 1 h] ORDER BY half(x)") == asked(
        made, "SELECT x / 2 FROM s [RANGE 1 h] ORDER BY x"
    )
    assert asked(made, "SELECT half(3), half(NULL)") == [(1.5, None)]


def test_types_are_those_of_arrow(named: Functions) -> None:
    made = engine(
        named,
        "CREATE FUNCTION later(t TIMESTAMP, d INTERVAL) RETURNS TIMESTAMP AS PYTHON 'own:later';"
        "CREATE FUNCTION total(a DECIMAL(10,2), b DECIMAL(10,2)) RETURNS DECIMAL(12,2) AS "
        "PYTHON 'own:total';",
    )
    feed(made, 2, 1)
    shown = "SELECT later(t, INTERVAL '2' SECOND) AS t FROM s [RANGE 1 h] ORDER BY t"
    assert asked(made, shown) == asked(
        made, "SELECT t + INTERVAL '2' SECOND AS t FROM s [RANGE 1 h] ORDER BY t"
    )
    (found,) = asked(made, "SELECT total(DECIMAL '1.50', 2)")[0]
    assert str(found) == "3.50"


def brute(pairs: list[tuple[str, float | None]]) -> dict[str, float | None]:
    """The mean of each group, from its definition."""
    groups: dict[str, list[float]] = {}
    for k, x in pairs:
        groups.setdefault(k, []).extend([] if x is None else [x])
    return {k: sum(v) / len(v) if v else None for k, v in groups.items()}


ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.none() | st.integers(-4, 4).map(float), st.integers(0, 2)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=examples(60), deadline=None)
@given(ROWS, st.sampled_from(["auto", "ws", "ss"]), st.integers(1, 3))
def test_an_aggregate_is_its_definition_by_each_path(
    rows: list[tuple], path: str, periods: int
) -> None:
    made = Engine()
    made.execute(STREAM + CREATED)
    made.execute(
        f"CREATE QUERY p AS SELECT k, average(x) AS m, latest(x, 1.0) AS l FROM s "
        f"[RANGE {2 * periods} s SLIDE 2 s] GROUP BY k WITH (path = {path})"
    )
    made.execute(
        "CREATE QUERY one AS SELECT average(x) FILTER (WHERE x > 0) AS m FROM s "
        "[RANGE 4 s SLIDE 4 s]"
    )
    at, stamped = 0, []
    for k, x, step in rows:
        at += step
        stamped.append((at * S, k, x))
    made.ingest("s", [[k, x, t] for t, k, x in stamped])
    made.heartbeat("s", (at + 20) * S)
    answers = 0
    for kind, bound, found in pushed(made, "p"):
        if kind != "result" or bound is None:
            continue
        inside = [(k, x) for t, k, x in stamped if bound - 2 * periods * S <= t < bound]
        assert {r["k"]: r["m"] for r in found or []} == pytest.approx(brute(inside))
        lasts = {k: x for k, x in inside if x is not None}
        assert {r["k"]: r["l"] for r in found or []} == {k: lasts.get(k) for k, _ in inside}
        answers += 1
    assert answers
    for kind, bound, found in pushed(made, "one"):
        if kind == "result" and bound is not None and found:
            inside = [x for t, _, x in stamped if bound - 4 * S <= t < bound and x is not None]
            some = [x for x in inside if x > 0]
            assert found[0]["m"] == (pytest.approx(sum(some) / len(some)) if some else None)
    once = asked(made, "SELECT k, average(x) FROM s [RANGE 1 h] GROUP BY k")
    assert dict(once) == pytest.approx(brute([(k, x) for _, k, x in stamped]))


@pytest.fixture(scope="module", autouse=True)
def _folder_of_all(folder: Path) -> None:
    host.name(Functions(str(folder), LONG))


def test_states_are_cells_as_of_any_algebra(named: Functions) -> None:
    how = PythonAggregate("own:Mean", (FLOAT,), FLOAT, True)

    def lift(cells: list[int], values: list[float | None]) -> Any:
        order = np.arange(len(cells))
        rows = CellRows(np.array(cells, np.int64), order, order, (pa.array(values, pa.float64()),))
        return how.lift(rows, 3)

    a, b = lift([0, 2, 0], [1.0, 5.0, 2.0]), lift([2, 1], [7.0, None])
    both = how.combine(a, b)
    assert how.lower(both).to_pylist() == [1.5, None, 6.0]
    assert how.lower(how.subtract(both, a)).to_pylist() == [None, None, 7.0]
    assert how.lower(how.take(both, np.array([2, -1, 0]))).to_pylist() == [6.0, None, 1.5]
    stacked = how.concat([how.empty(1), a, b])
    assert how.lower(stacked).to_pylist() == [None, 1.5, None, 5.0, None, None, 7.0]
    assert how.lower(how.combine(how.empty(3), a)).to_pylist() == [1.5, None, 5.0]
    assert how.size(stacked) == 7 and how.nbytes(stacked) > 0
    assert how.lower(how.empty(2)).to_pylist() == [None, None]


def test_an_aggregate_is_asked_for_by_look_up_and_over_archives(
    named: Functions, tmp_path: Path
) -> None:
    made = Engine(settings=Settings(archive=str(tmp_path), archive_runner=Local()), functions=named)
    made.execute(
        "CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 s "
        "ARCHIVE FOR 1 h UPDATE EVERY 10 s;" + CREATED
    )
    made.execute("CREATE QUERY l AS SELECT average(x) AS m FROM s [RANGE 30 s] ON LOOKUP")
    made.execute("CREATE QUERY b AS SELECT AVG(x) AS m FROM s [RANGE 30 s] ON LOOKUP")
    feed(made, 60)
    assert asked(made, "LOOKUP l")[0] == pytest.approx(asked(made, "LOOKUP b")[0])
    place = "FROM ARCHIVE s [RANGE 1 h] GROUP BY k ORDER BY k"
    assert asked(made, f"SELECT k, average(x), COUNT(half(x)) {place}") == [
        (k, pytest.approx(m), n) for k, m, n in asked(made, f"SELECT k, AVG(x), COUNT(x) {place}")
    ]
