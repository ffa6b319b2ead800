"""Queries on the way to their first answer (`Runtime.beginnings`), which are brought there piece by
piece.

Those that are new are unknown to others meanwhile.  Those that are registered anew are known: who
asks for one of them by name waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from dsms.python_functions.cutting import uncut
from dsms.sql.catalog import Catalog


class Begun(Protocol):
    """The runtime, as far as queries begin in it."""

    catalog: Catalog
    beginnings: dict[str, Iterator[object]]


def arriving(runtime: Begun, keys: Iterable[str] | None = None) -> Iterator[None]:
    """Those queries (None: all) come to their first answers; a piece of it at a time."""
    for key in list(runtime.beginnings) if keys is None else keys:
        while key in runtime.beginnings:
            with uncut():  # whoever registers it may give it up, and nobody else
                next(runtime.beginnings[key], None)
            yield


def anew(runtime: Begun, keys: Iterable[str]) -> list[str]:
    """The keys of those among them that are registered anew, and not at their first answer."""
    return [key for key in keys if key in runtime.beginnings and key in runtime.catalog.queries]


def arrive(runtime: Begun, key: str) -> None:
    """A query of that key that is registered anew comes to its first answer at once."""
    for _ in arriving(runtime, anew(runtime, [key])):
        pass
