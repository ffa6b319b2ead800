"""The server's Spark process: keeps one session warm and does what it is asked (`dsms_spark.pipe`
says how).

    python -m dsms_spark.worker [--master URL] [--memory 2g]

It is started by the server with pipes as its standard input and output, and ends when the server is
gone.  Requests run beside each other; the session is made by the first that needs it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, BinaryIO, Protocol

from dsms.errors import INSTALL_SPARK, DsmsError, InternalError, UsageError
from dsms_spark.pipe import Channel
from dsms_spark.task import Task

AT_ONCE = 4  # requests that run beside each other
LEAVE_SECONDS = 3.0  # what requests under way get to come to an end when the server is gone


class Work(Protocol):
    """What a worker can do (`dsms_spark.work.SparkWork`)."""

    def do(self, op: str, fields: dict[str, Any], task: Task) -> dict[str, Any]:
        """Answer a request, in a thread of its own.  Raises what went wrong."""
        ...

    def cancel(self, task: Task) -> None:
        """Stop what the request has running."""
        ...


class Worker:
    """Reads requests until the other end is gone."""

    def __init__(self, channel: Channel, work: Work) -> None:
        self._channel, self._work = channel, work
        self._tasks: dict[int, Task] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="dsms-task")
        self._lock = threading.Lock()
        self._running: set[Any] = set()

    def serve(self) -> None:
        """Until the server says `stop` or is gone."""
        while (message := self._channel.receive()) is not None:
            match message["op"]:
                case "stop":
                    break
                case "ping":
                    self._send({"id": message["id"], "ok": True, "pid": os.getpid()})
                case "cancel":
                    self._cancel(message["request"])
                case _:
                    self._begin(message)
        self._leave()

    def _begin(self, message: dict[str, Any]) -> None:
        task = Task(message["id"], self._send)
        with self._lock:
            self._tasks[task.ident] = task
        future = self._pool.submit(self._run, task, message)
        self._running.add(future)
        future.add_done_callback(self._running.discard)

    def _run(self, task: Task, message: dict[str, Any]) -> None:
        try:
            task.check()
            answer = self._work.do(message["op"], message, task)
            self._send({"id": task.ident, "ok": True, **answer})
        except SystemExit as end:  # this process is of no use any more: the next one is
            print(end, file=sys.stderr, flush=True)
            os._exit(3)
        except Exception as problem:
            error = (
                UsageError("DS610", "the statement was cancelled")
                if task.cancelled
                else known(problem)
            )
            self._send({"id": task.ident, "error": error.fields()})
        finally:
            with self._lock:
                self._tasks.pop(task.ident, None)

    def _cancel(self, ident: int) -> None:
        with self._lock:
            task = self._tasks.get(ident)
        if task is not None:
            task.cancelled = True
            task.cancel.set()
            self._work.cancel(task)

    def _leave(self) -> None:
        with self._lock:
            waiting = list(self._tasks)
        for ident in waiting:
            self._cancel(ident)
        wait(list(self._running), LEAVE_SECONDS)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._channel.send(message)
        except (OSError, ValueError):  # the server is gone, which `receive` sees, too
            return


def known(problem: BaseException) -> DsmsError:
    """An error that a server can pass on."""
    if isinstance(problem, DsmsError):
        return problem
    if type(problem).__module__.partition(".")[0] in ("pyspark", "py4j"):
        return _spark_failed(problem)
    if isinstance(problem, ImportError) and (problem.name or "").partition(".")[0] in (
        "pyspark",
        "py4j",
    ):
        return UsageError("DS651", f"PySpark is not installed: {problem}", hint=INSTALL_SPARK)
    if isinstance(problem, OSError):
        return UsageError("DS654", f"a Spark job could not read or write: {problem}")
    return InternalError(
        "DS900",
        f"a fault of dsms in its Spark process: {type(problem).__name__}: {problem}",
        hint="please report this with the server's log",
    )


def _spark_failed(problem: BaseException) -> UsageError:
    lines = [line.strip() for line in str(problem).splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    said = causes[-1] if causes else next((line for line in lines if line), type(problem).__name__)
    hint = "more memory may help: --spark-memory 4g" if "OutOfMemory" in str(problem) else None
    return UsageError("DS654", f"a Spark job failed: {said}", hint=hint)


def serve(make_work: Callable[[], Work]) -> None:
    """Work for the process that started this one; never returns."""
    channel = _take_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's business
    try:
        Worker(channel, make_work()).serve()
    finally:
        os._exit(0)  # Spark's Java ends with us, as its standard input does


def _take_pipes() -> Channel:
    """Standard input and output for ourselves: what else is printed must not get in between."""
    incoming: BinaryIO = os.fdopen(os.dup(0), "rb")
    outgoing: BinaryIO = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    return Channel(incoming, outgoing)


def main() -> None:
    """Parse the options and serve."""
    parser = argparse.ArgumentParser(prog="python -m dsms_spark.worker", description=__doc__)
    parser.add_argument(
        "--master", help="where Spark runs (default: in this process, on all cores)"
    )
    parser.add_argument("--memory", help="of Spark's driver, for example 2g")
    parser.add_argument("--functions", help="folder of functions in Python")
    parser.add_argument("--function-timeout", type=float, help="seconds that a call may take")
    parser.add_argument("--function-bytes", type=int, help="of memory that it may take")
    args = parser.parse_args()
    from dsms_spark.work import SparkWork

    if args.functions is not None:
        from dsms.python_functions import host

        host.name(host.Functions(args.functions, args.function_timeout, args.function_bytes))

    serve(lambda: SparkWork(args.master, args.memory))


if __name__ == "__main__":
    main()
