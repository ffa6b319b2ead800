"""A chain of derived streams against its parts: what it costs to hand rows on.

Five derived streams, each over the one before, and a periodic query at the end.  The parts are the
same six queries, each in an engine of its own that is sent the rows that the one before has told,
as a client would, in frames of as many rows.  CPU time; chain and parts take turns.

Bar: the chain costs <= 1.5 times its parts.

Queries over queries: ten, each over the one before, and a hundred over one, against the same
queries with the texts of those that they read in them, each run by itself; and against the one
query that all rest on, alone.

Bar: ten deep costs <= half of the texts, a hundred wide no more than they do.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import dsms
from dsms.settings import Settings
from tests.benchmarks.harness import Options, Section, Table, ratio, same, shown, took

DERIVED = (
    "SELECT k, v FROM {a} WHERE v > 20",
    "SELECT Istream(k, v) FROM {a} [RANGE 1 s]",
    "SELECT k, v FROM {a} WHERE v > 40",
    "SELECT Istream(k, v + 1 AS v) FROM {a} [RANGE 2 s]",
    "SELECT k, v FROM {a} WHERE v < 900",
)
LAST = "SELECT k, COUNT(*) AS n FROM {a} [RANGE 10 s SLIDE 10 s] GROUP BY k"
BASE = "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t"


def section(options: Options) -> Section:
    """Chain and parts, for frames of some sizes."""
    rows = options.pick(1_000_000, 200_000, 2_000)
    sizes = options.pick((10_000, 1_000, 100), (10_000, 1_000), (500,))
    table = Table(
        "Five derived streams and a reader",
        ("rows in a frame", "chain, rows/s", "parts, rows/s", "chain / parts"),
        tuple(_line(rows if size > 100 else rows // 10, size, options.repeats) for size in sizes),
    )
    views = Table(
        "Queries over queries",
        ("shape", "rows in a frame", "FROM q / texts alone", "FROM q / the one below"),
        tuple(
            _view(shape, rows // 10, size, options.repeats)
            for shape in ("ten deep", "a hundred wide")
            for size in sizes[:2]
        ),
    )
    return Section("Chains of derived streams", __doc__ or "", [table, views])


BELOW = "SELECT k, COUNT(*) AS v FROM s [RANGE 1 s] GROUP BY k"
LEVEL = "SELECT k, MAX(v) AS v FROM {a} GROUP BY k"
READER = "SELECT k, v FROM {a} WHERE v > {n}"


def _view(shape: str, rows: int, size: int, repeats: int) -> tuple[str, ...]:
    read, texts = _deep() if shape == "ten deep" else _wide()
    given = _trace(rows)
    costs: dict[str, list[float]] = {"read": [], "texts": [], "below": []}
    for _ in range(repeats):
        engine, cost = _run(read, given, size)
        costs["read"].append(cost)
        alone, cost = _run(texts, given, size, Settings(shared_parts=False))
        costs["texts"].append(cost)
        _, cost = _run(read[:2], given, size)
        costs["below"].append(cost)
        same("the last query", engine.next_seq("last"), alone.next_seq("last"))
    median = {name: statistics.median(found) for name, found in costs.items()}
    one, other = (ratio(median["read"] / median[name]) for name in ("texts", "below"))
    return shape, str(size), one, other


def _deep() -> tuple[list[str], list[str]]:
    read, texts = [BASE, f"CREATE QUERY q0 AS {BELOW}"], [BASE, f"CREATE QUERY q0 AS {BELOW}"]
    text = BELOW
    for n in range(1, 10):
        name = "last" if n == 9 else f"q{n}"
        read.append(f"CREATE QUERY {name} AS {LEVEL.format(a=f'q{n - 1}')}")
        text = LEVEL.format(a=f"({text})")
        texts.append(f"CREATE QUERY {name} AS {text}")
    return read, texts


def _wide() -> tuple[list[str], list[str]]:
    read, texts = [BASE, f"CREATE QUERY q0 AS {BELOW}"], [BASE, f"CREATE QUERY q0 AS {BELOW}"]
    for n in range(100):
        name = "last" if n == 99 else f"r{n}"
        read.append(f"CREATE QUERY {name} AS {READER.format(a='q0', n=n % 20)}")
        texts.append(f"CREATE QUERY {name} AS {READER.format(a=f'({BELOW})', n=n % 20)}")
    return read, texts


def _line(rows: int, size: int, repeats: int) -> tuple[str, ...]:
    inputs = [_trace(rows)]
    for select in DERIVED:
        inputs.append(_told(select, inputs[-1]))
    chains, parts = [], []
    for _ in range(repeats):
        engine, cost = _chain(inputs[0], size)
        chains.append(cost)
        costs = []
        for select, given in zip((*DERIVED, LAST), inputs, strict=True):
            alone, cost = _alone(select, given, size)
            costs.append(cost)
        parts.append(sum(costs))
        same("the end of the chain", engine.next_seq("q"), alone.next_seq("q"))
    chain, apart = statistics.median(chains), statistics.median(parts)
    return str(size), shown(rows / chain), shown(rows / apart), ratio(chain / apart)


def _trace(rows: int) -> pa.Table:
    """Rows 1 ms apart."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "k": rng.integers(0, 100, rows),
            "v": rng.integers(0, 1000, rows),
            "t": np.arange(rows) * 1000,
        }
    )


def _chain(given: pa.Table, size: int) -> tuple[dsms.Engine, float]:
    statements, source = [BASE], "s"
    for number, select in enumerate(DERIVED):
        statements.append(f"CREATE STREAM d{number} AS {select.format(a=source)}")
        source = f"d{number}"
    return _run([*statements, f"CREATE QUERY q AS {LAST.format(a=source)}"], given, size)


def _alone(select: str, given: pa.Table, size: int) -> tuple[dsms.Engine, float]:
    return _run([BASE, f"CREATE QUERY q AS {select.format(a='s')}"], given, size)


def _run(
    statements: Sequence[str], given: pa.Table, size: int, settings: Settings | None = None
) -> tuple[dsms.Engine, float]:
    engine = dsms.Engine(settings=settings)
    for sql in statements:
        engine.execute(sql)
    frames = [given.slice(at, size) for at in range(0, len(given), size)]

    def run() -> None:
        for frame in frames:
            engine.ingest("s", frame)
        engine.heartbeat("s", len(given) * 2000)

    return engine, took(run).cpu


def _told(select: str, given: pa.Table) -> pa.Table:
    """The rows that a query tells, with their instants."""
    engine = dsms.Engine()
    engine.execute(BASE)
    engine.execute(f"CREATE QUERY q AS {select.format(a='s')}")
    reader = engine.subscribe("q", limit_bytes=1 << 40)
    engine.ingest("s", given)
    engine.end("s")
    data, instants = [], []
    for push in reader.take():
        if push.data is not None and push.data.num_rows:
            data.append(push.data)
            at = np.full(push.data.num_rows, push.at) if push.ats is None else push.ats
            instants.append(np.asarray(at))
    whole = pa.Table.from_batches(data)
    return pa.table(
        {"k": whole.column(0), "v": whole.column(1), "t": pa.array(np.concatenate(instants))}
    )
