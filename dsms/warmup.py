"""Compile every kernel, or load it from the cache, before anybody waits for it.

Numba compiles a kernel for the argument types it first meets.  So each kernel is made to meet what
the engine gives it: small queries of every kind run over a few hundred rows in an engine of their
own.  The types depend on the operator, the strategy and the number of streams joined below (a row's
identity is one number for each), not on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pyarrow as pa

from dsms import kernel_cache
from dsms.aggregates import python, strings
from dsms.aggregates import warm as aggregates
from dsms.aggregates.parts import valued
from dsms.archiving import lives
from dsms.engine import Engine
from dsms.intake import nesting, packed
from dsms.oneshot import grouping
from dsms.operators import join_kernels
from dsms.operators.expressions import hashes, listed
from dsms.state import counts, hash_chains, index, intern, ranges
from dsms.synopses import warm as synopses

Progress = Callable[[str, int, int], None]

BESIDE = (  # what no query here meets
    packed.ready,
    nesting.ready,
    synopses.ready,
    lives.ready,
    index.ready,
    counts.ready,
    ranges.ready,
    grouping.ready,
    hashes.ready,
    listed.ready,
    intern.ready,
    valued.ready,
    strings.ready,
    hash_chains.ready,
    python.ready,
    join_kernels.halves_ready,  # those wait for more rows than fit here, and for a second core
)

STREAMS = ("a", "b", "c", "d")
KEYED = "keyed"
DECLARATIONS = "".join(
    f"CREATE STREAM {name} (k STRING, i INT, f FLOAT, d DECIMAL(38,2), o BOOL, t TIMESTAMP)"
    f" TIMESTAMP BY t SLACK 1 s MAX FUTURE 1 h{' KEY (k)' if name == KEYED else ''};"
    for name in (*STREAMS, KEYED)
) + (
    "CREATE TABLE plain (k STRING PRIMARY KEY, v INT);"
    "CREATE TABLE fixed (k STRING PRIMARY KEY, v INT) NON RETROACTIVE;"
    "INSERT INTO plain VALUES ('k1', 1), ('k2', 2) AT '1970-01-01';"
    "INSERT INTO fixed VALUES ('k1', 1), ('k2', 2) AT '1970-01-01'"
)
CHANGES = "UPDATE plain SET v = v + 1; DELETE FROM plain WHERE k = 'k2'; UPDATE fixed SET v = v + 1"
STRATEGIES = ("upa", "direct", "nt")
USUAL = {
    "selection, upa", "count windows, upa", "counts over a time window", "sums over a time window",
    "extremes over a time window", "one extreme over a time window, MAX(f)",
    "ranks over a time window", "spreads over a time window",
    "ends over a time window", "joins of many windows", *(f"{what}, time windows, upa" for what in (
        "joins of 2", "DISTINCT over 1", "negation over 1", "left joins", "EXCEPT ALL",
        "joins with a plain table", "joins with a fixed table")),
}  # a long list  # fmt: skip
WIDTH = "[RANGE 2 s]"
ROWS = 400  # of each stream and round; all rounds fill what state begins with
STEP = 50_000  # µs between them
ROUNDS = 3


def warm(progress: Progress | None = None) -> None:
    """Make every kernel ready; `progress(what, done, total)` is called before each step and after
    the last one.

    The first time all are compiled, which takes a minute or two; from then on they are loaded, in
    less than a second.
    """
    prepare(progress)
    load()


def prepare(progress: Progress | None = None) -> None:
    """Compile all kernels, unless they have been and were kept."""
    if kernel_cache.kept() is not None:
        return
    tell = progress or (lambda what, done, total: None)
    steps = queries()
    made: dict[kernel_cache.Made, None] = {}  # in the order in which they were met
    for n, (what, query) in enumerate(steps):
        tell(what, n, len(steps))
        _run(query)
        made.update(dict.fromkeys(kernel_cache.made()))
    for ready in BESIDE:
        ready()
    kernel_cache.keep({**made, **dict.fromkeys(kernel_cache.made())})
    tell("ready", len(steps), len(steps))


def queries() -> list[tuple[str, str]]:
    """What `prepare` runs: (what is made ready, query), those first that most use."""
    return sorted(_steps(), key=lambda step: step[0] not in USUAL)


def load(stop: Callable[[], bool] = lambda: False) -> None:
    """Load the kernels that were kept, those that most queries use first, until `stop` says so.

    Any thread may do this beside engines at work: it holds the interpreter for a few milliseconds
    at a time."""
    pa.array([0])  # Arrow loads pandas, if there is one, when it first meets a list
    kernel_cache.load(kernel_cache.kept() or (), stop)


def _run(query: str) -> None:
    """Run one query over made-up rows, so that rows come, match, leave, and time passes."""
    engine = Engine()
    engine.execute(DECLARATIONS)
    engine.execute(f"CREATE QUERY q AS {query}")
    results = engine.subscribe("q")
    used = [name for name in (*STREAMS, KEYED) if f" {name} " in f"{query} "]
    for part in range(ROUNDS):
        for name in used:
            engine.ingest(name, _rows(part))
        if part == 1 and ("plain" in query or "fixed" in query):
            engine.execute(CHANGES)
        if part == 1 and "[" not in query:  # nothing but promises lets go of rows
            for name in used:
                engine.execute(f"PUNCTUATE {name} WHERE k = 'k1'")
        results.take()
    for name in used:
        engine.ingest(name, {**_rows(ROUNDS), "t": [10**15] * ROWS})  # refused: too far ahead
        engine.heartbeat(name, 10 * ROUNDS * ROWS * STEP)
    results.take()
    engine.close()


def _rows(part: int) -> dict[str, list[object]]:
    """Keys that come back after a while, some NULLs, times a little out of order that grow by ROWS
    * STEP a part."""
    n = range(part * ROWS, (part + 1) * ROWS)
    return {
        "k": [None if j % 37 == 0 else f"k{j % 19}" for j in n],
        "i": [None if j % 41 == 0 else j % 23 for j in n],
        "f": [None if j % 43 == 0 else float(j % 17) for j in n],
        "d": [str(j % 13) for j in n],
        "o": [j % 3 == 0 for j in n],
        "t": [(j ^ 1) * STEP for j in n],
    }


def _steps() -> Iterator[tuple[str, str]]:
    """(what is made ready, query) of every step."""
    for strategy in STRATEGIES:
        for what, query in _plain():
            yield f"{what}, {strategy}", f"{query} WITH (strategy = {strategy}, joins = tree)"
    many = ", ".join(f"{name} {WIDTH} " for name in STREAMS[:3])
    query = f"SELECT a.i FROM {many} WHERE a.k = b.k AND b.k = c.k WITH (joins = pipeline)"
    yield "joins of many windows", query
    yield "joins by promises", "SELECT a.i FROM a , b WHERE a.k = b.k WITH (joins = tree)"
    yield "joins of many by promises", query.replace(f" {WIDTH}", "")
    query = f"SELECT a.i FROM {many} WHERE a.k = b.k AND b.i = c.i WITH (joins = adaptive)"
    yield "adaptive joins", query
    yield "adaptive joins, tuned", query.replace("adaptive)", "adaptive, tuning = hybrid)")
    query = f"SELECT a.i FROM a {WIDTH} , b {WIDTH} WHERE a.k = b.k"
    yield "joins that let go of rows", f"{query} WITH (max_state = 5000, over = shed)"
    said = f"y a ) {WIDTH} PER k WHERE y.i > x.i AND y.i + x.i > 0"
    yield "patterns", f"SELECT x.i, y.i FROM MATCH (x a , NOT n b , {said}"
    apart = said.replace("PER k", "PER k SKIP PAST LAST")
    yield "patterns of many", f"SELECT x.i, SUM(m.i) FROM MATCH (x a , m+ b , {apart}"
    yield (
        "values in JSON",
        "SELECT JSON_VALUE(k, '$.a[0]'), JSON_EXISTS(k, '$.a'), JSON_ITEMS(k, '$') FROM a",
    )
    query = f"SELECT a.i, b.i FROM a {WIDTH} LEFT JOIN b {WIDTH} ON a.k = b.k"
    yield "from event to event", f"{query} WITH (on_error = stop)"
    for what, query in _grouped():
        yield what, query


def _plain() -> Iterator[tuple[str, str]]:
    yield "selection", "SELECT k, i * 2 FROM a WHERE f > 1"
    yield "time windows", f"SELECT * FROM a {WIDTH}"
    yield "count windows", "SELECT * FROM a [ROWS 50]"
    yield "partitioned windows", "SELECT * FROM a [PARTITION BY k ROWS 3]"
    yield "sessions", "SELECT * FROM a [SESSION 5 ms BY k]"
    yield "sessions of many gaps", "SELECT * FROM a [SESSION (i * INTERVAL '1' MILLISECOND) BY k]"
    yield "sessions that end", "SELECT k, COUNT(*) FROM a [SESSION 5 ms BY k INTERNAL] GROUP BY k"
    yield "episodes", "SELECT * FROM a [WHEN o UNTIL NOT o BY k]"
    yield "partitioned windows in time", "SELECT * FROM a [PARTITION BY k ROWS 3 RANGE 2 s]"
    yield "one row of each key at a time", "SELECT * FROM a [PARTITION BY k EVERY 2 s]"
    yield "the first rows of each key", "SELECT * FROM a [PARTITION BY k FIRST 2]"
    yield "windows by row", "SELECT * FROM a [RANGE (i * INTERVAL '1' SECOND)]"
    yield "streams with KEY", f"SELECT f FROM {KEYED} {WIDTH}"
    yield "past windows", "SELECT * FROM a [RANGE 3 s UNTIL 1 s AGO]"
    yield "past rows", "SELECT * FROM a [ROWS 40 UNTIL 20 AGO]"
    yield "unions", f"SELECT k FROM a {WIDTH} UNION ALL SELECT k FROM b [RANGE 1 s]"
    for window in (WIDTH, "[ROWS 50]"):
        kind = "time" if window == WIDTH else "count"
        for what, query in (*_wide(window), *_of_two(window)):
            yield f"{what}, {kind} windows", query
    yield "DISTINCT without a window", "SELECT DISTINCT k, i FROM a"
    yield "first rows without a window", "SELECT i FROM a ORDER BY f, k DESC LIMIT 3 PER k, i"
    yield "first rows of each key", f"SELECT i FROM a {WIDTH} ORDER BY f, k DESC LIMIT 3 PER i"
    yield "many first rows", f"SELECT i FROM a {WIDTH} ORDER BY f, k DESC LIMIT 300 PER k"
    yield "joins over long windows", "SELECT a.i FROM a [RANGE 1 h] , b [RANGE 1 h] WHERE a.t = b.t"
    lag = "LAG(f, 1, 0) OVER (PARTITION BY k)"
    yield "values OVER a time window", f"SELECT SUM(i) OVER (PARTITION BY k), {lag} FROM a {WIDTH}"
    yield "values OVER count windows", f"SELECT {lag} FROM a [PARTITION BY k ROWS 9]"
    ranks = "RANK() OVER (ORDER BY k), DENSE_RANK() OVER (PARTITION BY k ORDER BY f DESC)"
    yield "values OVER all rows", f"SELECT COUNT(*) OVER (PARTITION BY k), {ranks} FROM a"
    yield "what leaves", f"SELECT Dstream(k) FROM a {WIDTH}"
    yield (
        "windows over results",
        f"SELECT Wstream(a.k)[ROWS 10] FROM a {WIDTH} , b {WIDTH} WHERE a.k = b.k",
    )


def _wide(w: str) -> Iterator[tuple[str, str]]:
    """What differs with the number of streams below."""
    for n in range(1, len(STREAMS) + 1):
        yield f"DISTINCT over {n}", f"SELECT DISTINCT a.i FROM {_joined(n, w)}"
    for n in range(1, len(STREAMS)):
        yield f"joins of {n + 1}", f"SELECT a.k FROM {_joined(n + 1, w)}"
        yield f"negation over {n}", f"SELECT a.i FROM {_joined(n, w)} {_not_in(n, w)}"
        yield f"outer theta joins of {n + 1}", f"SELECT a.i FROM {_padded(n, w)}"


def _of_two(w: str) -> Iterator[tuple[str, str]]:
    yield "theta joins", f"SELECT a.i FROM a {w} , b {w} WHERE a.i + 20 < b.i"
    yield "left joins", f"SELECT a.i, b.i FROM a {w} LEFT JOIN b {w} ON a.k = b.k"
    yield "as-of joins", f"SELECT a.i, b.i FROM a {w} ASOF JOIN b ON a.k = b.k WITHIN 1 s"
    yield "full joins", f"SELECT a.i, b.i FROM a {w} FULL JOIN b {w} ON a.k = b.k"
    yield "IN", f"SELECT i FROM a {w} WHERE k IN (SELECT k FROM b {w} )"
    for operation in ("EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION"):
        yield operation, f"SELECT i FROM a {w} {operation} SELECT i FROM b [RANGE 1 s]"
    for table in ("plain", "fixed"):
        yield f"joins with a {table} table", f"SELECT a.i, v FROM a {w} JOIN {table} p ON a.k = p.k"
        yield (
            f"left joins with a {table} table",
            f"SELECT a.i, v FROM a {w} LEFT JOIN {table} p ON a.k = p.k",
        )


def _joined(n: int, window: str) -> str:
    """The FROM and WHERE of a join of n streams."""
    names = STREAMS[:n]
    conditions = " AND ".join(f"{x}.k = {y}.k AND {x}.i = {y}.i" for x, y in pairwise(names))
    return ", ".join(f"{name} {window} " for name in names) + f"WHERE {conditions or 'a.i >= 0'}"


def _padded(n: int, window: str) -> str:
    """A join of n streams, then a left join with one more on a condition that is no equation."""
    joins = " ".join(f"JOIN {x} {window} ON a.k = {x}.k AND a.i = {x}.i" for x in STREAMS[1:n])
    return (
        f"a {window} {joins} LEFT JOIN {STREAMS[n]} {window} ON a.k = {STREAMS[n]}.k AND a.i + "
        f"5 < {STREAMS[n]}.i"
    )


def _not_in(n: int, window: str) -> str:
    other = STREAMS[n]
    return (
        f"AND NOT EXISTS (SELECT * FROM {other} {window} WHERE {other}.k = a.k AND {other}.f = a.f)"
    )


def _grouped() -> Iterator[tuple[str, str]]:
    sources = {
        "a time window": f"a {WIDTH}",
        "a count window": "a [ROWS 50]",
        "no window": "a",
        "a join": f"(SELECT a.* FROM a {WIDTH} , b {WIDTH} WHERE a.k = b.k AND a.i = b.i) a",
    }
    for where, source in sources.items():
        for what, calls in aggregates.texts().items():
            yield f"{what} over {where}", f"SELECT k, {calls} FROM {source} GROUP BY k"
            yield f"{what} of everything over {where}", f"SELECT {calls} FROM {source}"
    for expr in ("MAX(f)", "MIN(i) FILTER (WHERE o)"):
        yield f"one extreme over a time window, {expr}", f"SELECT {expr} FROM a {WIDTH}"
    counts = f"(SELECT k, COUNT(*) AS n FROM a {WIDTH} GROUP BY k) c"
    yield "groups of groups", f"SELECT n, COUNT(*) FROM {counts} GROUP BY n"
    yield "groups by a number", f"SELECT i, COUNT(*) FROM a {WIDTH} GROUP BY i"
