"""What the server's Spark process does with a session: updates, compactions, queries; each its own
Spark job group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from dsms.errors import UsageError
from dsms_spark.pipe import packed, unpacked
from dsms_spark.task import Task
from dsms_spark.tasks import connected
from dsms_spark.watch import Watch

MORE = {"spark.scheduler.mode": "FAIR"}  # a query need not wait until an update is done


class SparkWork:
    """One session, made by the first request that needs it."""

    def __init__(self, master: str | None, memory: str | None) -> None:
        self._master, self._memory = master, memory
        self._starting = threading.Lock()
        self._spark: Any = None
        self._watch: Watch | None = None

    def do(self, op: str, fields: dict[str, Any], task: Task) -> dict[str, Any]:
        """Answer a request.  Raises DS602 for an unknown one."""
        work = _WORK.get(op)
        if work is None:
            raise UsageError(
                "DS602", f"the Spark process knows no request {op}", hint=", ".join(_WORK)
            )
        spark = self._session(task)
        try:
            with self._grouped(spark, task):
                return work(spark, fields, task)
        except Exception as problem:
            if not _lives(spark):
                raise SystemExit(
                    f"Spark is gone: {str(problem).partition(chr(10))[0]}"
                ) from problem
            raise

    def cancel(self, task: Task) -> None:
        """Stop the Spark jobs of a request."""
        spark = self._spark
        if spark is None:
            return
        if connected(spark):
            spark.interruptTag(task.group)
        else:
            spark.sparkContext.cancelJobGroup(task.group)

    def _session(self, task: Task) -> Any:
        """The session.  A dead one ends this process before it says a word, so that the next one
        gets the request."""
        if self._spark is not None and not _lives(self._spark):
            raise SystemExit("Spark is gone")
        if self._spark is None:
            task.progress("Spark to start")
            with self._starting:
                task.check()
                if self._spark is None:
                    self._make()
        task.progress("Spark")
        return self._spark

    def _make(self) -> None:
        from dsms_spark.session import get_session

        spark = get_session(self._master, self._memory, MORE)
        if not connected(spark):
            self._watch = Watch(spark.sparkContext.statusTracker())
        self._spark = spark

    @contextmanager
    def _grouped(self, spark: Any, task: Task) -> Iterator[None]:
        """Jobs that this thread starts belong to the request."""
        if connected(spark):
            spark.addTag(task.group)
            try:
                yield
            finally:
                spark.removeTag(task.group)
            return
        assert self._watch is not None
        spark.sparkContext.setJobGroup(
            task.group, f"dsms request {task.ident}", interruptOnCancel=True
        )
        self._watch.add(task.group, lambda done, known: task.tell("Spark", done, known))
        try:
            yield
        finally:
            self._watch.remove(task.group)


def _lives(spark: Any) -> bool:
    """Whether there still is a Spark behind the session: its Java may have been killed, or have
    stopped itself."""
    try:
        if connected(spark):
            spark.version  # noqa: B018  (asks the server)
            return True
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False


def _start(spark: Any, fields: dict[str, Any], task: Task) -> dict[str, Any]:
    return {"version": spark.version}


def _update(spark: Any, fields: dict[str, Any], task: Task) -> dict[str, Any]:
    from dsms.storage.archive.manifest import Archive
    from dsms_spark.update import update

    return asdict(update(spark, Archive(fields["url"]), fields.get("upto"), task.progress))


def _compact(spark: Any, fields: dict[str, Any], task: Task) -> dict[str, Any]:
    from dsms.storage.archive.manifest import Archive
    from dsms_spark.compact import compact

    return asdict(compact(spark, Archive(fields["url"]), task.progress))


def _execute(spark: Any, fields: dict[str, Any], task: Task) -> dict[str, Any]:
    from dsms_spark.execute import run_job

    return packed(run_job(spark, unpacked(fields), task.cancel))


_WORK: dict[str, Callable[[Any, dict[str, Any], Task], dict[str, Any]]] = {
    "start": _start,
    "update": _update,
    "compact": _compact,
    "execute": _execute,
}
