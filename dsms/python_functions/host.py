"""The engine's side of functions in Python: which folders have them, and calls of them.

A call goes to a process that does nothing else, and is waited for no longer than it may take: then
the process is killed, which ends whatever it hangs in, and the query that has called fails
(DS248).  So it is where the statement that it is part of has been cancelled (DS249), which ends as
that says; a query at work is cut off by nobody.  The next call begins another process.  Calls come
from any thread, one at a time.

Folders are those of this process: engines in it share them, as they share the process that runs
the functions.
"""

from __future__ import annotations

import base64
import contextlib
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from dsms.errors import QueryError
from dsms.python_functions import Functions, pipe
from dsms.python_functions.cutting import CUT, is_cut
from dsms.python_functions.sources import PLACE, fingerprint, source
from dsms.python_functions.watch import Watch

BEGINNING = 60.0  # seconds that a process may take to begin
LOOK = 0.02  # seconds, after which a thread that waits looks whether its work is still wanted
NOT_NAMED = "dsms serve --functions DIR, or Engine(functions=DIR), names a folder with it"


@dataclass(slots=True)
class Process:
    """The process of one folder, begun when it is needed."""

    settings: Functions
    child: Any = None
    loaded: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    late: bool = False
    clock: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.clock = Watch(self._too_late)

    def ask(
        self, head: dict[str, Any], batch: pa.RecordBatch | None
    ) -> tuple[dict[str, Any], pa.RecordBatch | None]:
        """The answer.  Raises QueryError DS248 where there is none in time, DS249 where it is not
        waited for any more."""
        while not self.lock.acquire(timeout=LOOK):
            _still_wanted(head["place"])
        try:
            if self.child is None or self.child.poll() is not None:
                self._begin(head["place"])
            told = self._load(head["place"])
            if told:
                return told, None
            with self._watched(head["place"], self.settings.seconds):
                pipe.send(self.child.stdin, head, batch)
                return self._answer(head["place"])
        finally:
            self.lock.release()

    def _answer(self, place: str) -> tuple[dict[str, Any], pa.RecordBatch | None]:
        """What the process says next, as long as somebody wants to know."""
        if hasattr(select, "poll"):
            waiting = select.poll()
            waiting.register(self.child.stdout, select.POLLIN)
            while not waiting.poll(1000 * LOOK):
                _still_wanted(place)
        return pipe.receive(self.child.stdout)

    def close(self) -> None:
        """End the process, if there is one."""
        with self.lock:
            self._end()
            self.clock.close()

    def _begin(self, place: str) -> None:
        folder, memory = Path(self.settings.folder).resolve(), self.settings.memory
        command = [sys.executable, "-m", f"{__package__}.worker", str(folder), str(memory)]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        with self._watched(place, BEGINNING):
            self._answer(place)
        self.loaded.clear()

    def _load(self, place: str) -> dict[str, Any]:
        """Let the process have the function at hand, which takes time of its own.  What is wrong
        with that; else nothing."""
        if place in self.loaded:
            return {}
        with self._watched(place, max(BEGINNING, self.settings.seconds)):
            pipe.send(self.child.stdin, {"call": "load", "place": place})
            told, _ = self._answer(place)
        if not told:
            self.loaded.add(place)
        return told

    @contextlib.contextmanager
    def _watched(self, place: str, seconds: float) -> Iterator[None]:
        """The process is killed if this takes longer; whatever goes wrong, it is not used again."""
        self.late = False
        self.clock.begin(seconds)
        try:
            yield
        except (OSError, EOFError, ValueError, pa.ArrowException):
            raise self._ended(place, seconds) from None
        except BaseException:
            self._end()
            raise
        finally:
            self.clock.end()

    def _too_late(self) -> None:
        self.late = True
        if (child := self.child) is not None:  # it may just have ended
            child.kill()

    def _ended(self, place: str, seconds: float) -> QueryError:
        late = self.late
        self._end()
        why = f"took longer than {seconds:g} s" if late else "ended the process that ran it"
        hint = "make it faster or smaller batches of it, or allow more: --function-timeout"
        if not late:
            hint = "it took more memory than --function-bytes allows, or Python died of it"
        return QueryError("DS248", f"Python function {place} {why}", hint=hint)

    def _end(self) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for end in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):
                end.close()


def _still_wanted(place: str) -> None:
    """Raises QueryError DS249."""
    if is_cut():
        message = f"Python function {place} was cut off: the statement was cancelled"
        raise QueryError(CUT, message, hint="see why it takes so long")


_named: dict[str, Process] = {}


def name(functions: Functions) -> None:
    """From now on statements may name functions of the folder."""
    key = str(Path(functions.folder).resolve())
    known = _named.get(key)
    if known is not None and known.settings == functions:
        return
    if known is not None:
        known.close()
    _named[key] = Process(functions)


def named() -> tuple[Functions, ...]:
    """All that have been named, by their whole paths: for a process elsewhere."""
    return tuple(replace(p.settings, folder=folder) for folder, p in _named.items())


def folders() -> list[Path]:
    """The folders that have been named."""
    return [Path(folder) for folder in _named]


def close() -> None:
    """End all processes, and forget the folders."""
    for process in _named.values():
        process.close()
    _named.clear()


def has_changed(place: str, known: str) -> str | None:
    """What has become of the source since that was its fingerprint; None: it is the same."""
    found = source(folders(), place.partition(":")[0])
    if found is None:
        return f"{place} is in no folder of functions"
    return None if fingerprint(found[1]) == known else f"{found[1].name} has changed"


def check(place: str, aggregate: bool = False) -> tuple[str, bool]:
    """(the fingerprint of the source, whether states can be subtracted).  Raises DS246, DS247,
    DS248."""
    process, file = _process(place)
    head, _ = _asked(process, {"call": "check", "place": place, "aggregate": aggregate}, None)
    return fingerprint(file), bool(head.get("subtract"))


def call(place: str, columns: Sequence[pa.Array], type_: pa.DataType) -> pa.Array:
    """What a function gives for rows."""
    process, _ = _process(place)
    head = {"call": "scalar", "place": place, "type": _written(type_)}
    _, made = _asked(process, head, _batch(columns))
    assert made is not None
    return made.column(0)


def states(verb: str, place: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """States of an aggregate: `lift` of rows whose last column is the cell, `combine` or
    `subtract` of two columns of them side by side."""
    process, _ = _process(place)
    _, made = _asked(process, {"call": verb, "place": place}, batch)
    assert made is not None
    return made


def lowered(place: str, batch: pa.RecordBatch, type_: pa.DataType) -> pa.Array:
    """The answers that states of an aggregate have."""
    process, _ = _process(place)
    _, made = _asked(process, {"call": "lower", "place": place, "type": _written(type_)}, batch)
    assert made is not None
    return made.column(0)


def _written(type_: pa.DataType) -> str:
    return base64.b64encode(pa.schema([("x", type_)]).serialize()).decode()


def _batch(columns: Iterable[pa.Array]) -> pa.RecordBatch:
    found = list(columns)
    return pa.RecordBatch.from_arrays(found, [str(k) for k in range(len(found))])


def _process(place: str) -> tuple[Process, Path]:
    if PLACE.fullmatch(place) is None:
        raise QueryError("DS246", f"`{place}` is no module:name", hint="write 'module:name'")
    module = place.partition(":")[0]
    found = source(folders(), module)
    if found is None:
        what = "no folder of functions is named" if not _named else f"there is no {module}.py"
        hint = f"put {module}.py into a folder that {NOT_NAMED.partition(' names')[0]} names"
        raise QueryError("DS246", f"Python function {place} is not there: {what}", hint=hint)
    return _named[str(found[0])], found[1]


def unusable(place: str, why: str) -> QueryError:
    """What is wrong with a function itself, DS247."""
    message = f"Python function {place} can't be used: {why}"
    return QueryError("DS247", message, hint="mend it, and register the query anew")


def _asked(
    process: Process, head: dict[str, Any], batch: pa.RecordBatch | None
) -> tuple[dict[str, Any], pa.RecordBatch | None]:
    told, made = process.ask(head, batch)
    if "refused" in told:
        raise unusable(head["place"], told["refused"])
    if "raised" in told:
        message = f"Python function {head['place']} has failed: {told['raised']}"
        raise QueryError("DS247", message, hint="mend it, and register the query anew")
    try:
        if made is not None:
            made.validate(full=True)
    except pa.ArrowInvalid as problem:
        raise unusable(head["place"], f"it gave what is no valid array: {problem}") from None
    return told, made
