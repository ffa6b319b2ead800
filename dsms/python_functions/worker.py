"""The process that runs Python functions: one call after the other, of modules of one folder.

    python -m dsms.python_functions.worker FOLDER BYTES

It ends with its input.  What functions print goes to the standard error output.
"""

from __future__ import annotations

import base64
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from dsms.python_functions import pipe
from dsms.python_functions.stacking import Unlike, stacked

STATE = "state"  # the column of states that are one array


class Refusal(Exception):
    """What is wrong with a function, not what it has raised."""


class Worker:
    """Functions of a folder, as they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._found: dict[str, Any] = {}
        sys.path.insert(0, str(self._folder))

    def answer(
        self, head: dict[str, Any], batch: pa.RecordBatch | None
    ) -> tuple[dict[str, Any], pa.RecordBatch | None]:
        """What one message asks for, or why there is no answer."""
        try:
            return self._answered(head, batch)
        except Refusal as problem:
            return {"refused": str(problem)}, None
        except MemoryError:
            return {"raised": "it took more memory than functions may"}, None
        except BaseException as problem:
            return {"raised": self._told(problem)}, None

    def _answered(
        self, head: dict[str, Any], batch: pa.RecordBatch | None
    ) -> tuple[dict[str, Any], pa.RecordBatch | None]:
        found = self._function(head["place"])
        match head["call"]:
            case "load":
                return {}, None
            case "check":
                return _described(found, bool(head["aggregate"])), None
            case "scalar":
                assert batch is not None
                result = found(*batch.columns)
                return {}, _one(_array(result, _type(head), batch.num_rows))
            case "lift":
                assert batch is not None
                return {}, _lifted(found(), batch)
            case "combine" | "subtract":
                assert batch is not None
                half = batch.num_columns // 2
                names = batch.schema.names[:half]
                older, newer = (_state(names, c) for c in _halves(batch, half))
                made = getattr(found(), head["call"])(older, newer)
                return {}, _flat(made, batch.num_rows, head["call"])
            case "lower":
                assert batch is not None
                result = found().lower(_state(batch.schema.names, batch.columns))
                return {}, _one(_array(result, _type(head), batch.num_rows))
        raise Refusal(f"there is no call {head['call']}")

    def _function(self, place: str) -> Any:
        if place not in self._found:
            module, _, name = place.partition(":")
            loaded = importlib.import_module(module)
            file = Path(loaded.__file__ or "").resolve()
            if not file.is_relative_to(self._folder):
                raise Refusal(f"module {module} is none of the folder of functions")
            found = getattr(loaded, name, None)
            if found is None or not callable(found):
                raise Refusal(f"{file.name} has no function or class {name}")
            if getattr(found, "__module__", None) != module or name.startswith("_"):
                raise Refusal(f"{name} is not one that {file.name} defines for others")
            self._found[place] = found
        return self._found[place]

    def _told(self, problem: BaseException) -> str:
        """What was raised, and the last line of the folder's sources that led there."""
        frames = [
            frame
            for frame in traceback.extract_tb(problem.__traceback__)
            if Path(frame.filename).is_relative_to(self._folder)
        ]
        where = ""
        if isinstance(problem, SyntaxError) and problem.filename:
            where = f" ({Path(problem.filename).name}, line {problem.lineno})"
        elif frames:
            inside = Path(frames[-1].filename).relative_to(self._folder)
            where = f" ({inside}, line {frames[-1].lineno})"
        text = str(problem.msg if isinstance(problem, SyntaxError) else problem)
        return f"{type(problem).__name__}: {text[:500]}{where}"


def _described(found: Any, aggregate: bool) -> dict[str, Any]:
    if aggregate == isinstance(found, type):
        verbs = ("lift", "combine", "lower") if aggregate else ()
        missing = [verb for verb in verbs if not callable(getattr(found, verb, None))]
        if missing:
            raise Refusal(f"class {found.__name__} has no {', '.join(missing)}")
        return {"subtract": callable(getattr(found, "subtract", None))}
    raise Refusal(
        f"{found.__name__} is {'no ' if aggregate else 'a '}class: "
        f"{'an aggregate' if aggregate else 'a function'} is {'one' if aggregate else 'none'}"
    )


def _type(head: dict[str, Any]) -> pa.DataType:
    buffer = pa.py_buffer(base64.b64decode(head["type"]))
    return pa.ipc.read_schema(buffer).field(0).type


def _array(result: Any, type_: pa.DataType, rows: int) -> pa.Array:
    """What a function gave, as the type that it was to give."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if not isinstance(result, pa.Array):
        result = pa.array(result, from_pandas=False)
    if len(result) != rows:
        raise Refusal(f"it gave {len(result)} values for {rows} rows")
    try:
        return result.cast(type_)
    except pa.ArrowException as problem:
        raise Refusal(f"it gave {result.type}, which is no {type_}: {problem}") from None


def _one(array: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], [STATE])


# ---------------------------------------------------------------- states of aggregates


def _halves(batch: pa.RecordBatch, half: int) -> tuple[list[pa.Array], list[pa.Array]]:
    return batch.columns[:half], batch.columns[half:]


def _state(names: list[str], columns: list[pa.Array]) -> pa.Array:
    return columns[0] if names == [STATE] else pa.StructArray.from_arrays(columns, names)


def _flat(state: Any, rows: int, verb: str) -> pa.RecordBatch:
    """States as columns: a struct is its fields."""
    if isinstance(state, pa.ChunkedArray):
        state = state.combine_chunks()
    if not isinstance(state, pa.Array):
        state = pa.array(state)
    if len(state) != rows:
        raise Refusal(f"{verb} gave {len(state)} states for {rows}")
    if pa.types.is_struct(state.type):
        columns, names = state.flatten(), [f.name for f in state.type]
    else:
        columns, names = [state], [STATE]
    for name, column in zip(names, columns, strict=True):
        if column.type.num_fields or pa.types.is_dictionary(column.type):
            raise Refusal(f"{name} of its states is {column.type}: plain columns can be kept")
    return pa.RecordBatch.from_arrays(columns, names)


def _lifted(made: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A state for each cell (the last column; rows of a cell stand together, in their order):
    neighbours are combined in pairs, so there are as many rounds as the largest has bits."""
    *args, cell = batch.columns
    cells = cell.to_numpy()
    states = _flat(made.lift(*args), batch.num_rows, "lift")
    while len(cells) > 1 and (cells[1:] == cells[:-1]).any():
        starts = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]])
        size = np.diff(np.r_[starts, len(cells)])
        place = np.arange(len(cells)) - np.repeat(starts, size)
        first = np.flatnonzero(place % 2 == 0)
        paired = np.r_[cells[1:] == cells[:-1], False][first]
        older, newer = first[paired], first[paired] + 1
        left, right = (states.take(pa.array(side)) for side in (older, newer))
        names = states.schema.names
        pairs = made.combine(_state(names, left.columns), _state(names, right.columns))
        done = _flat(pairs, len(older), "combine")
        try:
            both = stacked([states, done])
        except Unlike as problem:
            raise Refusal(str(problem)) from None
        chosen = first.copy()
        chosen[paired] = len(cells) + np.arange(len(older))
        states, cells = both.take(pa.array(chosen)), cells[first]
    return states


# ---------------------------------------------------------------- the process


def _bounded(size: int) -> None:
    """No more than so many bytes of memory (beside those that the process has by now)."""
    try:
        import resource
    except ImportError:  # not a Unix system
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc").is_dir() else 0
    most = pages * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(folder: str, size: str) -> None:
    """Answer until the input ends."""
    of: BinaryIO = sys.stdin.buffer
    to: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pa.set_cpu_count(1)
    worker: Callable[..., Any] = Worker(Path(folder)).answer
    _bounded(int(size))
    pipe.send(to, {"ready": True})
    while True:
        try:
            head, batch = pipe.receive(of)
        except EOFError:
            return
        pipe.send(to, *worker(head, batch))


if __name__ == "__main__":
    main(*sys.argv[1:])
