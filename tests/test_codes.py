"""Codes of errors: each in one table, with one meaning, known to the reference, and raised
somewhere."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache

from dsms.codes import CODES
from tests.test_imports import ROOT, SOURCES

SHARED = {  # codes that several rooms raise, each for the same reason
    "dsms dsms_client": "DS214 DS215 DS222 DS503 DS506 DS510 DS613",
    "dsms dsms_client dsms_server": "DS101",
    "dsms dsms_client dsms_server dsms_spark": "DS401",
    "dsms dsms_server": "DS102 DS106 DS111 DS448 DS543 DS617 DS618 DS670",
    "dsms dsms_server dsms_spark": "DS610 DS900",
    "dsms dsms_spark": "DS407 DS409 DS901 DS903 DS950 DS953 DS954 DS955 DS958",
    "dsms_client dsms_server": "DS600 DS603 DS604 DS607 DS620",
    "dsms_client dsms_server dsms_spark": "DS640",
    "dsms_client dsms_spark": "DS531 DS602",
    "dsms_server dsms_spark": "DS651 DS652",
}


@cache
def strings() -> list[tuple[str, str, bool]]:
    """(code, file, is it the first thing that an error is made of?): strings of their own outside
    of the table."""
    found = []
    for path in sorted(path for top in SOURCES for path in top.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"DS\d{3}", text):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        first = {id(node.args[0]) for node in nodes if isinstance(node, ast.Call) and node.args}
        found += [
            (node.value, str(path.relative_to(ROOT)), id(node) in first)
            for node in nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"DS\d{3}", node.value)
        ]
    return [one for one in found if one[1] != "dsms/codes.py"]


def errors() -> dict[str, set[str]]:
    """By code the files that raise it."""
    found: dict[str, set[str]] = defaultdict(set)
    for code, path, first in strings():
        if first:
            found[code].add(path)
    return found


def test_every_code_is_in_the_table_and_every_one_there_is_raised():
    named = {code for code, _, _ in strings()}
    assert len(named) > 150
    assert [(code, path) for code, path, _ in strings() if code not in CODES] == []
    assert [code for code in CODES if code not in named] == []


def test_the_table_says_each_meaning_once():
    assert len(set(CODES.values())) == len(CODES)
    assert all(re.fullmatch(r"DS[1-79]\d\d", code) for code in CODES)


def test_the_reference_prints_the_table():
    text = (ROOT / "grammar" / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\| (DS\d{3}) \| (.*) \|$", text[text.index("## Error codes") :], re.MULTILINE
    )
    assert listed == list(CODES.items())


def test_codes_named_in_prose_exist():
    """In documentation, docstrings and comments."""
    folders = (ROOT, ROOT / "docs", ROOT / "grammar", ROOT / "server")
    pages = [page for folder in folders for page in folder.glob("*.md")]
    texts = [*pages, *(path for top in SOURCES for path in top.rglob("*.py"))]
    for path in texts:
        if path.name != "CHANGELOG.md":  # it tells of codes as they were
            named = set(re.findall(r"\bDS\d{3}\b", path.read_text(encoding="utf-8")))
            assert named <= set(CODES), path


def test_what_several_rooms_raise_is_the_same_thing():
    """A code that a second room takes up may have got a second meaning: look, and enter it
    above."""
    found = {}
    for code, places in errors().items():
        rooms = " ".join(sorted({p.split("/")[0 if p.startswith("dsms/") else 1] for p in places}))
        if " " in rooms:
            found[code] = rooms
    assert found == {code: rooms for rooms, codes in SHARED.items() for code in codes.split()}
