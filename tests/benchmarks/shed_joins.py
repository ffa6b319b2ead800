"""Joins `WITH (over = shed)` (Golab 2006, section 2.4.3): which rows to let go of.

Two streams, each a row a millisecond, over whose windows of `ROWS` rows keys are joined.  Keys are
drawn with the chances of Zipf's law: that of the k-th is proportional to k^-z, the same on both
sides, and after half of the rows they change places, so that what was learnt is wrong.  The join
holds a share of the bytes of its windows.  Recall is the number of results by that without a bound.

    semantic  rows go by how often their key comes on the other side and what remains of their life
    random    rows go by chance
    oldest    the oldest rows go: shorter windows

All run in the same operator, which asks another function what rows are worth; that is all that
differs.  Each result is held against those of the join without a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from dsms.engine import Engine
from dsms.operators import shedding_join
from tests.benchmarks.harness import Options, Table, WrongAnswer

MS = 1000
KEYS = 2000
ROW = 88  # bytes that a row counts for: two numbers
AT_LEAST = 1.5  # times as many results as by chance, where keys are skewed
SKEWED = 0.8  # exponents from which they are
Worth = Callable[..., np.ndarray]


def by_chance() -> Worth:
    """What rows are worth to a join that draws them."""
    rng = np.random.default_rng(11)
    return lambda counters, side, keys, ok, exp, now: rng.random(len(keys))


def by_age(*args: np.ndarray) -> np.ndarray:
    """What rows are worth to a join that lets the oldest go."""
    return np.asarray(args[4], np.float64)


def drawn(z: float, count: int, seed: int) -> np.ndarray:
    """Keys of as many rows."""
    rng = np.random.default_rng(seed)
    chances = np.arange(1, KEYS + 1) ** -z
    keys = rng.choice(KEYS, count, p=chances / chances.sum())
    return np.where(np.arange(count) < count // 2, keys, KEYS - 1 - keys)


def results(z: float, count: int, window: int, share: float | None) -> Counter[tuple[int, ...]]:
    """What a join of windows of `window` ms tells, which holds a share of them (None: all)."""
    engine = Engine()
    declare = "CREATE STREAM {} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;"
    held = (
        "" if share is None else f"WITH (max_state = {int(2 * window * ROW * share)}, over = shed)"
    )
    engine.execute(
        "".join(map(declare.format, "ab"))
        + f"CREATE QUERY q AS SELECT Istream(a.v, b.v AS w) FROM a [RANGE {window} ms],"
        f"b [RANGE {window} ms] WHERE a.k = b.k {held}"
    )
    reader, found = engine.subscribe("q"), Counter[tuple[int, ...]]()
    keys = [drawn(z, count, seed) for seed in (1, 2)]
    for first in range(0, count, 1000):
        number = np.arange(first, min(count, first + 1000))
        for stream, of in zip("ab", keys, strict=True):
            rows = {"k": pa.array(of[number]), "v": pa.array(number), "t": pa.array(number * MS)}
            engine.ingest(stream, rows)
        for push in reader.take():
            if push.data is not None:
                v, w = (np.asarray(c) for c in push.data.columns)
                found.update(zip(v.tolist(), w.tolist(), strict=True))
    return found


def table(options: Options) -> Table:
    """Raises WrongAnswer where something is told that is not so, or where keys are skewed and not
    `AT_LEAST` as much of what is so as by chance."""
    window, count = options.pick((5_000, 30_000), (2_000, 12_000), (300, 1_800))
    lines = []
    for z in options.pick((0.0, SKEWED, 1.1), (0.0, SKEWED, 1.1), (SKEWED,)):
        all_results = results(z, count, window, None)
        for share in options.pick((0.1, 0.25, 0.5), (0.1, 0.25, 0.5), (0.25,)):
            recalls = []
            for worth in (shedding_join.worth, by_chance(), by_age):
                with patch.object(shedding_join, "worth", worth):
                    told = results(z, count, window, share)
                if told - all_results:
                    raise WrongAnswer(f"{len(told - all_results)} results that are none")
                recalls.append(told.total() / all_results.total())
            ours, chance, age = recalls
            if z >= SKEWED and share < 0.5 and ours < AT_LEAST * chance:
                raise WrongAnswer(f"recall {ours:.2f}, by chance {chance:.2f} (z = {z}, {share})")
            cells = (f"{recall:.1%}" for recall in recalls)
            lines.append(
                (f"{z}", f"{share:.0%}", *cells, f"{ours / chance:.2f}", f"{ours / age:.2f}")
            )
    head = ("z", "held", "semantic", "random", "oldest", "to random", "to oldest")
    note = "Counted as held are rows; beside them semantic has 128 KiB of counters."
    return Table("Results of a join that lets go of rows (recall)", head, tuple(lines), (note,))
