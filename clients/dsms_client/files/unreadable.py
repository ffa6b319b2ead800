"""What is wrong with a file that a library can't read, in words that need no knowledge of it."""

from __future__ import annotations

import gzip
import zlib

from dsms.untrusted.malformed import Malformed

MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}  # how such files begin
PARQUET = b"PAR1"
ARROW = (b"ARROW1", b"\xff\xff\xff\xff")  # a file, a stream
FEATHER = b"FEA1"  # its first version, which is not Arrow's format


def unpacked(problem: Exception, packed: str | None, head: bytes | None) -> tuple[str, str | None]:
    """What is wrong with a file of which the system or a compression says `problem`, and what to
    do.  `packed`: how its name says that it is compressed; `head`: how it begins, None where that
    can't be looked at."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror, None
    if head is not None and packed not in (None, *(MAGIC[m] for m in MAGIC if head.startswith(m))):
        return f"it is not compressed with {packed}", "its name says so: rename it, or look into it"
    if isinstance(problem, EOFError) or "Truncated" in str(problem):
        return "it is cut short: what is compressed in it has no end", None
    if isinstance(problem, zlib.error | gzip.BadGzipFile) or "decompress" in str(problem):
        return "it is damaged: it can't be decompressed", None
    return str(problem), None


def parquet(problem: Exception, head: bytes | None) -> str:
    """What is wrong with a file that can't be read as Parquet; `head` as for `unpacked`, of what is
    in it."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    if isinstance(problem, NotImplementedError | MemoryError):
        return str(problem)
    if head is not None and not head.startswith(PARQUET):
        return "it does not begin as Parquet does" if head else "it is empty"
    if "footer" in str(problem) or "file size" in str(problem):
        return "it is cut short, or damaged: its end is not that of Parquet"
    return "it is damaged"


def arrow(problem: Exception, head: bytes | None) -> str:
    """What is wrong with a file that can't be read as Arrow; `head` as for `parquet`."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    if isinstance(problem, NotImplementedError | MemoryError):
        return str(problem)
    if head is not None and head.startswith(FEATHER):
        return "it is of Feather's first version: write it anew"
    if head is not None and not head.startswith(ARROW):
        return "it does not begin as Arrow does" if head else "it is empty"
    if isinstance(problem, Malformed):
        return text if (text := str(problem)).startswith("it ") else f"it is damaged: {text}"
    return "it is damaged"
