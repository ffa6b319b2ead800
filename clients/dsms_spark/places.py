"""Which archive is meant: a folder or URL, or a name and where archives lie."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import replace
from pathlib import Path

from dsms.errors import UsageError
from dsms.intake.values import physical
from dsms.sql.types import TIMESTAMP
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive
from dsms.storage.folders import folder_name

FOLDER = "archive"  # of a data directory
_WHICH = "name the folder or URL of one, or the data directory that it is in (of commands: --data)"


def found(target: str | None, data: str | None = None, root: str | None = None) -> list[Archive]:
    """The archives that `target` names: one by its folder, its URL or its name, all where there are
    several.

    data  a server's data directory;  root: the folder or URL below which archives lie (a server's
          --archive)
    Raises DS953 where there is none."""
    if target is not None and (archive := _at(target)) is not None:
        return [archive]
    roots = [r for r in (root, None if data is None else str(Path(data) / FOLDER)) if r is not None]
    if target is not None and _is_place(target):
        roots = [f"{target.rstrip('/')}/{FOLDER}", target]
        target = None
    known = {name: archive for place in reversed(roots) for name, archive in below(place).items()}
    if target is None:
        if not known:
            what = (
                f"there is no archive below {' or '.join(roots)}"
                if roots
                else "no archive is named"
            )
            raise UsageError("DS953", what, hint=_WHICH)
        return list(known.values())
    if (name := folder_name(target.casefold())) in known:
        return [known[name]]
    below_ = f" below {' or '.join(roots)}" if roots else ""
    raise UsageError(
        "DS953", f"there is no archive {target}{below_}", hint=_hint(target, list(known))
    )


def one(target: str | None, data: str | None = None, root: str | None = None) -> Archive:
    """The archive that is meant.  Raises DS953 where there is none, or more than one."""
    archives = found(target, data, root)
    if len(archives) > 1:
        names = ", ".join(a.url.rstrip("/").rpartition("/")[2] for a in archives)
        raise UsageError(
            "DS953", f"{len(archives)} archives are there: {names}", hint="name one of them"
        )
    return archives[0]


def below(root: str) -> dict[str, Archive]:
    """The archives in a folder, by the names of their own."""
    store = Archive(root)
    archives = {
        name: Archive(f"{root.rstrip('/')}/{name}")
        for name in store.names()
        if not name.startswith(".")
    }
    return {name: archive for name, archive in archives.items() if archive.numbers()}


def _at(target: str) -> Archive | None:
    if not _is_place(target):
        return None
    archive = Archive(target)
    return archive if archive.numbers() else None


def _is_place(target: str) -> bool:
    return "://" in target or os.sep in target or os.path.isdir(target)


def _hint(target: str, known: list[str]) -> str:
    close = difflib.get_close_matches(target.casefold(), known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"archives there: {', '.join(known)}" if known else _WHICH


def instant(text: str) -> int:
    """ISO 8601 (UTC unless it has a zone) or a count of µs, as µs since the epoch.  Raises
    DS640."""
    try:
        return int(text) if re.fullmatch(r"-?\d{9,}", text) else physical(text, TIMESTAMP)
    except ValueError:
        raise UsageError(
            "DS640", f"{text} is no instant", hint="write 2013-02-01 or 2013-02-01T12:30"
        ) from None


def new_layout(layout: Layout, shape: str | None, strategy: str | None) -> Layout:
    """The layout with what is to be changed: ``4x4``, ``no-rebuild``.  Raises DS640, DS950."""
    if strategy is not None:
        layout = replace(layout, strategy="no rebuild" if strategy == "no-rebuild" else "rebuild")
    if shape is None:
        return layout
    sides = re.fullmatch(r"(\d+)[xX](\d+)", shape)
    if sides is None:
        raise UsageError(
            "DS640",
            f"{shape} is no layout",
            hint="write 4x4: partitions of insertion and expiration times",
        )
    return replace(layout, generations=int(sides[1]), expirations=int(sides[2]))
