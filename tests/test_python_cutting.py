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
from dsms.python_functions import Functions, host
from tests.archives import killed
from tests.hanging import DECLARED, goes_on, hanging

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


def by_rows(made: Engine, cancel: Cancel) -> None:
    made.ingest("s", [[101, 3 * S], [1, 4 * S]], cancel=cancel)


def by_heartbeat(made: Engine, cancel: Cancel) -> None:
    made.ingest("s", [[101, 3 * S], [1, 3 * S]])
    made.heartbeat("s", 3 * S, cancel=cancel)


@pytest.mark.parametrize("call", ["waits(x)", "waited(x)", "SUM(waits(x))"])
@pytest.mark.parametrize("write", [by_rows, by_heartbeat])
def test_a_query_at_work_is_not_cut_off(
    begun: Path, made: Engine, call: str, write: Callable[[Engine, Cancel], None]
) -> None:
    """Who writes may not stop queries of others."""
    made.execute(
        f"CREATE QUERY q AS SELECT {call} AS y FROM s [RANGE UNBOUNDED];"
        "CREATE QUERY fine AS SELECT SUM(x) AS y FROM s [RANGE UNBOUNDED]"
    )
    cancel, codes = Cancel(), list[str]()

    def run() -> None:
        try:
            write(made, cancel)
        except DsmsError as problem:
            codes.append(problem.code)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.read_text() == "begun"
    cancel.set()
    goes_on(begun)
    thread.join()
    assert set(codes) <= {"DS610"}
    made.heartbeat("s", 9 * S)
    assert status(made, "q") == status(made, "fine") == "running"
    (found,) = made.execute("SELECT y FROM fine")
    assert found.data.column(0).to_pylist() == [105]  # type: ignore[union-attr]


def test_nor_one_that_a_change_of_a_table_moves(begun: Path, made: Engine) -> None:
    made.execute("CREATE TABLE d (x INT); CREATE QUERY q AS SELECT waits(x) AS y FROM d")
    cancel = Cancel()
    insert = "INSERT INTO d VALUES (101)"
    thread = threading.Thread(target=lambda: made.execute(insert, cancel=cancel))
    thread.start()
    assert begun.read_text() == "begun"
    cancel.set()
    goes_on(begun)
    thread.join()
    assert status(made, "q") == "running"


def test_a_query_is_not_registered_where_its_first_rows_are_cut_off(
    begun: Path, made: Engine
) -> None:
    made.ingest("s", [[101, 3 * S]])
    made.heartbeat("s", 4 * S)
    sql = "CREATE QUERY q AS SELECT waits(x) AS y FROM s [RANGE 1 h]"
    why = UsageError("DS616", "the statement has taken longer than statement_timeout, 1 s")
    assert cut(begun, lambda cancel: made.execute(sql, cancel=cancel), why).code == "DS616"
    assert "q" not in made.runtime.catalog.queries


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


def test_a_stop_by_chance_holds_after_a_crash(tmp_path: Path) -> None:
    """The function is too slow once, and fast enough when the rows come back."""
    folder, slow = tmp_path / "functions", tmp_path / "slow"
    folder.mkdir()
    (folder / "once.py").write_text(
        f"import os, time\ndef once(x):\n    while os.path.exists({str(slow)!r}):\n"
        "        time.sleep(0.01)\n    return x\n"
    )
    host.name(Functions(str(folder), 1.0))
    made = Engine(str(tmp_path / "data"))
    made.execute(
        "CREATE STREAM s (x INT, t TIMESTAMP) TIMESTAMP BY t;"
        "CREATE FUNCTION once(x INT) RETURNS INT AS PYTHON 'once:once';"
        "CREATE QUERY q AS SELECT once(x) AS y FROM s;"
        "CREATE QUERY w AS SELECT SUM(once(x)) AS y FROM s [RANGE 1 s SLIDE 1 s];"
        "CREATE QUERY fine AS SELECT x FROM s"
    )
    made.ingest("s", [[1, S]])
    slow.touch()
    made.ingest("s", [[2, 2 * S]])
    slow.unlink()
    made.ingest("s", [[3, 4 * S]])
    stopped = [status(made, q) for q in ("q", "w")]
    killed(made)
    again = Engine(str(tmp_path / "data"))
    assert all(s.startswith("stopped: DS248") for s in stopped)
    assert [status(again, q) for q in ("q", "w", "fine")] == [*stopped, "running"]
    again.ingest("s", [[4, 5 * S]])
    again.execute("RESUME QUERY q")
    assert status(again, "q") == "running"
    killed(again)
    last = Engine(str(tmp_path / "data"))
    assert [status(last, q) for q in ("q", "w")] == ["running", stopped[1]]
    last.close()
    host.close()
