"""Three logs or more of one host, or of one connection, put together while they are written.

    python -m examples.zeek [--seconds N] [--rate N]

Each query runs twice: as a tree of joins of two, which keeps the results of the lower ones, and in
one operator (`WITH (joins = pipeline)`), which keeps the rows alone.  Both must say the same; what
they hold is shown side by side, and which of them the planner takes.  Exit code 0 only if no answer
differed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dsms
from examples.zeek.logs import BEGIN, SECOND, Logs, synthetic

HERE = Path(__file__).parent
STEP = 5 * SECOND
FORMS = ("tree", "pipeline")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
HELD = re.compile(r"Join .* state (\d+) rows ([\d.]+) (\w+)")


@dataclass(slots=True)
class Held:
    """What the joins of a query held at most."""

    rows: int = 0
    bytes: float = 0

    def see(self, engine: dsms.Engine, query: str) -> None:
        lines = engine.execute(f"EXPLAIN ANALYZE QUERY {query}")[0].data["plan"].to_pylist()
        found = [HELD.search(line) for line in lines]
        rows = sum(int(m[1]) for m in found if m)
        self.rows = max(self.rows, rows)
        self.bytes = max(self.bytes, sum(float(m[2]) * UNITS[m[3]] for m in found if m))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.zeek", description=str(__doc__).splitlines()[0]
    )
    parser.add_argument("--seconds", type=int, default=90, help="length (default 90)")
    parser.add_argument("--rate", type=int, default=60, help="connections a second (default 60)")
    options = parser.parse_args(argv)
    return run(synthetic(options.seconds, options.rate), print)


def run(logs: Logs, say: Callable[[str], None]) -> int:
    """Play the logs; how many queries had different answers."""
    engine = dsms.Engine()
    engine.execute((HERE / "declare.cql").read_text("utf-8"))
    queries, held = _register(engine), dict[str, Held]()
    end = max(int(log["ts"][-1].as_py()) for log in logs.values() if len(log))
    for low in range(BEGIN, end + STEP, STEP):
        _hand_in(engine, logs, low, low + STEP)
        if low == BEGIN + 2 * STEP:  # now it is known how many rows come, and of which values
            for name, text in queries.items():
                engine.execute(text.replace(f"QUERY {name}", f"QUERY {name}_auto", 1))
        for name in queries:
            for form in FORMS:
                held.setdefault(f"{name}_{form}", Held()).see(engine, f"{name}_{form}")
    wrong = 0
    say(f"{'query':15}{'answers':>10}{'tree holds':>26}{'pipeline holds':>26}   taken")
    for name in queries:
        tree, pipe = (_answers(engine, f"{name}_{form}") for form in FORMS)
        wrong += tree != pipe
        cells = (f"{h.rows:,} rows {h.bytes / 1024:,.0f} KiB" for h in
                 (held[f"{name}_{form}"] for form in FORMS))  # a row  # fmt: skip
        shown = "".join(f"{cell:>26}" for cell in cells)
        say(f"{name:15}{len(tree):>10,}{shown}   {_taken(engine, name)}")
    say("the logs correlated alike in both forms" if not wrong else f"{wrong} answers DIFFER")
    engine.close()
    return wrong


def _register(engine: dsms.Engine) -> dict[str, str]:
    """Each query in both forms; their texts by name."""
    texts = [t.strip() for t in (HERE / "queries.cql").read_text("utf-8").split(";") if t.strip()]
    found = {re.search(r"CREATE QUERY (\w+)", t)[1]: t for t in texts}  # type: ignore[index]
    for name, text in found.items():
        for form in FORMS:
            made = text.replace(f"QUERY {name}", f"QUERY {name}_{form}", 1)
            engine.execute(f"{made} WITH (joins = {form}, result_log = 10000000)")
    return found


def _hand_in(engine: dsms.Engine, logs: Logs, low: int, high: int) -> None:
    for name, log in logs.items():
        ts = log["ts"].to_numpy()
        first, last = ts.searchsorted([low, high])
        if first < last:
            engine.ingest(name, log[first:last])
        engine.heartbeat(name, high - 1)


def _answers(engine: dsms.Engine, query: str) -> list[tuple[object, ...]]:
    """All that the query has told, in order, each row with its instant."""
    out: list[tuple[object, ...]] = []
    for push in engine.subscribe(query, 0).take():
        if push.data is not None:
            ats = [push.at] * len(push.data) if push.ats is None else push.ats.to_pylist()
            rows = zip(ats, push.data.to_pylist(), strict=True)
            out += [(push.kind, at, *row.values()) for at, row in rows]
    return out


def _taken(engine: dsms.Engine, name: str) -> str:
    """Which form the planner takes, now that it knows the logs."""
    lines = engine.execute(f"EXPLAIN QUERY {name}_auto")[0].data["plan"].to_pylist()
    return "pipeline" if any("MultiJoin" in line for line in lines) else "tree"


if __name__ == "__main__":
    sys.exit(main())
