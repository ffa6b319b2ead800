"""EXPLAIN of an archive: which files are read and which are skipped."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql.literals import instant_text
from dsms.sql.types import ALWAYS, FOREVER, MAX_INSTANT, MIN_INSTANT
from dsms.storage.archive.job import ArchiveSource


def explain_lines(
    name: str, source: ArchiveSource, conditions: Sequence[str], live: bool
) -> list[str]:
    """Lines for one leaf.  conditions: on its columns, which files, row groups and rows are skipped
    by."""
    read = source.read
    seam = (
        "nothing is archived yet"
        if source.seam == ALWAYS
        else f"archived up to {_instant(source.seam)}"
    )
    lines = [f"archive {name}: {seam}" + (", later rows live" if live else "")]
    lines.append(f"  sub-indices: {len(read.subs)} of {read.all_subs}" + _layout(source))
    count = len(read.files) + len(read.landed)
    lines.append(
        f"  files: {count} of {read.all_files}, {_bytes(read.read_bytes)} of "
        f"{_bytes(read.all_bytes)}; skipped {read.skipped_files}, {_bytes(read.skipped_bytes)}"
    )
    landed = f"{len(read.landed)} that no update has taken over yet"
    lines.append(f"  landing files: {landed}, {_bytes(sum(f.bytes for f in read.landed))}")
    lines.append(f"  pushed down: {', '.join([*_instants(source), *conditions]) or 'nothing'}")
    return lines


def _layout(source: ArchiveSource) -> str:
    return "" if source.layout is None else f" (layout {source.layout})"


def _instants(source: ArchiveSource) -> list[str]:
    read = source.read
    out = []
    if read.since > ALWAYS:
        out.append(f"inserted after {_instant(read.since)}")
    if read.upto < FOREVER and read.upto != ALWAYS:
        out.append(f"inserted up to {_instant(read.upto)}")
    if read.as_of > ALWAYS:
        out.append(f"not expired at {_instant(read.as_of)}")
    return out


def _instant(micros: int) -> str:
    return instant_text(micros) if MIN_INSTANT <= micros <= MAX_INSTANT else f"{micros} us"


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
