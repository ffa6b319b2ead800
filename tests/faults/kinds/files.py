"""Files of `dsms load`, from their bytes to the rows that an engine takes."""

from __future__ import annotations

import os
import tempfile

import pyarrow as pa

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms_client.files.open import read
from dsms_client.files.source import FileSource
from tests.faults.cases import judge

COLUMNS = (("k", "STRING"), ("v", "INT"), ("f", "FLOAT"), ("d", "DECIMAL(8,2)"), ("b", "BOOL"),
           ("t", "TIMESTAMP"),
           ("y", "BYTES"), ("i", "INTERVAL"))  # a table  # fmt: skip
LIFE = 20_000
ROWS = 3  # of a piece: files are read in several


class Victim:
    """A stream of all types, with a query, and a folder in memory for files with these endings."""

    def __init__(self, *endings: str) -> None:
        self._folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self._paths = [os.path.join(self._folder, f"f.{ending}") for ending in endings]
        self.engine = Engine()
        self.engine.execute(f"CREATE STREAM s ({', '.join(f'{n} {t}' for n, t in COLUMNS)})")
        self.engine.execute(
            "CREATE QUERY q AS SELECT k, COUNT(*), SUM(v) FROM s [ROWS 5] GROUP BY k"
        )
        self._now = 0

    def suffer(self, data: bytes) -> str:
        """The first byte says which ending, and whether numbers are instants."""
        which, unit = divmod(data[0] if data else 0, 2)
        path = self._paths[which % len(self._paths)]
        with open(path, "wb") as file:
            file.write(data[1:])
        try:
            return self._loaded(path, "ms" if unit else None)
        except DsmsError as problem:
            return judge(problem.code, problem.message)

    def _loaded(self, path: str, unit: str | None) -> str:
        _, pieces = read(FileSource(path), COLUMNS, {}, rows=ROWS, unit=unit)
        rejected = 0
        for piece in pieces:
            rejected += len(piece.rejects)
            if piece.batch.num_rows:
                self._now += 1
                self.engine.advance(self._now)
                self.engine.ingest("s", pa.Table.from_batches([piece.batch]))
        return "some rejected" if rejected else "taken"

    def close(self) -> None:
        self.engine.close()
        for path in self._paths:
            if os.path.exists(path):
                os.remove(path)
        os.rmdir(self._folder)
