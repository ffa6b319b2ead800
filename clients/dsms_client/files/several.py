"""Several files as one: each after the other, or merged by time; and a file that grows.

Lines of several files are told apart by their number: `place` is the file's number times PER_FILE
plus the line.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.pieces import Column, Mapping, Piece, Pieces
from dsms_client.files.source import POLL, STDIN, FileSource

PER_FILE = 1 << 40


def expand(patterns: Sequence[str]) -> list[str]:
    """The files that are meant: patterns with ``*``, ``?`` or ``[`` stand for all that fit, by
    name.  Raises DS530 if none does."""
    found: list[str] = []
    for pattern in patterns:
        if pattern == STDIN or os.path.lexists(pattern) or not glob.has_magic(pattern):
            found.append(pattern)
            continue
        fitting = sorted(p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p))
        if not fitting:
            raise UsageError("DS530", f"no file is called like {pattern}")
        found += fitting
    if found.count(STDIN) > 1:
        raise UsageError("DS530", "standard input is read once")
    return found


@dataclass(frozen=True, slots=True)
class Files:
    """What is read: each file with these options.  `opened` is told of each, and how its columns
    match; `follow`: wait for more of the last one until `stop` is set."""

    paths: tuple[str, ...]
    columns: tuple[Column, ...]
    renamed: dict[str, str]
    options: Options
    rows: int
    opened: Callable[[int, FileSource, Mapping], None]
    changed: Callable[[str], None]
    follow: threading.Event | None = None
    first: int = 0  # number of the first file


def in_turn(files: Files) -> Pieces:
    """Each file after the other."""
    for number, path in enumerate(files.paths):
        last = number == len(files.paths) - 1
        if last and files.follow is not None:
            yield from _followed(files, number, path, files.follow)
        else:
            yield from _placed(files, number, FileSource(path, files.options))


def _placed(files: Files, number: int, source: FileSource) -> Pieces:
    mapping, pieces = read(source, files.columns, files.renamed, rows=files.rows)
    number += files.first
    files.opened(number, source, mapping)
    for piece in pieces:
        if number:
            piece.lines = piece.lines + number * PER_FILE
            piece.rejects = [replace(r, line=r.line + number * PER_FILE) for r in piece.rejects]
        yield piece
    if source.has_changed():
        files.changed(f"{source.name} has changed while it was read")


def _followed(files: Files, number: int, path: str, stop: threading.Event) -> Pieces:
    """A file, what is appended to it, and the ones that take its place when it is rotated."""
    while not stop.is_set():
        if not _has_begun(path):
            stop.wait(POLL)
            continue
        yield from _placed(files, number, FileSource(path, files.options, stop))


def _has_begun(path: str) -> bool:
    """Whether there is a file with a whole line."""
    try:
        with open(path, "rb") as file:
            return b"\n" in file.read(1 << 16)
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise UsageError("DS530", f"cannot read {path}: {problem.strerror}") from None


def merged(files: Files, times: Callable[[pa.RecordBatch], np.ndarray]) -> Pieces:
    """All files at once, rows in the order of their times; within a file no row goes before one
    that stands before it."""
    streams = [
        _placed(files, number, FileSource(path, files.options))
        for number, path in enumerate(files.paths)
    ]
    heads: list[_Head | None] = [_Head(stream, times) for stream in streams]
    done = [0] * len(heads)
    while True:
        rejects = []
        empty = 0
        for at, head in enumerate(heads):
            if head is None:
                continue
            alive = head.fill()
            rejects += head.rejects
            empty += head.empty
            done[at] = head.done
            head.rejects, head.empty = [], 0
            if not alive:
                heads[at] = None
        alive_heads = [head for head in heads if head is not None]
        if not alive_heads:
            if rejects or empty:
                nothing = pa.RecordBatch.from_arrays([], [])
                yield Piece(nothing, np.empty(0, np.int64), rejects, sum(done), empty)
            return
        upto = min(int(head.highest[-1]) for head in alive_heads)
        taken = [part for head in alive_heads if (part := head.take(upto)) is not None]
        order = np.argsort(np.concatenate([part[2] for part in taken]), kind="stable")
        batch = pa.concat_batches([part[0] for part in taken]).take(pa.array(order))
        lines = np.concatenate([part[1] for part in taken])[order]
        yield Piece(batch, lines, rejects, sum(done), empty)


class _Head:
    """The rows of one file that wait for those of others."""

    def __init__(self, pieces: Iterator[Piece], times: Callable[[pa.RecordBatch], np.ndarray]):
        self._pieces, self._times = pieces, times
        self._batch: pa.RecordBatch | None = None
        self._lines = np.empty(0, np.int64)
        self.highest = np.empty(0, np.int64)  # time up to each row
        self._last = np.iinfo(np.int64).min
        self.rejects: list = []
        self.empty = self.done = 0

    def fill(self) -> bool:
        """Have a row; False at the end."""
        while not len(self.highest):
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self.rejects += piece.rejects
            self.empty += piece.empty
            self.done = piece.done
            self._batch, self._lines = piece.batch, piece.lines
            if piece.batch.num_rows:
                times = np.maximum.accumulate(self._times(piece.batch))
                self.highest = np.maximum(times, self._last)
                self._last = int(self.highest[-1])
        return True

    def take(self, upto: int) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray] | None:
        """The rows up to that time."""
        assert self._batch is not None
        cut = int(np.searchsorted(self.highest, upto, side="right"))
        if not cut:
            return None
        part = self._batch.slice(0, cut), self._lines[:cut], self.highest[:cut]
        self._batch = self._batch.slice(cut)
        self._lines, self.highest = self._lines[cut:], self.highest[cut:]
        return part
