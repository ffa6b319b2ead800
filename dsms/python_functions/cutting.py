"""Calls that are not waited for any longer, since whoever asked for what they are part of has
cancelled it.

Who that is, is known per thread, as functions are called from deep within expressions and
aggregates.  A call is cut off by an error of its own, with which the statement ends as one that was
cancelled.  Only calls of a statement's own are: queries that its rows, or its time, make move are
others', could not go on in the middle of a change, and so go on (`uncut`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

CUT = "DS249"


class Asked(Protocol):
    """Who may ask for the end."""

    @property
    def is_set(self) -> bool: ...


class _Here(threading.local):
    asked: Asked | None = None


_here = _Here()


@contextmanager
def cuttable(by: Asked | None) -> Iterator[None]:
    """Meanwhile calls of this thread are cut off once it is set; None: as they were."""
    before = _here.asked
    _here.asked = before if by is None else by
    try:
        yield
    finally:
        _here.asked = before


@contextmanager
def uncut() -> Iterator[None]:
    """Meanwhile calls of this thread are others': none is cut off."""
    before, _here.asked = _here.asked, None
    try:
        yield
    finally:
        _here.asked = before


def is_cut() -> bool:
    """Whether a call of this thread is to end."""
    return _here.asked is not None and _here.asked.is_set
