"""Where the source of a Python function lies, and what it is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

PLACE = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")  # module:name


def source(folders: Iterable[Path], module: str) -> tuple[Path, Path] | None:
    """(the folder that has the module, its file); of several the first."""
    inside = Path(*module.split("."))
    for folder in folders:
        for file in (folder / inside.with_suffix(".py"), folder / inside / "__init__.py"):
            if file.is_file() and file.resolve().is_relative_to(folder.resolve()):
                return folder, file
    return None


def fingerprint(file: Path) -> str:
    """The SHA-256 of a source, in hex."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
