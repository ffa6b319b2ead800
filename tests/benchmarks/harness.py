"""What the benchmarks share: sizes, clocks, the machine they ran on, and tables of what they found.

Times are CPU seconds of this thread unless said otherwise, so that figures keep their meaning on a
busy machine.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

Mode = Literal["full", "quick", "toy"]


@dataclass(frozen=True, slots=True)
class Options:
    """mode    full: the figures of a report (minutes);  quick: smaller (seconds);  toy: only for
            correctness
    trace   a trace file to use instead of the synthetic trace, and which of its columns mean what
    report  directory for the report and its plots
    """

    mode: Mode = "full"
    trace: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    report: Path = Path("bench-report")

    def pick(self, full: Any, quick: Any, toy: Any) -> Any:
        """The one that this mode asks for."""
        return {"full": full, "quick": quick, "toy": toy}[self.mode]

    @property
    def repeats(self) -> int:
        """Runs of which the median counts."""
        return self.pick(3, 3, 1)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a heading; `notes` are sentences under it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over a common axis: name -> (x values, y values), drawn into `file`."""

    file: str
    title: str
    x: str
    y: str
    lines: dict[str, tuple[list[float], list[float]]]
    log: tuple[bool, bool] = (True, True)


@dataclass(slots=True)
class Section:
    """What one benchmark has to say."""

    title: str
    about: str
    parts: list[Table | Plot] = field(default_factory=list)


class WrongAnswer(AssertionError):
    """A benchmark would have measured a wrong answer."""


def same(what: str, got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Raises WrongAnswer unless both are equal (floats: to a relative tolerance)."""
    if isinstance(expected, float):
        fine = abs(got - expected) <= tolerance * max(1.0, abs(expected))
    else:
        fine = got == expected
    if not fine:
        raise WrongAnswer(f"{what}: got {got}, expected {expected}")


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds: wall clock, and CPU of the whole process."""

    wall: float
    cpu: float


def took(run: Callable[[], object]) -> Took:
    """What one call costs."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


@contextlib.contextmanager
def clean_heap() -> Iterator[None]:
    """As in a fresh process: the search for reference cycles does not read what other benchmarks
    have left.  A heap that is frozen already (as the tests freeze it, with all that they are) is
    left so: thawed, it would be read again and again from then on."""
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def median(runs: Iterable[Took]) -> Took:
    """Of each clock apart."""
    seen = list(runs)
    return Took(statistics.median(t.wall for t in seen), statistics.median(t.cpu for t in seen))


def shown(number: float) -> str:
    """Three digits, and a unit for thousands and millions."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


def ratio(value: float) -> str:
    """A ratio as people say it."""
    return f"{value:.2f} ×" if value < 10 else f"{value:.0f} ×"


def machine() -> str:
    """One line about the hardware and one about the software."""
    names = ("numpy", "pyarrow", "numba", "duckdb", "polars", "csp", "msgpack")
    versions = ", ".join(f"{n} {_version(n)}" for n in names)
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    cpus = (
        f"{os.cpu_count()} CPUs ({_cpu_model()}), {_memory_gb():.0f} GiB; load at the start {load}"
    )
    return (
        f"{platform.system()} {platform.machine()}, {cpus}.  \nPython "
        f"{platform.python_version()}, {versions}."
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        "unknown",
    )


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
