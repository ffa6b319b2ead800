"""The server's Spark: a process that is started when it is first needed, and again after its death.

Archives are updated by it when a step of their UPDATE EVERY is over (`due`), and it runs one-time
queries that read archives (`run`, in the threads that run SELECTs).  Neither the engine's thread
nor the event loop ever waits for it.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as NotYet
from typing import Any

from dsms.api import Cancel
from dsms.errors import INSTALL_SPARK, DsmsError, UsageError
from dsms.python_functions import Functions
from dsms_server.spark_process import Pending, Process
from dsms_server.updates import Updates
from dsms_spark.pipe import packed, unpacked

log = logging.getLogger("dsms.spark")
LOOK_SECONDS = 0.05  # between two looks at whether a statement was cancelled


def worker_command(
    master: str | None, memory: str | None, functions: Functions | None = None
) -> Callable[[], list[str]]:
    """How the process is started.  The call raises DS651 where PySpark is not installed."""

    def command() -> list[str]:
        if importlib.util.find_spec("pyspark") is None:
            raise UsageError(
                "DS651",
                "archives are read and updated by Spark, and PySpark is not installed here",
                hint=f"{INSTALL_SPARK}, where the server runs; then ask again",
            )
        options = [("--master", master), ("--memory", memory)]
        if functions is not None:
            options.append(("--functions", functions.folder))
            options.append(("--function-timeout", str(functions.seconds)))
            options.append(("--function-bytes", str(functions.memory)))
        said = [word for name, value in options if value is not None for word in (name, value)]
        return [sys.executable, "-m", "dsms_spark.worker", *said]

    return command


class Spark:
    """`command` gives the words that start the process.  Any thread may call any method."""

    def __init__(self, command: Callable[[], Sequence[str]], pause: float | None = None) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._process: Process | None = None
        self._stopped = False
        self._unstartable: DsmsError | None = None
        self.starts = self.deaths = 0
        more = {} if pause is None else {"pause": pause}
        self.updates = Updates(lambda url, cancel: self.ask("update", {"url": url}, cancel), **more)

    def start(self) -> None:
        """Updates that are due begin; Spark itself is started by the first of them, or the first
        query."""
        self.updates.start()

    def stop(self) -> None:
        """No update begins, what runs is given up, the process ends."""
        self._stopped = True
        self.updates.stop()
        with self._lock:
            process = self._process
        if process is not None:
            process.stop()

    def due(self, name: str, url: str) -> None:
        """The archive of that stream or query is to be updated.  Never waits."""
        self.updates.due(name, url)

    def update_state(self, name: str) -> str | None:
        """What becomes of an archive's updates, in words; None: there were none, and none is
        due."""
        process = self._process
        doing = (
            ""
            if process is None
            else ", ".join(p.waits_for() for p in process.doing() if p.op == "update")
        )
        return self.updates.state(name, doing)

    # -- queries -----------------------------------------------------------------------------------

    def run(self, job: Any, cancel: Cancel | None = None) -> Any:
        """The answer of a query (`dsms_spark.execute`).  Blocks; raises what went wrong, DS610,
        DS650..DS654."""
        return unpacked(self.ask("execute", packed(job), cancel))

    def ask(
        self, op: str, fields: Mapping[str, Any], cancel: Cancel | None = None
    ) -> dict[str, Any]:
        """Have the process do something; starts it if need be.

        A cancelled request ends at once, with DS610 that says what it was waiting for.  One that
        the process had not begun with when it died (it was dead already, perhaps) is given to the
        next one."""
        pending = self._send(op, fields)
        try:
            return self._answer(pending, cancel)
        except DsmsError as problem:
            self._unstartable = problem if problem.code in ("DS650", "DS651", "DS652") else None
            if problem.code != "DS653" or pending.begun:
                raise
        return self._answer(self._send(op, fields), cancel)

    def _send(self, op: str, fields: Mapping[str, Any]) -> Pending:
        while (pending := self._running().ask(op, fields)) is None:
            log.debug("the Spark process died a moment ago")
        return pending

    def _answer(self, pending: Pending, cancel: Cancel | None) -> dict[str, Any]:
        while True:
            try:
                return pending.answer.result(LOOK_SECONDS)
            except NotYet:
                _check(cancel, pending)

    def _running(self) -> Process:
        """The process, started if there is none."""
        with self._lock:
            if self._stopped:
                raise UsageError("DS641", "the server is stopping")
            if self._process is None or not self._process.alive:
                try:
                    self._process = Process(self._command(), self._ended)
                except DsmsError as problem:
                    self._unstartable = problem
                    raise
                self._unstartable = None
                self.starts += 1
                log.info("Spark is starting, as process %d", self._process.pid)
            return self._process

    def _ended(self, process: Process) -> None:
        if not self._stopped:
            self.deaths += 1

    # -- for people --------------------------------------------------------------------------------

    @property
    def up(self) -> bool:
        """Whether there is a session that waits for work."""
        process = self._process
        return process is not None and process.alive and process.ready

    def state(self) -> str:
        """What Spark is doing, in words."""
        process = self._process
        if self._unstartable is not None:
            return f"can't start: {self._unstartable.code} {self._unstartable.message}"
        if process is None:
            return "not started: nobody has needed it"
        if not process.alive:
            return "ended; the next request starts it again"
        doing = process.doing()
        if doing:
            return "; ".join(f"{p.op}: {p.waits_for()}" for p in doing)
        return "ready" if process.ready else "started"


def _check(cancel: Cancel | None, pending: Pending) -> None:
    """Raise DS610 if the request was cancelled."""
    if cancel is None:
        return
    try:
        cancel.check()
    except UsageError as problem:
        pending.give_up()
        message = f"{problem.message} while it waited for {pending.waits_for()}"
        raise UsageError(problem.code, message, hint=problem.hint) from None
