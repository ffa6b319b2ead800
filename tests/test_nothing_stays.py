"""What is dropped leaves nothing behind: no name of it is reachable from the engine, and there are
as many objects as before."""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from dsms import Engine

FOREIGN = (ModuleType, FunctionType, BuiltinFunctionType, type)
STREAM = "(k INT, v FLOAT, name STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min"
# what is declared, what is said of rows, and what drops it; @ is a name that never comes again
SCRIPTS = {
    "stream": ("CREATE STREAM @ {S}", "DROP STREAM @"),
    "index": ("CREATE STREAM @ {S} INDEX BY (k, name)", "DROP STREAM @"),
    "late": (
        "CREATE STREAM l@ {S}; CREATE STREAM @ {S} LATE INTO l@",
        "DROP STREAM @; DROP STREAM l@",
    ),
    "table": (
        "CREATE TABLE @ (k INT PRIMARY KEY, name STRING); INSERT INTO @ VALUES (1, 'a')",
        "DROP TABLE @",
    ),
    "cascade": (
        "CREATE STREAM @ {S}; CREATE QUERY q@ AS SELECT k FROM @ [RANGE 1 s]; CREATE QUERY p@ AS "
        "SELECT COUNT(*) FROM @ [RANGE 1 min SLIDE 10 s]",
        "DROP STREAM @ CASCADE",
    ),
    "selection": (
        "CREATE STREAM @ {S}; CREATE QUERY q@ AS SELECT v FROM @ [RANGE 1 s] WHERE k = 7",
        "DROP QUERY q@; DROP STREAM @",
    ),
    "groups": (
        "CREATE STREAM @ {S}; CREATE QUERY q@ AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM @ "
        "[RANGE 1 s] GROUP BY k; CREATE QUERY r@ AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM @ "
        "[RANGE 1 s] GROUP BY k",
        "DROP QUERY q@; DROP QUERY r@; DROP STREAM @",
    ),
    "periodic": (
        "CREATE STREAM @ {S}; CREATE QUERY q@ AS SELECT k, COUNT(*) FROM @ [RANGE 1 min SLIDE "
        "10 s] GROUP BY k; CREATE QUERY r@ AS SELECT k, SUM(v) FROM @ [RANGE 30 s SLIDE 10 s] "
        "WHERE k IN (1, 2) GROUP BY k",
        "DROP QUERY r@; DROP QUERY q@; DROP STREAM @",
    ),
    "periodic join": (
        "CREATE STREAM @ {S}; CREATE STREAM y@ {S}; CREATE QUERY q@ AS SELECT COUNT(*) FROM @ "
        "[RANGE 1 min SLIDE 10 s], y@ [RANGE 1 min SLIDE 10 s] WHERE @.k = y@.k",
        "DROP QUERY q@; DROP STREAM @; DROP STREAM y@",
    ),
    "join of streams": (
        "CREATE STREAM @ {S}; CREATE STREAM y@ {S}; CREATE QUERY q@ AS SELECT @.v FROM @ "
        "[RANGE 1 min], y@ [ROWS 3] WHERE @.k = y@.k",
        "DROP QUERY q@; DROP STREAM @; DROP STREAM y@",
    ),
    "join with a table": (
        "CREATE STREAM @ {S}; CREATE TABLE d@ (k INT PRIMARY KEY, w INT); CREATE QUERY q@ AS "
        "SELECT @.v, w FROM @ [RANGE 1 min], d@ WHERE @.k = d@.k",
        "DROP QUERY q@; DROP STREAM @; DROP TABLE d@",
    ),
    "fed": (
        "CREATE STREAM @ {S}; CREATE STREAM f@ (k INT, t TIMESTAMP) TIMESTAMP BY t; "
        "CREATE QUERY q@ AS INSERT INTO f@ SELECT ISTREAM(k) FROM @ [NOW]; "
        "CREATE QUERY r@ AS SELECT COUNT(*) FROM f@ [RANGE 1 s]",
        "DROP QUERY r@; DROP QUERY q@; DROP STREAM @; DROP STREAM f@",
    ),
    "users": (
        "CREATE USER @ PASSWORD 'rather long, and secret'; CREATE ROLE r@; GRANT r@ TO @; "
        "CREATE STREAM s@ {S}; GRANT SELECT ON s@ TO r@; ALTER USER @ WITH (queries = 3)",
        "DROP STREAM s@; DROP ROLE r@; DROP USER @",
    ),
}


class Found(NamedTuple):
    """An object, and what led to it."""

    what: Any
    by: Found | None

    def path(self) -> list[str]:
        return [*(self.by.path() if self.by else []), _told(self.what)]


def reachable(root: Any) -> Iterator[Found]:
    """Everything that an object leads to."""
    seen, waiting = {id(root)}, deque([Found(root, None)])
    alive = []  # no other object takes an address that was seen
    while waiting:
        found = waiting.popleft()
        alive.append(found)
        yield found
        inside = gc.get_referents(found.what)  # of a dict with texts for keys not these
        for other in [*found.what, *inside] if isinstance(found.what, dict) else inside:
            if id(other) not in seen and not isinstance(other, FOREIGN):
                seen.add(id(other))
                waiting.append(Found(other, found))


def _told(found: Any) -> str:
    names = f" {list(found)[:6]}" if isinstance(found, dict) else ""
    return f"{type(found).__name__}{names}"[:200]


def names(engine: Engine) -> Iterator[str]:
    """Where the names of what was dropped are still."""
    for found in reachable(engine):
        text = str(found.what) if isinstance(found.what, str | bytes) else ""
        if "once" in text:
            yield f"{text[:80]}: {' > '.join(found.path()[-6:])}"


def rows(engine: Engine, script: str, number: int) -> None:
    for name in engine.runtime.catalog.streams:
        if engine.runtime.inputs[name].fed_by:
            continue
        at = number * 1_000_000
        engine.ingest(name, [(k % 3, 1.0, "a", at + k) for k in range(20)])
        engine.ingest(name, [(1, 1.0, "a", 0)], client=f"once{number}w", seq=1)
        engine.heartbeat(name, at + 90_000_000)


def cycle(engine: Engine, script: str, number: int) -> None:
    declare, drop = (
        s.replace("{S}", STREAM).replace("@", f"once{number}") for s in SCRIPTS[script]
    )
    engine.execute(declare)
    readers = [engine.subscribe(q) for q in list(engine.runtime.queries)]
    rows(engine, script, number)
    for name in list(engine.runtime.catalog.streams):
        engine.execute(f"SELECT COUNT(*) FROM {name} [RANGE 1 min]")
    for show in ("QUERIES", "STREAMS", "SHARING", "MEMORY", "WINDOWS"):
        engine.execute(f"SHOW {show}")
    del readers
    engine.execute(drop)


@pytest.fixture(autouse=True, scope="module")
def few() -> None:
    """The collector looks at what these tests make alone, not at all that others have left."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_name_of_what_was_dropped_is_left(script: str) -> None:
    engine = Engine()
    for number in range(1, 4):
        cycle(engine, script, number)
    gc.collect()
    engine.writers = type(engine.writers)()  # those who numbered their rows are known on purpose
    assert list(names(engine)) == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_nor_is_it_with_a_data_folder(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After checkpoints, which let go of what was in the journal."""
    monkeypatch.setattr("dsms.storage.working.KNOWN", 1)
    engine = Engine(str(tmp_path))
    for number in range(1, 4):
        cycle(engine, script, number)
    assert engine.saver is not None
    for _ in range(3):
        engine.saver.checkpoint()
    gc.collect()
    engine.writers = type(engine.writers)()
    assert engine.saver.at_work is not None
    assert len(engine.saver.at_work._names) <= 1
    engine.saver.at_work._names.clear()  # the last one's
    found = list(names(engine))
    engine.close()
    assert found == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_there_are_as_many_objects_as_before(script: str) -> None:
    engine = Engine()
    sizes = []
    for number in range(1, 13):
        cycle(engine, script, number)
        engine.writers = type(engine.writers)()
        if number % 6 == 0:
            gc.collect()
            there = (type(o).__name__ for o, _ in reachable(engine) if gc.is_tracked(o))
            sizes.append(Counter(there))
    assert not sizes[1] - sizes[0]
