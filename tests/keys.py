"""Engines whose data folders are encrypted, without their tests knowing of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from dsms.engine import Engine

KEY, OTHER = (Random(seed).randbytes(32) for seed in (1, 2))


@contextmanager
def everywhere(key: bytes = KEY) -> Iterator[None]:
    """Every engine with a data folder has that key."""
    plain = Engine.__init__

    def init(self, data=None, settings=None, files=None, state_key=None):
        plain(self, data, settings, files, key if data is not None else state_key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "__init__", init)
        yield
