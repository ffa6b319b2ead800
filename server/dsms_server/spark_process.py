"""The Spark process of a server: started, asked, watched, and gone at some time.

Everything here may be called from any thread and blocks only its caller.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import DsmsError, UsageError
from dsms_client.protocol import error_from_map
from dsms_server.clock import elapsed
from dsms_spark.pipe import Channel

log = logging.getLogger("dsms.spark")
STOP_SECONDS = 5.0  # what the process gets to end by itself
WORDS_SECONDS = 1.0  # ... and then until what it said last has been read
LAST_LINES = 20  # of what it printed, to say why it died


@dataclass(slots=True, eq=False)
class Pending:
    """A request that has no answer yet; `doing`: what it waits for, as the process says once it has
    `begun`."""

    process: Process
    ident: int
    op: str
    begun: bool = False
    since: float = field(default_factory=elapsed)
    doing: str = ""
    answer: Future[dict[str, Any]] = field(default_factory=Future)

    def give_up(self) -> None:
        """The answer is not wanted any more: the process may stop working on it."""
        self.process.give_up(self)

    def waits_for(self) -> str:
        """In words: what, and for how long."""
        return f"{self.doing or 'its Spark process'} (for {elapsed() - self.since:.0f} s)"


class Process:
    """A child process that speaks `dsms_spark.pipe`; `ended` is called once, when it is gone."""

    def __init__(
        self, command: Sequence[str], ended: Callable[[Process], None] | None = None
    ) -> None:
        """Starts it.  Raises DS652 where the machine does not."""
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as problem:
            raise UsageError("DS652", f"the Spark process can't be started: {problem}") from None
        assert self._child.stdin and self._child.stdout
        self.pid = self._child.pid
        self.ready = False  # there is a Spark session
        self._channel = Channel(self._child.stdout, self._child.stdin)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Pending] = {}
        self._gone: UsageError | None = None
        self._stopping = False
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._ended = ended
        self._listener = threading.Thread(target=self._listen, name="dsms-spark", daemon=True)
        self._printer = threading.Thread(target=self._hear, name="dsms-spark-log", daemon=True)
        self._printer.start()
        self._listener.start()

    @property
    def alive(self) -> bool:
        return self._gone is None

    def ask(self, op: str, fields: Mapping[str, Any]) -> Pending | None:
        """Send a request; None if the process is gone already."""
        pending = Pending(self, next(self._numbers), op)
        with self._lock:
            if self._gone is not None:
                return None
            self._waiting[pending.ident] = pending
        try:
            self._channel.send({"id": pending.ident, "op": op, **fields})
        except OSError:
            self._listener.join()  # it is gone, and `pending` knows it
        return pending

    def give_up(self, pending: Pending) -> None:
        """See `Pending.give_up`."""
        with self._lock:
            self._waiting.pop(pending.ident, None)
        with contextlib.suppress(OSError, ValueError):
            self._channel.send({"op": "cancel", "request": pending.ident})

    def doing(self) -> list[Pending]:
        """The requests that wait for answers."""
        with self._lock:
            return list(self._waiting.values())

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End it: it gets some seconds for what it must tidy up, and is killed then."""
        self._stopping = True
        self._channel.close()
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._listener.join()
        self._printer.join(WORDS_SECONDS)

    # -- what it says ------------------------------------------------------------------------------

    def _listen(self) -> None:
        while (message := self._next()) is not None:
            with self._lock:
                pending = self._waiting.get(message.get("id", 0))
                if pending is not None and "progress" not in message:
                    del self._waiting[pending.ident]
            if pending is not None:
                self._take(pending, message)
        self._bury()

    def _next(self) -> dict[str, Any] | None:
        try:
            return self._channel.receive()
        except Exception as problem:  # whatever msgpack says of bytes that mean nothing
            log.warning("what the Spark process says makes no sense: %s", problem)
            self._child.kill()
            return None

    def _take(self, pending: Pending, message: dict[str, Any]) -> None:
        pending.begun = True
        if "progress" in message:
            done, of = message["done"], message["of"]
            pending.doing = message["progress"] + (
                f", step {min(done + 1, of)} of {of}" if of else ""
            )
        elif "error" in message:
            pending.answer.set_exception(error_from_map(message["error"]))
        else:
            self.ready |= pending.op != "ping"
            pending.answer.set_result(message)

    def _bury(self) -> None:
        """It is gone: every waiting request gets the error."""
        status = self._child.wait()
        self._printer.join(WORDS_SECONDS)
        problem = self._obituary(status)
        if not self._stopping:
            log.warning("%s", problem.message)
        with self._lock:
            self._gone = problem
            waiting, self._waiting = list(self._waiting.values()), {}
        for pending in waiting:
            pending.answer.set_exception(_copied(problem))
        if self._ended is not None:
            self._ended(self)

    def _obituary(self, status: int) -> UsageError:
        if self._stopping:
            return UsageError("DS641", "the server is stopping")
        how = f"was killed by signal {-status}" if status < 0 else f"ended with code {status}"
        last = next((line for line in reversed(self._said) if line.strip()), "")
        message = f"the Spark process {how}" + (
            f"; it said last: {last}" if last and status > 0 else ""
        )
        return UsageError(
            "DS653", message, hint="nothing is lost; ask again, and another one is started"
        )

    def _hear(self) -> None:
        assert self._child.stderr is not None
        for line in self._child.stderr:
            text = line.decode(errors="replace").rstrip()
            self._said.append(text)
            log.info("%s", text)


def _copied(problem: DsmsError) -> DsmsError:
    """Each raiser gets its own: raising one adds to its traceback."""
    return error_from_map(problem.fields())
