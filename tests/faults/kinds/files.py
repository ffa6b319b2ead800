"""Files of `dsms load`, from their bytes to the rows that an engine takes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from random import Random
from unittest.mock import patch

import pyarrow as pa

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms_client.files import csvfile, jsonfile
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.pieces import Piece, Reject
from dsms_client.files.source import FileSource
from tests.faults.cases import Fault, judge
from tests.faults.mutate import mutated

COLUMNS = (("k", "STRING"), ("v", "INT"), ("f", "FLOAT"), ("d", "DECIMAL(8,2)"), ("b", "BOOL"),
           ("t", "TIMESTAMP"),
           ("y", "BYTES"), ("i", "INTERVAL"))  # a table  # fmt: skip
LIFE = 20_000
SMALL, MANY = 128, 64  # of the first byte: read in small blocks, too; lines are cases themselves
BLOCK = 80  # bytes of a small block, at least
ROWS = 3  # of a piece: files are read in several
LINES = 64  # of a file in which each is changed for itself
OFTEN = 0.5  # of the files are such


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
        self.judged = 1

    def suffer(self, data: bytes) -> str:
        """The first byte says which ending, whether numbers are instants, and whether the file is
        read in small blocks as well, which must give the same."""
        mode = data[0] if data else 0
        which, unit = divmod(mode % MANY, 2)
        path = self._paths[which % len(self._paths)]
        with open(path, "wb") as file:
            file.write(data[1:])
        end, found = self._read(path, "ms" if unit else None)
        told = sum(piece.batch.num_rows + len(piece.rejects) for piece in found or ())
        self.judged = max(1, min(told, LINES)) if mode & MANY else 1
        if mode >= SMALL:
            block = max(BLOCK, len(data) // 4)
            with ExitStack() as patched:
                for module in (csvfile, jsonfile):
                    patched.enter_context(patch.object(module, "BLOCK", block))
                _, others = self._read(path, "ms" if unit else None)
            if found is not None and others is not None:
                _same(found, others)
            return f"{end}, in blocks"
        return self._taken(found or []) or end

    def _taken(self, pieces: list[Piece]) -> str | None:
        """The code with which an engine refuses them."""
        for piece in pieces:
            if not piece.batch.num_rows:
                continue
            self._now += 1
            self.engine.advance(self._now)
            try:
                self.engine.ingest("s", pa.Table.from_batches([piece.batch]))
            except DsmsError as problem:
                return judge(problem.code, problem.message)
        return None

    def _read(self, path: str, unit: str | None) -> tuple[str, list[Piece] | None]:
        """How it ends, and the pieces, if that is with the file's end."""
        try:
            _, pieces = read(FileSource(path), COLUMNS, {}, Options(unit=unit), ROWS)
            found = list(pieces)
        except DsmsError as problem:
            return judge(problem.code, problem.message), None
        return "some rejected" if any(piece.rejects for piece in found) else "taken", found

    def close(self) -> None:
        self.engine.close()
        for path in self._paths:
            if os.path.exists(path):
                os.remove(path)
        os.rmdir(self._folder)


def each(rng: Random, lines: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Lines of which all but the first are changed, each for itself."""
    others = [mutated(rng, line, (rng.choice(lines),), words) for line in lines[1:]]
    return b"\n".join([lines[0], *others])


def mode(rng: Random, which: int, many: bool) -> int:
    """The first byte of a case for that ending."""
    return 2 * which + rng.randrange(2) + rng.choice((0, 0, 0, SMALL)) + MANY * many


def _same(found: list[Piece], others: list[Piece]) -> None:
    """Rows, lines and rejects don't depend on how the file is cut."""
    for what in (_rows, _rejects):
        if what(found) != what(others):
            raise Fault(f"read whole: {what(found)}; in small blocks: {what(others)}")


def _rows(pieces: list[Piece]) -> list[str]:
    return [
        f"{line}: {row}"
        for piece in pieces
        for line, row in zip(piece.lines.tolist(), piece.batch.to_pylist(), strict=True)
    ]


def _rejects(pieces: list[Piece]) -> list[Reject]:
    return [reject for piece in pieces for reject in piece.rejects]
