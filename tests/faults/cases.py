"""What a fuzzer is made of: cases that are drawn by number, and somebody who has to suffer them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Protocol

KINDS = ("wire", "postgres", "sql", "arrow", "parquet", "ipc", "csv", "json", "state")
CORPUS = Path(__file__).parent / "corpus"


class Fault(AssertionError):
    """Something was answered as nothing may be answered."""


class Victim(Protocol):
    """Suffers cases, one after the other, and is made anew every now and then.

    judged  mutations in the last case that were answered each for itself: lines of a file as rows
            or rejects, frames of a conversation with their replies; of other kinds a case is one
    """

    judged: int

    def suffer(self, data: bytes) -> str:
        """How it ended: a code, or a word.  Raises Fault, or whatever it is that should not be
        raised."""

    def close(self) -> None: ...


Draw = Callable[[Random], bytes]


def draw(kind: str, seed: int, number: int) -> bytes:
    """The case of that number: the same in every process."""
    made: bytes = import_module(f"tests.faults.kinds.{kind}").draw(
        Random(f"{kind} {seed} {number}")
    )
    return made


def victim(kind: str) -> Victim:
    made: Victim = import_module(f"tests.faults.kinds.{kind}").make()
    return made


def life(kind: str) -> int:
    """Cases that one victim suffers."""
    return int(getattr(import_module(f"tests.faults.kinds.{kind}"), "LIFE", 1000))


def alone(kind: str) -> bool:
    """Whether a victim is alone in its process, which can be copied then: it has no threads."""
    return not getattr(import_module(f"tests.faults.kinds.{kind}"), "THREADS", False)


def kept(kind: str, corpus: Path = CORPUS) -> list[Path]:
    """Cases that once found something."""
    return sorted(path for path in (corpus / kind).glob("*") if path.is_file())


def judge(code: str, message: str = "") -> str:
    """The code of an error, if it may be shown to a user."""
    if not (len(code) == 5 and code.startswith("DS") and code[2:].isdigit()):
        raise Fault(f"an error without a code: {code!r} {message}")
    if code.startswith("DS9") and not code.startswith(("DS95", "DS96")):  # those are of archives
        raise Fault(f"{code}: {message}")
    return code
