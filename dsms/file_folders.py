"""Files that an engine may look at: those below folders that are named (`Engine(files=...)`, `dsms
serve --files`).

What a path leads to is looked for with all its links followed, and must lie below the folder.  A
process of its own looks at a file: what a damaged one does to it ends that process alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from dsms.api import Cancel
from dsms.errors import UsageError

Folders = str | PathLike[str] | Sequence[str | PathLike[str]]
LOOK = (sys.executable, "-P", "-m", "dsms_client.files.like")  # -P: no modules of the folder
SECONDS = 120.0  # that a look may take
TURN = 0.1  # seconds between two questions whether it is still wanted


class Files:
    """`folders` are what is named."""

    def __init__(self, folders: Folders, command: Sequence[str] = LOOK) -> None:
        folders = [folders] if isinstance(folders, str | PathLike) else folders
        self._folders = [Path(folder).resolve() for folder in folders]
        self._command = command

    def checked(self) -> Files:
        """Itself.  Raises DS426 for a folder that there is not."""
        for folder in self._folders:
            if not folder.is_dir():
                raise UsageError("DS426", f"files: {folder} is no folder")
        return self

    def __call__(self, text: str, path: str, cancel: Cancel | None) -> tuple[str, tuple[str, ...]]:
        """The plain CREATE for a ``CREATE ... LIKE FILE``, and why it is so.  Raises DS422, DS423
        and what is wrong with the file."""
        folder, place = self.find(path)
        request = json.dumps({"text": text, "path": place})
        answer = _answer(self._command, folder, request, path, cancel)
        if "error" in answer:
            raise UsageError(**answer["error"])
        return answer["statement"], tuple(answer["notes"])

    def find(self, path: str) -> tuple[Path, str]:
        """The folder that a file lies below, and its place there.  Raises DS422, in one way for
        what is not there and for what lies outside."""
        for folder in self._folders:
            try:
                found = (folder / path).resolve(strict=True)
            except (OSError, RuntimeError, ValueError):  # links in a circle; NUL in it
                continue
            if found.is_relative_to(folder) and found != folder:
                place = str(found.relative_to(folder))
                return folder, f"./{place}" if place.startswith("-") else place
        raise UsageError(
            "DS422",
            f"there is no file {path} below the folders that may be read here",
            hint="paths are relative to a folder of dsms serve --files DIR, or Engine(files=[DIR]) "
            "in process, and lead to no place outside of it",
        )


def _answer(
    command: Sequence[str], folder: Path, request: str, path: str, cancel: Cancel | None
) -> dict:
    """What the process says."""
    with subprocess.Popen(
        command,
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        waited, given = 0.0, iter([request])
        try:
            while True:
                try:
                    out, _ = child.communicate(next(given, None), TURN)
                    break
                except subprocess.TimeoutExpired:
                    waited += TURN
                if cancel is not None:
                    cancel.check()
                if waited > SECONDS:
                    raise UsageError("DS423", f"{path} took too long to look at")
        finally:
            child.kill()
    try:
        return dict(json.loads(out))
    except ValueError:
        raise UsageError(
            "DS423",
            f"{path} ended the process that looked at it",
            hint="the file is damaged, or takes too much memory",
        ) from None
