"""What the queries must answer, by DuckDB, and whether they have told that."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa

from tests.nexmark.events import Events
from tests.nexmark.play import STREAMS
from tests.nexmark.queries import VIEWS, definition, side_input

INSTANT = "make_timestamp"  # of µs


class Truth:
    """Definitions over events, as of any instant.

    arrived  when each bid came by the clock of the system, µs (`Played`); none: nobody asks"""

    def __init__(self, events: Events, arrived: Sequence[int] | np.ndarray = ()) -> None:
        self.con = duckdb.connect()
        self.con.execute("SET threads = 1; SET TimeZone = 'UTC'")
        for name in STREAMS:
            table = pa.Table.from_batches([events.rows[name]])
            numbers = pa.array(np.arange(table.num_rows))
            self.con.register(f"all_{name}", table.append_column("n", numbers))
        if len(arrived):
            bids = pa.Table.from_batches([events.rows["bid"]])
            stamps = pa.array(arrived).cast(pa.timestamp("us"))
            self.con.register("arrived_bid", bids.append_column("arrived", stamps))
        self.con.register("side_input", side_input())
        self.instants = np.unique(
            np.concatenate(
                [events.rows[s].column("date_time").cast(pa.int64()).to_numpy() for s in STREAMS]
            )
        )

    def until(self, instant: int | None) -> None:
        """Let there be the events up to then, µs; None: all."""
        where = "" if instant is None else f"WHERE date_time <= {INSTANT}({instant})"
        hidden = {"person": "EXCLUDE (n)", "auction": "EXCLUDE (n)", "bid": ""}
        for name in STREAMS:
            self.con.execute(
                f"CREATE OR REPLACE VIEW {name} AS SELECT * {hidden[name]} FROM all_{name} {where}"
            )

    def some_instants(self, count: int) -> list[int]:
        """So many, evenly spread, the last one among them."""
        places = np.linspace(0, len(self.instants) - 1, count + 1).astype(int)[1:]
        return [int(t) for t in self.instants[places]]

    def complaints(self, name: str, told: pa.Table, instants: Sequence[int]) -> list[str]:
        """What is wrong with what a query has told: of a view at these instants, else of each row
        and when it was told."""
        if name not in VIEWS:
            self.until(None)
            return self._unlike(name, told, None)
        found = []
        for instant in instants:
            self.until(instant)
            found += self._unlike(name, told, instant)
        return found

    def _unlike(self, name: str, told: pa.Table, instant: int | None) -> list[str]:
        """Rows that are there too often or not often enough."""
        columns = [f"c{k}" for k in range(told.num_columns - 2)]
        self.con.register("raw", told.rename_columns([*columns, "sign", "instant"]))
        given = ", ".join(columns)
        if name not in VIEWS:
            given = f"{given}, instant"
        upto = "" if instant is None else f"WHERE instant <= {INSTANT}({instant})"
        sign = "CASE sign WHEN -1 THEN -1 ELSE 1 END"
        names = ", ".join(f"d{k}" for k in range(given.count(",") + 1))
        off = self.con.execute(
            f"WITH got AS (SELECT {given}, sum({sign}) AS times FROM raw {upto} GROUP BY {given}), "
            f"wanted({names}) AS ({definition(name)}), "
            f"both_({names}, times) AS (SELECT * FROM got UNION ALL "
            f"SELECT *, -count(*) FROM wanted GROUP BY ALL) "
            f"SELECT {names}, sum(times) AS more FROM both_ GROUP BY {names} HAVING more <> 0 "
            "ORDER BY ALL"
        ).fetchmany(4)
        when = "" if instant is None else f" as of {instant}"
        return [f"{name}{when}: {row[:-1]} is there {row[-1]:+d} times too often" for row in off]

    def count(self, name: str) -> int:
        """How many rows a query must have told, or have in its answer in the end."""
        self.until(None)
        found = self.con.execute(f"SELECT count(*) FROM ({definition(name)})").fetchone()
        return found[0] if found else 0
