"""The server's Spark process, with one that has no Spark in it: answers, cancels, deaths, updates,
two servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partialmethod
from pathlib import Path

import pyarrow as pa
import pytest

from dsms.api import Cancel
from dsms.errors import DsmsError, UsageError
from dsms_server import spark as server_spark
from dsms_server import spark_process
from dsms_server.spark import Spark, worker_command
from dsms_server.updates import Updates
from dsms_spark.pipe import packed, unpacked
from tests.waiting import WAIT, wait_until

FAKE = [sys.executable, str(Path(__file__).parent / "fake_spark.py")]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A process is read to its end, and may tidy up, on whatever machine."""
    monkeypatch.setattr(spark_process, "WORDS_SECONDS", WAIT)
    monkeypatch.setattr(
        spark_process.Process, "stop", partialmethod(spark_process.Process.stop, WAIT)
    )


@pytest.fixture
def spark():
    held = Spark(lambda: FAKE, pause=0.01)
    held.start()
    yield held
    held.stop()


def appears(path: Path) -> None:
    """Wait for a file of the fake process."""
    wait_until(path.exists)


def lives(pid: int) -> bool:
    """Whether a process is at work; one whose exit code has not been asked for yet is not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return ") Z " not in stat.read_text()
    except OSError:
        return False


def error_of(work) -> DsmsError:
    with pytest.raises(DsmsError) as caught:
        work()
    return caught.value


# -- objects on the pipe ---------------------------------------------------------------------------


def test_arrow_data_keeps_its_shape_on_the_pipe():
    batch = pa.record_batch({"a": list(range(10)), "b": ["x", None] * 5})
    empty = pa.RecordBatch.from_pylist([], schema=batch.schema)
    bare = pa.RecordBatch.from_arrays([], schema=pa.schema([]))
    value = {
        "s": batch.slice(2, 3),
        "e": empty,
        "t": pa.table(batch),
        "a": batch.column(1).slice(1, 2),
        "n": [bare, 1],
    }
    back = unpacked(packed(value))
    assert (
        back["s"].equals(batch.slice(2, 3))
        and back["e"].schema == batch.schema
        and back["e"].num_rows == 0
    )
    assert (
        back["t"].equals(pa.table(batch))
        and back["a"].equals(batch.column(1).slice(1, 2))
        and back["n"][1] == 1
    )


def test_a_slice_costs_its_own_size():
    batch = pa.record_batch({"a": range(1_000_000)})
    message = packed(batch.slice(500_000, 10))
    assert sum(len(b) for b in message["buffers"]) + len(message["pickle"]) < 2_000


# -- requests --------------------------------------------------------------------------------------


def test_the_first_request_starts_it(spark):
    assert spark.state().startswith("not started") and not spark.up
    batch = pa.record_batch({"a": [1, 2, None]})
    assert spark.run(("echo", batch)).equals(batch)
    assert spark.starts == 1 and spark.up and spark.state() == "ready"


def test_errors_come_with_code_and_hint(spark):
    problem = error_of(lambda: spark.run(("fail", "DS407")))
    assert (problem.code, problem.hint) == ("DS407", "ask for something else") and isinstance(
        problem, UsageError
    )
    assert isinstance(error_of(lambda: spark.run(("fail", "DS955"))), UsageError)
    problem = error_of(lambda: spark.run(("nonsense", 0)))
    assert problem.code == "DS900" and "RuntimeError: nonsense" in problem.message


def test_requests_run_beside_each_other(spark, tmp_path):
    cancel = Cancel()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(spark.run, ("wait", str(tmp_path / "w")), cancel)
        appears(tmp_path / "w")
        assert spark.run(("echo", 1)) == 1
        cancel.set()
        assert waiting.exception(WAIT).code == "DS610"


def test_a_cancelled_request_says_what_it_waited_for_and_stops_there(spark, tmp_path):
    cancel = Cancel()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(spark.run, ("wait", str(tmp_path / "w")), cancel)
        appears(tmp_path / "w")
        wait_until(lambda: "Spark, step 2 of 5" in spark.state())
        cancel.set()
        problem = waiting.exception(WAIT)
    assert (problem.code, "waited for Spark, step 2 of 5" in problem.message) == ("DS610", True)
    wait_until(lambda: not (tmp_path / "w").exists())  # the process has stopped, too
    assert spark.run(("echo", 2)) == 2 and spark.starts == 1


# -- death -----------------------------------------------------------------------------------------


def test_killed_while_at_work(spark, tmp_path):
    """Requests under way fail and say so; the next one has a new process."""
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(spark.run, ("wait", str(tmp_path / str(i)))) for i in range(2)]
        for i in range(2):
            appears(tmp_path / str(i))
        first = spark.run(("pid", 0))
        os.kill(first, signal.SIGKILL)
        problems = [w.exception(WAIT) for w in waiting]
    assert [p.code for p in problems] == ["DS653"] * 2 and problems[0] is not problems[1]
    assert "killed by signal 9" in problems[0].message and "ask again" in problems[0].hint
    wait_until(lambda: spark.deaths == 1, "the death")
    assert spark.run(("pid", 0)) != first and (spark.starts, spark.deaths) == (2, 1)


def test_one_that_ends_by_itself_is_quoted(spark):
    problem = error_of(lambda: spark.run(("exit", 3)))
    assert (
        problem.code == "DS653"
        and "ended with code 3; it said last: out of luck" in problem.message
    )
    assert spark.state() == "ended; the next request starts it again"
    assert spark.run(("echo", 1)) == 1


def test_a_program_that_is_not_there(tmp_path):
    broken = Spark(lambda: [str(tmp_path / "nothing")])
    assert error_of(lambda: broken.run(("echo", 1))).code == "DS652"
    assert broken.state().startswith("can't start: DS652")
    broken.stop()


def test_a_program_that_speaks_something_else():
    broken = Spark(lambda: [sys.executable, "-c", "print('hello, this is no frame at all')"])
    assert error_of(lambda: broken.run(("echo", 1))).code == "DS653"
    broken.stop()


def test_without_pyspark_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(server_spark.importlib.util, "find_spec", lambda name: None)
    held = Spark(worker_command(None, None))
    problem = error_of(lambda: held.run(("echo", 1)))
    assert problem.code == "DS651" and "pip install '.[spark]'" in problem.hint
    assert held.state().startswith("can't start: DS651")
    held.stop()


def test_options_reach_the_process():
    assert worker_command("local[2]", "2g")()[3:] == ["--master", "local[2]", "--memory", "2g"]
    assert worker_command(None, None)()[1:] == ["-m", "dsms_spark.worker"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc who lives")
def test_it_ends_with_its_parent():
    """The parent is killed, so it can't stop the child; the end of the pipe does."""
    code = f"""if True:
        import os, signal
        from dsms_server.spark import Spark
        held = Spark(lambda: {FAKE!r})
        print(held.run(("pid", 0)), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    parent = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT
    )
    child = int(parent.stdout)
    wait_until(lambda: not lives(child))


def test_stopping_ends_it_and_refuses_more(tmp_path):
    held = Spark(lambda: FAKE)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(held.run, ("wait", str(tmp_path / "w")))
        appears(tmp_path / "w")
        held.stop()
        assert waiting.exception(WAIT).code in ("DS610", "DS641")
    assert not (tmp_path / "w").exists()  # it was told, and tidied up
    assert error_of(lambda: held.run(("echo", 1))).code == "DS641"
    assert held.deaths == 0


def test_two_servers_have_a_process_each(tmp_path):
    one, two = Spark(lambda: FAKE), Spark(lambda: FAKE)
    first, second = one.run(("pid", 0)), two.run(("pid", 0))
    assert first != second
    os.kill(first, signal.SIGKILL)
    assert two.run(("echo", "there")) == "there"
    assert one.run(("pid", 0)) not in (first, second)
    one.stop()
    two.stop()


# -- updates ---------------------------------------------------------------------------------------


def test_an_update_is_made_for_each_archive_that_is_due(spark, tmp_path):
    seen = []
    spark.updates.observe = lambda name, seconds, report: seen.append((name, report["taken"]))
    for name in ("a", "b"):
        spark.due(name, str(tmp_path / name))
    assert spark.updates.quiet(WAIT)
    assert sorted(seen) == [("a", 10), ("b", 10)]
    figures = spark.updates.figures["a"]
    assert (figures.updates, figures.rows, figures.failures, figures.error) == (1, 10, 0, None)


def test_a_failed_update_is_tried_again(spark, tmp_path):
    spark.due("s", str(tmp_path / "fails-twice"))
    assert spark.updates.quiet(WAIT)
    figures = spark.updates.figures["s"]
    assert (figures.updates, figures.failures, figures.error) == (1, 2, None)


def test_an_update_during_which_it_dies_is_made_again(spark, tmp_path):
    spark.due("s", str(tmp_path / "die-once"))
    assert spark.updates.quiet(WAIT)
    figures = spark.updates.figures["s"]
    assert (figures.updates, figures.failures) == (1, 1)
    wait_until(lambda: (spark.starts, spark.deaths) == (2, 1), "the death")


def test_stopping_gives_an_update_up(tmp_path):
    held = Spark(lambda: FAKE, pause=0.01)
    held.start()
    held.due("s", str(tmp_path / "waits"))
    appears(tmp_path / "waits.waits")
    held.stop()
    assert held.updates.figures["s"].updates == held.updates.figures["s"].failures == 0


def test_an_archive_is_updated_by_one_at_a_time_and_waits_once():
    """Due while its update runs: it is updated again afterwards, once, however often that was asked
    for."""
    begun, go_on, running, most = threading.Semaphore(0), threading.Semaphore(0), [], []

    def update(url: str, cancel: Cancel) -> dict:
        running.append(url)
        most.append(len(running))
        begun.release()
        assert go_on.acquire(timeout=WAIT)
        running.remove(url)
        return {}

    updates = Updates(update)
    updates.start()
    updates.due("s", "u")
    assert begun.acquire(timeout=WAIT)
    for _ in range(3):
        updates.due("s", "u")
    assert updates.waiting == 1
    for _ in range(2):
        go_on.release()
    assert updates.quiet(WAIT)
    assert updates.figures["s"].updates == 2 and max(most) == 1
    updates.stop()


def test_pauses_grow_and_a_success_ends_them(monkeypatch):
    clock, pauses = [100.0], []
    monkeypatch.setattr("dsms_server.updates.elapsed", lambda: clock[0])
    updates = Updates(lambda url, cancel: {}, pause=2.0)

    def fails(url: str, cancel: Cancel) -> dict:
        raise UsageError("DS955", "not now")

    updates._update = fails
    updates.due("s", "u")
    for _ in range(9):
        name, due = updates._next()
        updates._once(name, due)
        pauses.append(updates._due["s"].at - clock[0])
        clock[0] += pauses[-1]
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert updates.figures["s"].failures == 9 and updates.figures["s"].error == "DS955 not now"
    updates._update = lambda url, cancel: {}
    updates._once(*updates._next())
    assert updates.waiting == 0 and updates.figures["s"].error is None
