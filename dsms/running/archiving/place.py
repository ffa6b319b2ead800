"""Where rows land: the landing folder of an archive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dsms.sql.types import ALWAYS


@dataclass
class Layout:
    every: int

    def start(self, x: int) -> int:
        return x // self.every * self.every


@dataclass(frozen=True, slots=True)
class Index:
    upto: int
    rows: int
    nbytes: int
    layout: str
    landed: int


@dataclass
class Place:
    url: str
    layout: Layout
    upto: int = ALWAYS
    n: int = 0
    applied: int = ALWAYS

    def land(self, table: pa.Table | None, upto: int) -> None:
        assert upto > self.upto
        folder = Path(self.url) / "landing"
        folder.mkdir(parents=True, exist_ok=True)
        if table is not None:
            self.n += 1
            written = folder / f"{self.n:012d}.tmp"
            pq.write_table(table, written)
            written.replace(written.with_suffix(".parquet"))
        noted = folder / "upto.tmp"
        noted.write_text(f"{upto} {self.layout.every} {self.n}")
        noted.replace(folder / "upto")
        self.upto = upto

    def index(self) -> Index:
        return Index(self.applied, 0, 0, "none yet", self.n)


def open_place(url: str, every: int | None) -> Place:
    p = Path(url) / "landing" / "upto"
    if p.exists():
        u, e, n = map(int, p.read_text().split())
        return Place(url, Layout(e), u, n)
    return Place(url, Layout(every or 3_600_000_000))


def reopen_place(url: str) -> Place:
    return open_place(url, None)
