"""The experiments of Golab 2006, §3.6: queries, which strategies compete, and what is printed about
them.

`{w}` stands for a window, `{ftp}` and `{telnet}` for the two protocols.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NT, DIRECT, UPA10, UPA50, UPA = "NT", "DIRECT", "UPA(10)", "UPA(50)", "UPA"
NT_UP, NT_DOWN = "NT, negation up", "NT, join up"

OPTIONS = {
    NT: "strategy = nt",
    DIRECT: "strategy = direct",
    UPA10: "strategy = upa, partitions = 10",
    UPA50: "strategy = upa, partitions = 50",
    UPA: "strategy = upa",
    NT_UP: "strategy = nt, negation = up",
    NT_DOWN: "strategy = nt, negation = down",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """`slow` takes `printed` times as long as `fast` (or as much space), in the smallest or largest
    window or the mean of all; `words`: what the text says."""

    slow: str
    fast: str
    where: Literal["all", "large", "small"]
    printed: float
    words: str
    of: Literal["time", "space"] = "time"
    why: str = ""  # should the factor come out smaller


@dataclass(frozen=True, slots=True)
class Case:
    """One query in all windows.  `time`, `space`: numbers of the figures.  `suffix` is added to
    every option list."""

    name: str
    title: str
    sql: str
    links: tuple[int, ...]
    contenders: tuple[str, ...]
    time: str
    claims: tuple[Claim, ...]
    space: str | None = None
    suffix: dict[str, str] | None = None

    def options(self, contender: str) -> str:
        """What its WITH clause holds."""
        return OPTIONS[contender] + (self.suffix or {}).get(contender, "")


HASHED = (
    "NT's state is hashed by key with a table that grows here, so a negative tuple finds its row "
    "in one step; the thesis's hash tables had as many partitions as its calendar queues, 10, and "
    "read a tenth of the state each time. What remains is that every tuple passes the plan twice"
)
LISTED = (
    "the list of results is a dense array here, read at memory speed, and is still short at "
    "these windows"
)
FEW = (
    "the result is so small at this window that what all strategies share (filters, probes) "
    "outweighs its upkeep"
)
SMALL = (
    "what is kept beside the rows themselves (hash table, links, room to grow) weighs more "
    "the smaller the answer is"
)
PLANS = "which plan is better depends on how selective negation and join are in this trace"

ALL = (NT, DIRECT, UPA10, UPA50, UPA)
STORING = ", \"distinct\" = 'input-storing'"  # which the thesis gave NT too (§3.6.3)
JOIN = (
    "SELECT Rstream(*) FROM Link1 {w}, Link2 {w} "
    "WHERE Link1.src = Link2.src AND Link1.protocol = %s AND Link2.protocol = %s"
)
NOT_THERE = "NOT EXISTS (SELECT Rstream(*) FROM Link2 {w} WHERE Link2.src = Link1.src)"

CASES = (
    Case(
        "query1-ftp", "Query 1: join of two links on the source, protocol = ftp",
        JOIN.replace("%s", "{ftp}"),
        (1, 2), ALL, "3.8",
        (
            Claim(NT, UPA10, "large", 2,
                  "as the window size grows, nearly twice as fast as the other two",
                  why=HASHED),
            Claim(DIRECT, UPA10, "large", 2,
                  "as the window size grows, nearly twice as fast as the other two",
                  why=LISTED),
        ),
    ),
    Case(
        "query1-telnet", "Query 1: protocol = telnet, ten times the results",
        JOIN.replace("%s", "{telnet}"),
        (1, 2), ALL, "3.9",
        (
            Claim(NT, UPA50, "large", 10,
                  "up to one order of magnitude faster than NT for large windows", why=HASHED),
            Claim(DIRECT, UPA50, "large", 10, "DIRECT is by far the slowest", why=LISTED),
        ),
    ),
    Case(
        "query2-src", "Query 2: distinct sources", "SELECT Rstream(DISTINCT src) FROM Link1 {w}",
        (1,), ALL, "3.10",
        (
            Claim(NT, UPA10, "large", 10, "one order of magnitude faster than the other two",
                  why=HASHED),
            Claim(DIRECT, UPA10, "large", 10, "one order of magnitude faster than the other two",
                  why=LISTED),
            Claim(NT, UPA10, "large", 100, "up to two orders of magnitude less space", "space",
                  SMALL),
            Claim(DIRECT, UPA10, "large", 100, "up to two orders of magnitude less space", "space",
                  SMALL),
        ),
        "3.12", {NT: STORING},
    ),
    Case(
        "query2-pairs", "Query 2: distinct source-destination pairs",
        "SELECT Rstream(DISTINCT src, dst) FROM Link1 {w}",
        (1,), ALL, "3.11",
        (
            Claim(NT, UPA10, "large", 2, "roughly twice as fast as NT", why=HASHED),
            Claim(DIRECT, UPA10, "large", 2, "DIRECT performs poorly when the result is large",
                  why=LISTED),
            Claim(NT, UPA10, "large", 2, "significantly more space-efficient", "space", SMALL),
            Claim(DIRECT, UPA10, "large", 2, "significantly more space-efficient", "space", SMALL),
        ),
        "3.13", {NT: STORING},
    ),
    Case(
        "query3", "Query 3: negation of two links on the source",
        f"SELECT Rstream(*) FROM Link1 {{w}} WHERE {NOT_THERE}",
        (1, 2), ALL, "3.14",
        (
            Claim(NT, UPA10, "small", 1.1,
                  "UPA slightly outperforms NT up to about 500 KB of window", why=FEW),
            Claim(NT, UPA10, "large", 0.9,
                  "beyond, UPA is slower than NT (here it need not be: the identity index finds "
                  "a row that dies early at once, where the thesis searched the calendar queue)"),
        ),
    ),
    Case(
        "query4", "Query 4: negation of two links, joined with a third, protocol = ftp",
        "SELECT Rstream(*) FROM Link1 {w}, Link3 {w} WHERE Link1.src = Link3.src AND "
        f"Link1.protocol = {{ftp}} AND Link3.protocol = {{ftp}} AND {NOT_THERE}",
        (1, 2, 3), (NT_UP, NT_DOWN, UPA10, UPA50, UPA), "3.15",
        (
            Claim(NT_UP, UPA10, "large", 1.2, "UPA performs best for sufficiently large windows",
                  why=HASHED),
            Claim(NT_DOWN, UPA10, "large", 1.1, "UPA performs best for sufficiently large windows",
                  why=PLANS),
            Claim(NT_UP, NT_DOWN, "all", 1.1, "NT (join up) outperforms NT", why=PLANS),
        ),
        suffix=dict.fromkeys((UPA10, UPA50, UPA), ", negation = up"),
    ),
)  # a table  # fmt: skip
