"""The statements of the demo, from files that `dsms shell -f` runs too: blocks of a remark and what
it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Block:
    """A remark in English and the statements that follow it."""

    remark: str
    sql: str

    @property
    def name(self) -> str:
        """Of what the (first) statement creates: the word behind CREATE STREAM, TABLE or QUERY."""
        return self.sql.split()[2]

    @property
    def names(self) -> list[str]:
        """Of all that its statements create and that answers by itself (not ON LOOKUP)."""
        statements = [s for s in self.sql.split(";") if s.strip() and "ON LOOKUP" not in s]
        return [re.split(r"\s+", s.strip())[2] for s in statements]

    @property
    def select(self) -> str:
        """The SELECT of a CREATE QUERY, without its semicolon."""
        return self.sql.split(" AS\n", 1)[1].rstrip().rstrip(";")


def blocks(name: str) -> list[Block]:
    """The blocks of `name`.cql, which are separated by blank lines."""
    found = []
    for part in (HERE / f"{name}.cql").read_text(encoding="utf-8").strip().split("\n\n"):
        lines = part.splitlines()
        remark = " ".join(
            line.removeprefix("--").strip() for line in lines if line.startswith("--")
        )
        found.append(Block(remark, "\n".join(line for line in lines if not line.startswith("--"))))
    return found
