"""How much memory there is for this process: that of the machine, or of the control group that it
runs in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

SHARE = 3, 4  # of it that a server takes unless told otherwise


def default_share(root: Path = Path("/")) -> int | None:
    """Bytes that a server may take; None where the system does not say.  `root`: of the file system
    (tests)."""
    found = [size for size in (_total(root), *_limits(root)) if size]
    return min(found) * SHARE[0] // SHARE[1] if found else None


def _total(root: Path) -> int | None:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemTotal":
            return int(rest.split()[0]) << 10
    return None


def _limits(root: Path) -> Iterator[int | None]:
    """Of the groups that this process is in, and of those that they are in; of version 2, and of
    version 1."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, kinds, path = line.split(":", 2)
        if number != "0" and "memory" not in kinds.split(","):
            continue
        folder, name = ("", "memory.max") if number == "0" else ("memory", "memory.limit_in_bytes")
        inside = PurePosixPath(path.lstrip("/"))
        for group in (inside, *inside.parents):
            yield _number(_read(root / "sys/fs/cgroup" / folder / group / name))


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
