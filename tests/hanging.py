"""Functions in Python that don't return for values over 100."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsms.python_functions import Functions, host

LONG = 300.0  # seconds: a call that is not cut off fails the test by its limit
SOURCE = '''
import pyarrow as pa
import pyarrow.compute as pc


def waits(x):
    """It tells that it has begun, and then waits in the system for what never comes."""
    if pc.any(pc.greater(x, 100)).as_py():
        with open({begun!r}, "w") as file:
            file.write("begun")
        with open({never!r}) as file:
            file.read()
    return x


def turns(x):
    while pc.any(pc.greater(x, 100)).as_py():
        if {begun!r}:
            with open({begun!r}, "w") as file:
                file.write("begun")
        while True:
            pass
    return x


class Waits:
    def lift(self, x):
        return waits(x)

    def combine(self, a, b):
        return pc.add(a, b)

    def lower(self, s):
        return s
'''
DECLARED = """
CREATE STREAM s (x INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE FUNCTION waits(x INT) RETURNS INT AS PYTHON 'slow:waits';
CREATE FUNCTION turns(x INT) RETURNS INT AS PYTHON 'slow:turns';
CREATE AGGREGATE waited(x INT) RETURNS INT AS PYTHON 'slow:Waits';
"""


def goes_on(begun: Path) -> None:
    """The call that waits ends."""
    with (begun.parent / "never").open("w"):
        pass


@contextmanager
def hanging(folder: Path) -> Iterator[Path]:
    """Statements may name them meanwhile; where they tell that they have begun, and wait until
    that is read."""
    places = {"begun": str(folder / "begun"), "never": str(folder / "never")}
    for place in places.values():
        os.mkfifo(place)
    (folder / "slow.py").write_text(
        SOURCE.replace("{begun!r}", repr(places["begun"])).replace(
            "{never!r}", repr(places["never"])
        )
    )
    host.name(Functions(str(folder), LONG))
    yield folder / "begun"
    host.close()
