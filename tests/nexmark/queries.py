"""The statements of `tests/golden/nexmark`, and the definitions beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "nexmark"
NAMES = tuple(
    sorted((p.stem for p in GOLDEN.glob("q*.cql")), key=lambda name: int(name.removeprefix("q")))
)
DECLARE = (GOLDEN / "declare.cql").read_text(encoding="utf-8")
# Whose rows come and go; of others the definition's last column is the instant at which a row is
# told, for good.
VIEWS = frozenset(("q4", "q6", "q9", "q15", "q16", "q17", "q18", "q19"))
SIDE = 3000  # rows of the table that bids are joined with, of 10,000 keys


def statement(name: str) -> str:
    """The query's file: what it answers, as a comment, and one CREATE QUERY."""
    return (GOLDEN / f"{name}.cql").read_text(encoding="utf-8")


def definition(name: str) -> str:
    """What it must answer, in DuckDB's SQL over the tables `person`, `auction`, `bid`,
    `arrived_bid` (with `arrived`, its stamp) and `side_input`; `n` numbers bids as they arrived."""
    return (GOLDEN / f"{name}.sql").read_text(encoding="utf-8")


def side_input() -> pa.Table:
    """The rows of the table: each third key of those that auctions begin with."""
    keys = 1000 + 3 * np.arange(SIDE)
    return pa.table({"key": keys, "value": [f"side {key}" for key in keys]})
