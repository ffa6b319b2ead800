"""How long the engine's thread is held: a server under all kinds of statements and loads.

python -m tests.faults slices [--rows N] [--only TEXT]     prints a table, the worst first

Each scenario has a server of its own; what makes it ready is measured as `setup`.
"""

from __future__ import annotations

import argparse
import gc
import logging
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.engine import Engine
from dsms.settings import Settings
from dsms.warmup import warm
from dsms_client.protocol import pack
from tests.server.harness import Peer, Running
from tests.slices import Slices, collected, table

STREAM = """CREATE STREAM s (k INT, v FLOAT, name STRING, t TIMESTAMP) TIMESTAMP BY t
RETAIN 10 days;"""
FRAME = 100_000


@dataclass(slots=True)
class World:
    """What a scenario may use: a connection, how many rows are many, and a name for what comes."""

    peer: Peer
    rows: int
    slices: Slices
    name: str
    sent: int = 0

    def now(self, what: str = "run") -> None:
        self.slices.phase = f"{self.name}/{what}"

    def ask(self, sql: str) -> dict:
        reply = self.peer.ask("execute", sql=sql)
        if not reply.get("ok"):
            print(f"  {self.name}: {str(reply['error'])[:300]}", flush=True)
        return reply

    def frame(self, n: int, stream: str = "s", step: int = 100) -> None:
        at = np.arange(self.sent, self.sent + n)
        self.sent += n
        batch = pa.record_batch(
            {
                "k": at * 7919 % 100_003,
                "v": at * 0.5,
                "name": pa.array([f"name {i % 5000}" for i in range(n)]),
                "t": at * step,
            }
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        reply = self.peer.ask("ingest", stream=stream, arrow=sink.getvalue().to_pybytes())
        assert reply["ok"], reply

    def fill(self) -> None:
        """Many rows, kept."""
        for _ in range(0, self.rows, FRAME):
            self.frame(min(FRAME, self.rows))
        self.peer.ask("heartbeat", stream="s", ts=self.sent * 100)


def filled(w: World) -> None:
    w.ask(STREAM)
    w.fill()


def insert_select(w: World) -> None:
    filled(w)
    w.ask("CREATE TABLE d (id INT PRIMARY KEY, name STRING)")
    w.now()
    w.ask("INSERT INTO d SELECT CAST(v * 2 AS INT) AS id, name FROM s [RANGE 10 days]")


def insert_values(w: World) -> None:
    w.ask("CREATE TABLE d (id INT PRIMARY KEY, name STRING)")
    values = ", ".join(f"({i}, 'name {i}')" for i in range(w.rows // 25))
    w.now()
    w.ask(f"INSERT INTO d VALUES {values}")


def with_table(w: World) -> None:
    filled(w)
    w.ask("CREATE TABLE d (id INT PRIMARY KEY, name STRING)")
    w.ask("INSERT INTO d SELECT CAST(v * 2 AS INT) AS id, name FROM s [RANGE 10 days]")


def update(w: World) -> None:
    with_table(w)
    w.now()
    w.ask("UPDATE d SET name = name || 'x' WHERE id % 2 = 0")


def delete(w: World) -> None:
    with_table(w)
    w.now()
    w.ask("DELETE FROM d WHERE id % 2 = 0")


def drop_table(w: World) -> None:
    with_table(w)
    w.now()
    w.ask("DROP TABLE d")


def drop_stream(w: World) -> None:
    filled(w)
    w.now()
    w.ask("DROP STREAM s")


def drop_query(w: World) -> None:
    filled(w)
    w.ask("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 days] GROUP BY k")
    w.now()
    w.ask("DROP QUERY q")


def query_of_history(select: str) -> Callable[[World], None]:
    def run(w: World) -> None:
        filled(w)
        w.now()
        w.ask(f"CREATE QUERY q AS {select}")
        w.now("next")
        w.frame(1000)

    return run


def set_clock(w: World) -> None:
    filled(w)
    w.ask("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 days] GROUP BY k")
    w.peer.ask("heartbeat", stream="s", ts=w.sent * 100 + 60_000_000)
    w.now()
    w.ask("ALTER STREAM s SET CLOCK TO TIMESTAMP '1970-01-01 00:02:00'")


def add_column(w: World) -> None:
    w.ask(STREAM.replace(";", " SUBWINDOW 1 s;"))
    w.fill()
    w.now()
    w.ask("ALTER STREAM s ADD COLUMN z STRING DEFAULT 'none'")


def replaced(w: World) -> None:
    """A view of as many groups as there are rows becomes another one."""
    filled(w)
    q = f"QUERY q AS SELECT CAST(v * 2 AS INT) AS i, COUNT(*)%s AS n FROM s {R} GROUP BY i"
    w.ask("CREATE " + q % "")
    w.now()
    w.ask("CREATE OR REPLACE " + q % " + 1")


def select(sql: str) -> Callable[[World], None]:
    def run(w: World) -> None:
        filled(w)
        w.now()
        w.ask(sql)

    return run


def planned(sql: str) -> Callable[[World], None]:
    def run(w: World) -> None:
        w.ask(STREAM)
        w.ask("CREATE TABLE d (id INT PRIMARY KEY, name STRING)")
        w.now()
        w.ask(sql)

    return run


TERMS = " + ".join(
    f"({x})" for x in (" + ".join(f"v * {i}" for i in range(k, k + 60)) for k in range(60))
)
OR = " OR ".join(f"(k = {i} AND v < {i}.5)" for i in range(2000))
IN = ", ".join(str(i) for i in range(20_000))
DEEP = "v" + "".join(f" + ({i} * v" for i in range(60)) + ")" * 60
JOINS = "SELECT " + ", ".join(f"a{i}.v AS v{i}" for i in range(12)) + " FROM " + ", ".join(
    f"s [RANGE 1 min] AS a{i}" for i in range(12)) + " WHERE " + " AND ".join(
    f"a{i}.k = a{i + 1}.k" for i in range(11))  # fmt: skip  # one text
COLUMNS = ", ".join(f"v * {i} AS c{i}" for i in range(1000))
UNION = " UNION ALL ".join(f"SELECT k, v * {i} AS v FROM s [RANGE 1 min]" for i in range(100))
CASES = "CASE " + " ".join(f"WHEN k = {i} THEN {i}" for i in range(2000)) + " END"
BIG = {
    "terms": f"SELECT {TERMS} AS x FROM s [RANGE 1 min]",
    "or": f"SELECT k FROM s [RANGE 1 min] WHERE {OR}",
    "in": f"SELECT k FROM s [RANGE 1 min] WHERE k IN ({IN})",
    "deep": f"SELECT {DEEP} AS x FROM s [RANGE 1 min]",
    "joins": JOINS,
    "columns": f"SELECT {COLUMNS} FROM s [RANGE 1 min]",
    "union": UNION,
    "case": f"SELECT {CASES} AS x FROM s [RANGE 1 min]",
}


def many_queries(w: World) -> None:
    w.ask(STREAM)
    for i in range(1000):
        kind = i % 4
        sql = (
            f"SELECT k, v FROM s WHERE k = {i}",
            f"SELECT k, COUNT(*) AS n FROM s [RANGE {i + 1} min] GROUP BY k",
            f"SELECT MAX(v) AS m FROM s [RANGE {i + 1} s] WHERE k > {i}",
            f"SELECT k, SUM(v) AS n FROM s [RANGE {i + 1} s SLIDE 1 s] GROUP BY k",
        )[kind]
        w.ask(f"CREATE QUERY q{i} AS {sql}")
    w.now("ingest")
    w.frame(FRAME // 10, step=1000)
    w.now("show")
    for what in ("QUERIES", "STREAMS", "SHARING", "MEMORY", "FUNCTIONS", "SESSIONS"):
        w.ask(f"SHOW {what}")
    w.now("names")
    w.peer.ask("execute", sql="DESCRIBE s")
    w.now("drop")
    for i in range(0, 1000, 50):
        w.ask(f"DROP QUERY q{i}")


def frames(w: World) -> None:
    w.ask(STREAM)
    w.ask("CREATE QUERY g AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 1 min] GROUP BY k")
    w.ask("CREATE QUERY j AS SELECT a.k FROM s [RANGE 1 s] AS a, s [RANGE 1 s] AS b "
          "WHERE a.k = b.k AND a.v < b.v")  # fmt: skip  # one text
    w.ask("CREATE QUERY d AS SELECT DISTINCT name FROM s [RANGE 1 min]")
    w.ask("CREATE QUERY p AS SELECT k, MEDIAN(v) AS m FROM s [RANGE 1 min SLIDE 1 s] GROUP BY k")
    w.now()
    w.fill()


def late(w: World) -> None:
    """A heartbeat that answers many boundaries at once."""
    w.ask(STREAM)
    w.ask("CREATE QUERY p AS SELECT k, MEDIAN(v) AS m FROM s [RANGE 1 min SLIDE 1 s] GROUP BY k")
    w.ask("CREATE QUERY t AS SELECT TOPK(name, 10) AS m FROM s [RANGE 1 min SLIDE 1 s]")
    for _ in range(3):
        w.frame(FRAME)
    w.now()
    w.peer.ask("heartbeat", stream="s", ts=w.sent * 100 + 600_000_000)


def checkpoints(w: World) -> None:
    """Rows enough for checkpoints while queries hold much state."""
    w.ask(STREAM)
    w.ask("CREATE QUERY g AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 10 days] "
          "GROUP BY k")  # fmt: skip  # one text
    w.ask("CREATE QUERY j AS SELECT a.k, b.v FROM s [RANGE 10 s] AS a, s [RANGE 10 s] AS b "
          "WHERE a.k = b.k")  # fmt: skip  # one text
    w.ask("CREATE QUERY n AS SELECT name, MEDIAN(v) AS m FROM s [RANGE 10 days] GROUP BY name")
    w.now()
    w.fill()
    w.fill()


def subscriber(w: World) -> None:
    filled(w)
    w.ask("CREATE QUERY q AS SELECT k, v, name FROM s [RANGE 10 days]")
    w.now()
    w.peer.ask("subscribe", query="q")
    w.frame(1000)


def values(w: World) -> None:
    """Rows as lists."""
    w.ask(STREAM)
    w.now()
    rows = [[i, i * 0.5, f"n{i}", i] for i in range(FRAME)]
    w.peer.raw(pack({"op": "ingest", "id": -1, "stream": "s", "rows": rows}))
    w.peer.reply(-1)


def explain(w: World) -> None:
    filled(w)
    w.now("plain")
    w.ask(f"EXPLAIN {BIG['joins']}")
    w.now("analyze")
    w.ask("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 days] GROUP BY k")
    w.ask("EXPLAIN ANALYZE q")


def replayed(w: World) -> None:
    """Small steps, as `dsms replay` sends them."""
    w.ask(STREAM)
    w.ask("CREATE QUERY g AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 min] GROUP BY k")
    w.now()
    for _ in range(300):
        w.frame(200, step=1000)
        w.peer.ask("heartbeat", stream="s", ts=w.sent * 1000 - 1)


def rights(w: World) -> None:
    w.ask(STREAM)
    w.now()
    w.ask("CREATE ROLE r")
    for i in range(200):
        w.ask(f"CREATE USER u{i} PASSWORD 'long enough {i}'")
        w.ask(f"GRANT SELECT ON s TO u{i}")
    w.ask("SHOW GRANTS")
    w.ask("SHOW USERS")


R = "[RANGE 10 days]"
SCENARIOS: dict[str, tuple[Callable[[World], None], bool]] = {  # what, whether it has a folder
    "insert select": (insert_select, True),
    "insert values": (insert_values, True),
    "update": (update, True),
    "delete": (delete, True),
    "drop table": (drop_table, True),
    "drop stream": (drop_stream, True),
    "drop query": (drop_query, True),
    "set clock": (set_clock, True),
    "add column": (add_column, True),
    "replaced": (replaced, True),
    "checkpoints": (checkpoints, True),
    "frames": (frames, True),
    "values": (values, False),
    "late": (late, False),
    "many queries": (many_queries, True),
    "subscribe": (subscriber, False),
    "explain": (explain, False),
    "replay": (replayed, True),
    "rights": (rights, True),
    **{
        f"history {name}": (query_of_history(sql), True)
        for name, sql in {
            "group": f"SELECT k, COUNT(*) AS n FROM s {R} GROUP BY k",
            "rows": f"SELECT k, v, name FROM s {R} WHERE v > 10",
            "distinct": f"SELECT DISTINCT name, k FROM s {R}",
            "join": f"SELECT a.k FROM s {R} AS a, s [RANGE 1 s] AS b WHERE a.k = b.k",
            "median": f"SELECT name, MEDIAN(v) AS m FROM s {R} GROUP BY name",
            "topk": f"SELECT k, TOPK(v, 10) AS m FROM s {R} GROUP BY k",
            "periodic": "SELECT k, SUM(v) AS n FROM s [RANGE 10 days SLIDE 1 s] GROUP BY k",
            "quantile": "SELECT MEDIAN(v) AS n FROM s [RANGE 10 days SLIDE 10 s] GROUP BY k",
            "count": "SELECT MAX(v) AS n FROM s [ROWS 500000]",
            "scan": "SELECT a.k, b.v FROM s [RANGE 10 days SLIDE 10 s] AS a, s [RANGE 1 s] AS b "
            "WHERE a.k = b.k",
        }.items()
    },
    **{
        f"select {name}": (select(sql), False)
        for name, sql in {
            "all": f"SELECT * FROM s {R}",
            "group": f"SELECT k, COUNT(*) AS n FROM s {R} GROUP BY k",
            "topk": f"SELECT TOPK(name || CAST(v AS STRING), 10) AS x FROM s {R}",
            "sort": f"SELECT k, v FROM s {R} ORDER BY name, v",
            "distinct": f"SELECT COUNT(DISTINCT name || CAST(v AS STRING)) AS n FROM s {R}",
            "regexp": f"SELECT COUNT(*) AS n FROM s {R} WHERE regexp_matches(name, '(n.*)+1$')",
            "join": f"SELECT COUNT(*) AS n FROM s {R} AS a, s {R} AS b WHERE a.k = b.k AND "
            "a.v < b.v",
        }.items()
    },
    **{f"plan {name}": (planned(sql), False) for name, sql in BIG.items()},
    **{
        f"create {name}": (planned(f"CREATE QUERY q AS {sql}"), True) for name, sql in BIG.items()
    },
}  # fmt: skip  # a table


def played(name: str, rows: int, slices: Slices) -> None:
    run, stored = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as folder:
        slices.phase = f"{name}/setup"
        engine = Engine(
            data=folder if stored else None,
            settings=Settings(deferred=True, group_commit=True, checkpoint_bytes=16 << 20),
        )
        running = Running(engine, max_slice_ms=20, max_frame=256 << 20, memory=0)
        peer = running.peer()
        peer.socket.settimeout(600)
        try:
            assert peer.ask("hello", version=1, data="arrow")["ok"]
            run(World(peer, rows, slices, name))
        finally:
            slices.phase = "stop"
            peer.socket.close()
            with suppress(TimeoutError):
                running.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="scenarios whose name has this")
    args = parser.parse_args()
    logging.getLogger("dsms.server").setLevel(logging.ERROR)  # the table says it
    warm()
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)  # as a server does
    with collected() as slices:
        for name in SCENARIOS:
            if args.only in name:
                print(name, flush=True)
                try:
                    played(name, args.rows, slices)
                except Exception as problem:
                    print(f"  {problem!r}", flush=True)
    slices.groups = {k: g for k, g in slices.groups.items() if not k.startswith("stop")}
    print(table(slices.groups))
    return 0
