"""Load grammar/cql.lark into a parser, from a cache if there is one.

The cache is a file per grammar content and version; a folder that can't be written only costs the
start-up time.  It is a pickle, so it lives where only this user can write: DSMS_CACHE_DIR, or
XDG_CACHE_HOME/dsms, or ~/.cache/dsms, or else a private folder among the temporary files.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path

import lark

from dsms.sql.parameters import MARK
from dsms.sql.transform.statements import Statements

GRAMMAR_FILE = "cql.lark"
_making = threading.Lock()


class _Marks:
    """Marks of parameters are read in any state of the parser; what they become there, their values
    say."""

    always_accept = (MARK,)

    @staticmethod
    def process(tokens: Iterator[lark.Token]) -> Iterator[lark.Token]:
        return tokens


def grammar_text() -> str:
    """The grammar as installed with the package, or else of the source tree."""
    installed = resources.files("dsms").joinpath("grammar", GRAMMAR_FILE)
    if installed.is_file():
        return installed.read_text(encoding="utf-8")
    return (Path(__file__).parents[2] / "grammar" / GRAMMAR_FILE).read_text(encoding="utf-8")


def parser() -> lark.Lark:
    """The parser of one statement; it returns AST nodes.  May be used by several threads."""
    with _making:  # who comes while another thread loads it waits
        return _made()


@cache
def _made() -> lark.Lark:
    text = grammar_text()
    folder = _cache_folder()
    name = f"cql-{hashlib.sha256(text.encode()).hexdigest()[:16]}-{lark.__version__}.pickle"
    return lark.Lark(
        text,
        parser="lalr",
        keep_all_tokens=True,
        maybe_placeholders=True,
        transformer=Statements(),
        postlex=_Marks(),
        cache=str(folder / name) if folder else False,
    )


def _cache_folder() -> Path | None:
    chosen = os.environ.get("DSMS_CACHE_DIR")
    if chosen is not None:
        return _own(Path(chosen)) if chosen else None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return _own(Path(home, "dsms")) or _own(Path(tempfile.gettempdir(), f"dsms-cache-{_user()}"))


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _own(folder: Path) -> Path | None:
    """The folder, made if need be, if only this user can write in it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (
        info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        return None
    return folder if os.access(folder, os.W_OK) else None


@cache
def keywords() -> tuple[str, ...]:
    """The words of the language, upper case, sorted: for completion and for guessing what a slip
    meant."""
    return tuple(
        sorted(re.findall(r"^[A-Z_]+\.\d: /([A-Z]+(?:-RESTORE)?)\\b/i$", grammar_text(), re.M))
    )


@cache
def reserved() -> frozenset[str]:
    """The words that are never names unless quoted."""
    found = re.search(r"^NAME: /\(\?!\(\?:([A-Z|]+)\)", grammar_text(), re.M)
    assert found is not None
    return frozenset(found[1].split("|"))
