"""A function in Python that does not return ends when what waits for it is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms.python_functions import host
from tests.hanging import DECLARED, hanging

S = 1_000_000


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with hanging(tmp_path_factory.mktemp("slow")) as place:
        yield place


@pytest.fixture
def made() -> Engine:
    found = Engine()
    found.execute(DECLARED)
    found.ingest("s", [[1, S], [2, 2 * S]])
    found.heartbeat("s", 2 * S)
    return found


def cut(begun: Path, work: Callable[[Cancel], Any], why: UsageError | None = None) -> DsmsError:
    """What it ends with that is cancelled once the function has begun."""
    cancel, ended = Cancel(), list[DsmsError]()

    def run() -> None:
        try:
            work(cancel)
        except DsmsError as problem:
            ended.append(cancel.told(problem))

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.read_text() == "begun"
    cancel.set(why)
    thread.join()
    (problem,) = ended
    return problem


def status(made: Engine, query: str) -> str:
    (found,) = made.execute("SHOW QUERIES")
    return next(r["status"] for r in found.data.to_pylist() if r["query"] == query)  # type: ignore[union-attr]


@pytest.mark.parametrize("call", ["waits(x + 200)", "turns(x + 200)", "waited(x + 200)"])
def test_a_statement_ends_when_it_is_cancelled(begun: Path, made: Engine, call: str) -> None:
    sql = f"SELECT {call} FROM s [RANGE 1 h]"
    assert cut(begun, lambda cancel: made.execute(sql, cancel=cancel)).code == "DS610"
    late = UsageError("DS616", "the statement has taken longer than statement_timeout, 1 s")
    assert cut(begun, lambda cancel: made.execute(sql, cancel=cancel), late).code == "DS616"
    (found,) = made.execute("SELECT waits(x) AS x FROM s [RANGE 1 h] ORDER BY x")
    assert found.data.column(0).to_pylist() == [1, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize("call", ["waits(x)", "waited(x)"])
def test_a_query_at_work_stops_and_others_go_on(begun: Path, made: Engine, call: str) -> None:
    made.execute(
        f"CREATE QUERY q AS SELECT {call} AS y FROM s [RANGE 5 s];"
        "CREATE QUERY fine AS SELECT SUM(x) AS y FROM s [RANGE UNBOUNDED]"
    )
    rows = [[101, 3 * S], [1, 4 * S]]
    problem = cut(begun, lambda cancel: made.ingest("s", rows, cancel=cancel))
    assert problem.code == "DS610"
    made.heartbeat("s", 9 * S)
    assert status(made, "q").startswith("stopped: DS249 Python function slow:")
    assert status(made, "fine") == "running"
    (found,) = made.execute("SELECT y FROM fine")
    assert found.data.column(0).to_pylist() == [105]  # type: ignore[union-attr]


def test_a_query_is_not_registered_where_its_first_rows_are_cut_off(
    begun: Path, made: Engine
) -> None:
    made.ingest("s", [[101, 3 * S]])
    made.heartbeat("s", 4 * S)
    sql = "CREATE QUERY q AS SELECT waits(x) AS y FROM s [RANGE 1 h]"
    why = UsageError("DS616", "the statement has taken longer than statement_timeout, 1 s")
    assert cut(begun, lambda cancel: made.execute(sql, cancel=cancel), why).code == "DS616"
    assert "q" not in made.runtime.catalog.queries or status(made, "q").startswith("stopped")


def test_who_waits_for_another_call_need_not_wait(begun: Path, made: Engine) -> None:
    """Calls come one at a time: one that has not begun ends, too."""
    sql = "SELECT waits(x + 200) FROM s [RANGE 1 h]"
    cancel, second, codes = Cancel(), Cancel(), list[str]()

    def run(by: Cancel, call: Callable[[], Any]) -> None:
        with pytest.raises(DsmsError) as problem:
            call()
        codes.append(problem.value.code)

    other = Engine()
    other.execute(DECLARED)
    first = threading.Thread(target=run, args=(cancel, lambda: made.execute(sql, cancel=cancel)))
    first.start()
    assert begun.read_text() == "begun"
    second.set()
    run(second, lambda: _asked(second))
    cancel.set()
    first.join()
    assert codes == ["DS249", "DS610"]


def _asked(cancel: Cancel) -> Any:
    import pyarrow as pa

    from dsms.python_functions.cutting import cuttable

    with cuttable(cancel):
        return host.call("slow:waits", [pa.array([1])], pa.int64())
