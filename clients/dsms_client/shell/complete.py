"""Completion at the prompt: keywords, functions, names of streams, tables, queries, columns,
settings, commands."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dsms.errors import DsmsError
from dsms_client.shell.show import FORMATS
from dsms_client.shell.words import KEYWORDS, OPTIONS, SETTINGS

if TYPE_CHECKING:
    from dsms_client.sync import Client

PATIENCE = 2.0  # seconds for which a key waits for the server
_WORD = re.compile(r"\\?['\w.]*$")
_SET = re.compile(r"(?:^|;)\s*set\s+(?:(\w+)\s*(?:=|\bto\b)\s*)?['\w]*$", re.IGNORECASE)
_WITH = re.compile(r"\b(?:with|set)\s*\((?:[^()]*,)?\s*(?:(\w+)\s*=\s*)?['\w]*$", re.IGNORECASE)
_QUERY = re.compile(
    r"(?:^|;)\s*(?:lookup|(?:pause|resume|alter|drop|comment\s+on)\s+query)\s+\w*$", re.IGNORECASE
)
_FROM = re.compile(r"\b(?:from|join)\s+$", re.IGNORECASE)
_NAME = re.compile(r'"(?:[^"]|"")+"|[A-Za-z_]\w*')


class ShellCompleter(Completer):
    """Names and functions come from the server, once, and again after `forget`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: dict[str, dict[str, list[tuple[str, str]]]] | None = None
        self._functions: list[str] | None = None

    def forget(self) -> None:
        """Something was declared or dropped."""
        self._names = self._functions = None

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        found = _WORD.search(document.text_before_cursor)
        word = found[0] if found else ""
        for text, kind in self.candidates(document.text, document.text_before_cursor, word):
            if text.lower().startswith(word.lower()) and text != word:
                yield Completion(text, -len(word), display_meta=kind)

    def candidates(self, text: str, before: str, word: str) -> list[tuple[str, str]]:
        """(completion, what it is), best first."""
        if before.lstrip().startswith("\\"):
            return self._meta(before)
        names = self._known()
        if _QUERY.search(before):
            return [(q, "query") for q in names.get("queries", {})]
        for place, table, kind in ((_SET, SETTINGS, "setting"), (_WITH, OPTIONS, "option")):
            if found := place.search(before):
                chosen = found[1]
                return [
                    (v, kind) for v in (table if chosen is None else table.get(chosen.lower(), ()))
                ]
        objects = [
            (n, kind[:-1] if kind != "queries" else "query")
            for kind, named in names.items()
            for n in named
        ]
        if not word:
            return objects if _FROM.search(before) else []
        if "." in word:
            return self._qualified(text, word, names)
        mentioned = {m.strip('"').lower() for m in _NAME.findall(text)}
        columns = [
            (column, f"{sql} of {name}")
            for named in names.values()
            for name, cols in named.items()
            if name.lower() in mentioned
            for column, sql in cols
        ]
        words = {**dict.fromkeys(self._called(), "function"), **dict.fromkeys(KEYWORDS, "keyword")}
        return [
            *columns,
            *objects,
            *((w.lower() if word.islower() else w, kind) for w, kind in words.items()),
        ]

    def _qualified(self, text: str, word: str, names: dict) -> list[tuple[str, str]]:
        """Columns after ``alias.`` or ``stream.``."""
        prefix = word.rpartition(".")[0]
        for named in names.values():
            for name, cols in named.items():
                alias = (
                    rf"\b{re.escape(name)}\b(?:\s*\[[^\]]*\])?\s+(?:as\s+)?{re.escape(prefix)}\b"
                )
                if name.lower() == prefix.lower() or re.search(alias, text, re.IGNORECASE):
                    return [(f"{prefix}.{c}", f"{t} of {name}") for c, t in cols]
        return []

    def _meta(self, before: str) -> list[tuple[str, str]]:
        from dsms_client.shell.meta import COMMANDS, TEXTS

        command, space, _ = before.lstrip().partition(" ")
        if not space:
            return [(c, "command") for c in (*COMMANDS, *TEXTS)]
        if command in ("\\subscribe", "\\s"):
            return [(q, "query") for q in self._known().get("queries", {})]
        if command == "\\format":
            return [(f, "format") for f in FORMATS]
        if command in ("\\d", "\\d+", "\\copy"):
            return [(n, kind) for kind, named in self._known().items() for n in named]
        return []

    def _known(self) -> dict[str, dict[str, list[tuple[str, str]]]]:
        if self._names is None and self._client.connected:
            with contextlib.suppress(DsmsError, TimeoutError):
                self._names = self._client.names(PATIENCE)
        return self._names or {}

    def _called(self) -> list[str]:
        """Functions that the server knows."""
        if self._functions is None and self._client.connected:
            with contextlib.suppress(DsmsError, TimeoutError):
                self._functions = self._client.functions(PATIENCE)
        return self._functions or []
