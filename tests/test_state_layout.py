"""What checkpoints are made of: a change of it needs a new VERSION, so that an older state is refused, not misread.

When this fails: raise `dsms.storage.frozen.VERSION` and run `python -m tests.test_state_layout`, which writes the file.
"""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

from dsms.engine import Engine
from dsms.storage import frozen

LAYOUT = Path(__file__).parent / "golden" / "state_layout.txt"
DECLARED = """
CREATE STREAM s (k STRING, v INT, f FLOAT, d DECIMAL(8, 2), t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM u (k STRING, w INT, t TIMESTAMP) TIMESTAMP BY t SLACK 2 s;
CREATE TABLE r (k STRING PRIMARY KEY, n INT); INSERT INTO r VALUES ('a', 1);
CREATE TABLE h (k STRING PRIMARY KEY, n INT) NON RETROACTIVE; INSERT INTO h VALUES ('a', 1);
"""
QUERIES = [
    "SELECT k, SUM(v), AVG(f), MEDIAN(f), SUM(d) FROM s [RANGE 1 min] GROUP BY k",
    "SELECT s.k, v, w FROM s [RANGE 1 min], u [RANGE 30 s] WHERE s.k = u.k AND v + w > 2",
    "SELECT DISTINCT k FROM s [RANGE 1 min]",
    "SELECT k, SUM(v), MAX(f), QUANTILE(v, 0.9) FROM s [RANGE 1 min SLIDE 10 s] GROUP BY k",
    "SELECT s.k, n FROM s [RANGE 1 min], r WHERE s.k = r.k",
    "SELECT s.k, n FROM s [RANGE 1 min], h WHERE s.k = h.k",
    "SELECT s.k, COUNT(*) FROM s [RANGE 1 min SLIDE 5 s], u [RANGE 30 s SLIDE 5 s] WHERE s.k = u.k GROUP BY s.k",
    "SELECT k FROM s [RANGE 1 min] EXCEPT SELECT k FROM u [RANGE 1 min]",
    "SELECT k, v FROM s [ROWS 10 SLIDE 3]",
    "SELECT APPROX_COUNT_DISTINCT(k), APPROX_TOPK(k, 2), FREQUENT(k, 3) FROM s [RANGE 1 min SLIDE 10 s]",
    "SELECT k, TOPK(v, 3), ARGMAX(k, v), FIRST(v) FROM s [RANGE UNBOUNDED] GROUP BY k",
    "SELECT s.k, v, w FROM s [RANGE 1 min] LEFT JOIN u [RANGE 1 min] ON s.k = u.k",
    "SELECT k FROM s [RANGE 1 min] WHERE k NOT IN (SELECT k FROM u [RANGE 1 min])",
    "SELECT MAX(v) FROM s [RANGE 1 min]",
    "SELECT k, v FROM s [PARTITION BY k ROWS 2]",
    "SELECT COUNT(*) FROM s [SINCE TIMESTAMP '1970-01-01' SLIDE 10 s]",
    "SELECT SUM(v) FROM s [RANGE 1 min SLIDE 10 s] WHERE v < 2",
    "SELECT SUM(v) FROM s [RANGE 1 min SLIDE 10 s] WHERE v >= 2",
    "SELECT SUM(v) FROM s [RANGE 1 min SLIDE 10 s] WHERE v < 2 OR v >= 2",
]


def layout() -> str:
    """The classes in a checkpoint of a world with a bit of everything, and their fields."""
    engine = Engine()
    engine.execute(DECLARED)
    for i, sql in enumerate(QUERIES):
        engine.execute(f"CREATE QUERY q{i} AS {sql}")
    at = [i * 500_000 for i in range(200)]
    keys = ["abc"[i % 3] for i in range(200)]
    engine.ingest("s", {"k": keys, "v": at, "f": [1.5] * 200, "d": [1] * 200, "t": at})
    engine.ingest("u", {"k": keys, "w": at, "t": at})
    world = engine.world
    world.transactions = None  # type: ignore[assignment]
    outside = {"settings": world.settings, "adhoc": world.adhoc, "adhocs": world.adhocs}
    data = b"".join(map(bytes, frozen.freeze(world, outside)))
    found: set[type] = set()

    class Reader(frozen._Reader):
        def find_class(self, module: str, name: str) -> object:
            made = super().find_class(module, name)
            if isinstance(made, type) and module.startswith("dsms."):
                found.add(made)
            return made

    blobs = frozen._unpacked(memoryview(data), "here")
    Reader(io.BytesIO(blobs[0]), outside, lambda r: None, blobs[1:]).load()
    lines = sorted(f"{c.__module__}.{c.__qualname__}: {', '.join(_fields(c))}" for c in found)
    return "\n".join([f"version {frozen.VERSION}", *lines, ""])


def _fields(made: type) -> list[str]:
    if dataclasses.is_dataclass(made):
        return [f.name for f in dataclasses.fields(made)]
    return sorted({s for c in made.__mro__ for s in getattr(c, "__slots__", ())})


def test_what_checkpoints_are_made_of_has_the_version_that_it_says() -> None:
    assert layout() == LAYOUT.read_text(encoding="utf-8")


if __name__ == "__main__":
    LAYOUT.write_text(layout(), encoding="utf-8")
