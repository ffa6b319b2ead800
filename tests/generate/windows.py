"""Random windows as text: what stands in brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.generate.draws import Draws

Kinds = Literal["any", "time", "small"]  # see `tests.generate.queries.Queries`
EPISODES = (
    "SESSION 2 SECONDS BY k",
    "SESSION 3 SECONDS",
    "WHEN k > 0 UNTIL k = 0",
    "WHEN k > 1 UNTIL k < 1 BY k",
)


@dataclass(frozen=True, slots=True)
class Mode:
    """How a block's windows are: external | internal | mixed (one time window external, the others
    INTERNAL) | wstream (written as external, but the block appends)."""

    kind: str = "external"

    @property
    def plain(self) -> bool:
        return self.kind == "external"


def window(d: Draws, windows: Kinds, mode: Mode) -> str:
    """What stands in brackets; may be empty."""
    n = d.number(1, 12)
    if windows == "time":
        return d.pick(
            (
                f"RANGE {n} SECONDS",
                f"RANGE {n + 2} SECONDS UNTIL 1 SECONDS AGO",
                "NOW",
                f"PARTITION BY k ROWS 2 RANGE {n} SECONDS",
                f"PARTITION BY k EVERY {n} SECONDS",
                "PARTITION BY k FIRST 2",
            )
        )
    if windows == "small":
        ago = ("RANGE 2 SECONDS UNTIL 1 SECONDS AGO", "ROWS 4 UNTIL 1 AGO")
        short = (
            "ROWS 3",
            "PARTITION BY k ROWS 2",
            "PARTITION BY k ROWS 2 RANGE 3 s",
            "NOW",
            *ago,
        )
        return d.pick((f"RANGE {n % 4 + 1} SECONDS", *(short if mode.kind != "mixed" else ())))
    if mode.kind == "mixed" or d.chance(50):
        return f"RANGE {n} SECONDS"
    if mode.plain and d.chance(15):
        return d.pick(EPISODES)
    rows = d.number(1, 4)
    return d.pick(
        (
            f"ROWS {rows}",
            f"PARTITION BY k ROWS {rows}",
            f"RANGE {n + 2} SECONDS UNTIL {d.number(1, 2)} SECONDS AGO",
            "NOW",
            f"ROWS {rows + 1} UNTIL {d.number(1, rows)} AGO",
            "RANGE UNBOUNDED",
            f"RANGE UNBOUNDED UNTIL {d.number(1, 3)} SECONDS AGO",
            f"SINCE {n}s",
            f"SINCE {n}s UNTIL 2 SECONDS AGO",
            "",
            f"PARTITION BY k ROWS {rows + 1} UNTIL 1 AGO",
            f"PARTITION BY k ROWS {rows} RANGE {n} SECONDS",
            f"PARTITION BY k ROWS {rows + 1} UNTIL 1 AGO RANGE {n} SECONDS",
            f"PARTITION BY k EVERY {n} SECONDS",
            f"PARTITION BY k FIRST {rows}",
            f"PARTITION BY k EVERY {n + 1} SECONDS UNTIL 1 SECONDS AGO",
        )
    )


def over_keys(d: Draws, windows: Kinds) -> str:
    """A window that a stream with KEY may have."""
    n = d.number(1, 12)
    return d.pick(
        (
            "",
            f"RANGE {n} SECONDS",
            f"RANGE {n + 2} SECONDS UNTIL 1 SECONDS AGO",
            "NOW",
            *(() if windows == "time" else (f"SINCE {n}s", "RANGE UNBOUNDED")),
            "" if windows == "time" else "RANGE UNBOUNDED UNTIL 2 SECONDS AGO",
        )
    )


def lasting(d: Draws) -> str:
    """A window whose rows say how long they are in it."""
    length = d.pick(
        (
            "x * INTERVAL '1' SECOND",
            "CASE WHEN k = 1 THEN INTERVAL '7' SECOND ELSE x * INTERVAL '2' SECOND END",
            "INTERVAL '5' SECOND / k",
        )
    )
    return f"RANGE ({length}){d.pick(('', '', ' UNTIL 1 SECONDS AGO'))}"
