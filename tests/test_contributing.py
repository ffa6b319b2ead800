"""CONTRIBUTING holds: its map is that of the folders with a line for each, and exceptions to its
style have reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINE = re.compile(r"(?P<indent> {4}| {6})(?P<path>[\w/]+/) +(?P<says>\S.*)")


def drawn() -> dict[str, str]:
    """What the map says of each folder; an indented one lies in the folder above."""
    found: dict[str, str] = {}
    top = ""
    part = TEXT.partition("## How the code is laid out")[2].partition("\nImports point one way")[0]
    for line in filter(None, part.splitlines()):
        match = LINE.fullmatch(line)
        assert match, f"not a line of the map: {line}"
        top = match["path"] if len(match["indent"]) == 4 else top
        path = top if len(match["indent"]) == 4 else top + match["path"]
        assert path not in found, path
        found[path] = match["says"]
    return found


def there() -> set[str]:
    """Every folder with Python files: those of the product to the last, of examples and tests the
    first two levels."""
    files = [
        p.relative_to(ROOT)
        for top in ("dsms", "server", "clients", "examples", "tests")
        for p in (ROOT / top).rglob("*.py")
    ]
    deep = {p.parent.as_posix() for p in files if p.parts[0] in ("dsms", "server", "clients")}
    flat = {
        "/".join(p.parts[: min(2, len(p.parts) - 1)])
        for p in files
        if p.parts[0] in ("examples", "tests")
    }
    return {f"{folder}/" for folder in deep | flat} - {"examples/data/"}


def test_the_map_names_every_folder() -> None:
    assert there() - set(drawn()) == set()


@pytest.mark.parametrize("path", drawn())
def test_what_the_map_names_is_there(path: str) -> None:
    assert (ROOT / path).is_dir()


SKIPPED = re.compile(r"(# [a-z ]+  )?# fmt: skip$", re.MULTILINE)
FORMATTED = ("clients", "dsms", "examples", "server", "tests")


def test_what_is_not_formatted_has_a_reason() -> None:
    files = [path for folder in FORMATTED for path in (ROOT / folder).rglob("*.py")]
    bare = [
        f"{path}: {m[0]}"
        for path in files
        for m in SKIPPED.finditer(path.read_text("utf-8"))
        if not m[1]
    ]
    assert bare == []
