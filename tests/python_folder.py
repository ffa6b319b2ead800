"""Functions and aggregates in Python for tests: a folder with them, and an engine that has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dsms.engine import Engine
from dsms.python_functions import Functions, host
from tests.asking import asked

S = 1_000_000
LONG = 120.0  # seconds that no call of these takes, however busy the machine
STREAM = "CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
SOURCE = '''
import threading
from os import system

import pyarrow as pa
import pyarrow.compute as pc


def half(x):
    return pc.divide(x, 2.0)


def later(t, by):
    return pc.add(t, by)


def total(a, b):
    return [None if x is None or y is None else x + y for x, y in zip(a.to_pylist(), b.to_pylist())]


def hangs(x):
    threading.Event().wait()


def dies(x):
    import os
    os._exit(3)


def eats(x):
    return pa.array([len(bytearray(1 << 40))])


def fails(x):
    if (pc.max(x).as_py() or 0) > 100:
        raise ValueError("too much")
    return x


def few(x):
    return x[:1]


def texts(x):
    return ["a"] * len(x)


def talks(x):
    print("hello")
    return x


class Mean:
    """With what leaves taken out."""

    def lift(self, x):
        return _pairs(x, pa.array([1] * len(x), pa.int64()))

    def combine(self, a, b):
        return _pairs(pc.add(a.field(0), b.field(0)), pc.add(a.field(1), b.field(1)))

    def subtract(self, a, b):
        return _pairs(pc.subtract(a.field(0), b.field(0)), pc.subtract(a.field(1), b.field(1)))

    def lower(self, s):
        return pc.divide(s.field(0), pc.cast(s.field(1), pa.float64()))


def _pairs(total, count):
    return pa.StructArray.from_arrays([total, count], ["total", "count"])


class Last:
    """Of two states the newer one: so it tells whether they come in their order."""

    def lift(self, x, by):
        return x

    def combine(self, a, b):
        return b

    def lower(self, s):
        return s


class Halfway:
    def lift(self, x):
        return x


class Nested:
    def lift(self, x):
        return pa.array([[1.0]] * len(x))

    def combine(self, a, b):
        return a

    def lower(self, s):
        return s
'''
LINE = SOURCE.splitlines().index('        raise ValueError("too much")') + 1
CREATED = """
CREATE FUNCTION half(x FLOAT) RETURNS FLOAT AS PYTHON 'own:half';
CREATE AGGREGATE average(x FLOAT) RETURNS FLOAT AS PYTHON 'own:Mean';
CREATE AGGREGATE latest(x FLOAT, y FLOAT) RETURNS FLOAT AS PYTHON 'own:Last';
"""


def own_folder(made: Path) -> Iterator[Path]:
    """The folder, for as long as tests want it."""
    (made / "own.py").write_text(SOURCE)
    yield made
    host.close()


def own_functions(folder: Path) -> Functions:
    """The folder's, which other tests may have taken away."""
    found = Functions(str(folder), LONG)
    host.name(found)
    return found


def engine(named: Functions, text: str = CREATED) -> Engine:
    made = Engine(functions=named)
    made.execute(STREAM + text)
    return made


def feed(made: Engine, count: int = 12, first: int = 0) -> None:
    seconds = range(first, first + count)
    made.ingest("s", [["ab"[t % 2], None if t % 5 == 4 else t * 0.5, t * S] for t in seconds])
    made.heartbeat("s", (first + count) * S)


def status(made: Engine, query: str) -> str:
    return next(row[1] for row in asked(made, "SHOW QUERIES") if row[0] == query)
