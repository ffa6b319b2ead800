"""The house's bars, read from the files: none is long, and none is laid out by hand, but with a
reason."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("dsms", "server", "clients")
MOST = 400  # lines of a file
MOST_TESTS = 500  # ... of tests

# Files that may have more, and why.
LONG: dict[str, str] = {
    "clients/dsms_client/aio.py": "the client's face: one short method for each thing that it does",
    "dsms/storage/journal.py": "writing and reading share its chains, tails and logs",
    "server/dsms_server/session.py": "the bytes of one peer, in and out, share their brakes",
}

SKIPPED = re.compile(r"^.*# fmt: skip$", re.MULTILINE)
REASON = re.compile(r"# [a-z ]+  # fmt: skip$")


def product() -> dict[str, str]:
    """The product's files, by their paths, and what is in them."""
    return below(*PRODUCT)


def below(*folders: str) -> dict[str, str]:
    """The files of folders, by their paths, and what is in them."""
    paths = [path for top in folders for path in (ROOT / top).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def too_long(files: dict[str, str], allowed: dict[str, str], most: int = MOST) -> list[str]:
    """Files with more than so many lines that have no reason for it."""
    sizes = {path: len(text.splitlines()) for path, text in files.items()}
    return [
        f"{path}: {size} lines"
        for path, size in sizes.items()
        if size > most and not allowed.get(path)
    ]


def unsaid(files: dict[str, str]) -> dict[str, int]:
    """How many lines are laid out by hand without a reason, by room."""
    found: dict[str, int] = {}
    for path, text in files.items():
        count = sum(not REASON.search(line) for line in SKIPPED.findall(text))
        room = "/".join(path.split("/")[:2])
        if count:
            found[room] = found.get(room, 0) + count
    return found


def test_no_file_is_long_without_a_reason() -> None:
    files = product()
    assert len(files) > 300
    assert too_long(files, LONG) == []
    assert set(LONG) <= set(files)


def test_no_file_of_tests_is_long() -> None:
    files = below("tests")
    assert len(files) > 300
    assert too_long(files, {}, MOST_TESTS) == []


def test_no_lines_are_laid_out_by_hand_without_a_reason() -> None:
    assert unsaid(product()) == {}


def test_what_is_wrong_is_seen() -> None:
    long = {"dsms/a.py": "x = 1\n" * (MOST + 1), "dsms/b.py": "x = 1\n" * MOST}
    assert too_long(long, {}) == [f"dsms/a.py: {MOST + 1} lines"]
    assert (
        too_long(long, {"dsms/a.py": ""}) != [] and too_long(long, {"dsms/a.py": "a table"}) == []
    )
    by_hand = {
        "dsms/sql/a.py": "x = 1  # fmt: skip\ny = 2  # a table  # fmt: skip\n",
        "dsms/sql/b/c.py": "z = 3  # fmt: skip\n",
    }
    assert unsaid(by_hand) == {"dsms/sql": 2}
