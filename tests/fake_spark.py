"""A Spark process without Spark, for tests of the server's side.  Run as a script it is a worker.

`execute` jobs are (what, value):
    echo x       answers x
    wait x       says so, and waits until it is cancelled
    die x        the process kills itself
    exit x       ... or ends with that code, after a word
    fail x       the error of that code
    pid x        answers the number of this process
A real query waits, having made a file beside the archive that it reads.
`update {url}` does what the words of the url say: `fail`, `die`, `wait`, or notes the url in the
file it names.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from dsms.errors import UsageError
from dsms_spark.pipe import packed, unpacked
from dsms_spark.worker import Task, serve


class FakeWork:
    """Does what it is told at once; `wait` until it is cancelled."""

    def __init__(self) -> None:
        self._cancelled: dict[int, threading.Event] = {}

    def do(self, op: str, fields: dict[str, Any], task: Task) -> dict[str, Any]:
        task.progress("Spark")
        print("noise on standard output")  # as Spark and its libraries make
        if op == "start":
            return {}
        if op == "update":
            return self._update(fields["url"], task)
        asked = unpacked(fields)
        if not isinstance(asked, tuple):  # a real query: what it reads is in the way
            asked = ("wait", f"{next(iter(asked.sources.values())).url}.asked")
        what, value = asked
        return packed(self._answer(what, value, task))

    def cancel(self, task: Task) -> None:
        self._event(task).set()

    def _event(self, task: Task) -> threading.Event:
        return self._cancelled.setdefault(task.ident, threading.Event())

    def _answer(self, what: str, value: Any, task: Task) -> Any:
        match what:
            case "echo":
                return value
            case "pid":
                return os.getpid()
            case "wait":
                task.progress("Spark", 1, 5)
                Path(value).touch()
                self._event(task).wait(600)
                Path(value).unlink()
                task.check()
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait(600)
            case "exit":
                print("out of luck", file=sys.stderr, flush=True)
                os._exit(value)
            case "fail":
                raise UsageError(value, "as it was asked to", hint="ask for something else")
        raise RuntimeError(what)

    def _update(self, url: str, task: Task) -> dict[str, Any]:
        path = Path(url) / "updates" if Path(url).is_dir() else Path(url)
        with path.open("a") as notes:
            print(path.name, file=notes)
        done = path.read_text().count("\n")
        if path.name.startswith("fail") and done <= 2:
            raise UsageError("DS955", f"{url} can't be used")
        if path.name.startswith("die") and done == 1:
            self._answer("die", None, task)
        if path.name.startswith("wait"):
            self._answer("wait", f"{url}.waits", task)
        return {"taken": 10, "number": done}


if __name__ == "__main__":
    serve(FakeWork)
