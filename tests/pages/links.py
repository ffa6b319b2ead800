"""Links of pages: which lead nowhere."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

from tests.pages.text import DOCS

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.M)


@cache
def hooks() -> ModuleType:
    """The site's hooks (docs/hooks.py), which need no MkDocs until it calls them."""
    spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# by page of the site the file of the repository that it shows
INCLUDED: dict[str, str] = hooks().INCLUDED


def prose(path: Path) -> str:
    """A page without its code."""
    page = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]+`", "`", page)


@cache
def headings(path: Path) -> list[str]:
    """Anchors of the headings, as code hosts and MkDocs make them."""
    page = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = re.findall(r"^#+ (.+)$", page, re.M)
    return [
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
        for heading in found
    ]


def dead(path: Path) -> list[str]:
    """Links to files that are not there, or to headings that they don't have."""
    return [
        link
        for one in _LINK.findall(prose(path))
        if (link := one[0] or one[1]) and not _lives(path, link)
    ]


def _lives(path: Path, link: str) -> bool:
    if re.match(r"https?://|mailto:", link):
        return True
    file, _, anchor = link.partition("#")
    target = (path.parent / file).resolve() if file else path
    if not target.exists():
        return False
    return not anchor or (target.suffix == ".md" and anchor in headings(target))
