"""Members of a group that are due together, in portions that are answered one after the other, so
that others may have a turn in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from dsms.sharing.member import Due, Member
from dsms.sharing.request import Wanted

CELLS = 1 << 15  # that are answered in one go, about
MEMBERS = 256  # that are

R = TypeVar("R", bound=Wanted)


def portions(due: Sequence[Due[R]], groups: int) -> Iterator[list[Due[R]]]:
    """Those that are probed together stand together, those that ask the same (CS8) in one
    portion.  `groups`: cells of each boundary."""
    groups = max(1, groups)
    if len(due) <= MEMBERS and sum(len(b) for _, b in due) * groups <= CELLS:
        yield list(due)
        return
    probed: dict[object, dict[int, list[Due[R]]]] = {}
    for i, one in enumerate(due):
        same = probed.setdefault(_probed_with(one[0]), {})
        same.setdefault(one[0].same or -1 - i, []).append(one)
    for same in probed.values():
        yield from _cut(same.values(), groups)


def _probed_with(member: Member[R]) -> object:
    """Equal for members that are probed together.  A kind has the aggregates in it and is there
    once in a group: a thousand of them are not to be hashed for each batch."""
    if member.plain is not None:
        return id(member.plain)
    return member.request.aggs, member.view


def _cut(together: Iterable[list[Due[R]]], groups: int) -> Iterator[list[Due[R]]]:
    portion: list[Due[R]] = []
    cells = 0
    for alike in together:
        more = max(len(b) for _, b in alike) * groups
        if portion and (cells + more > CELLS or len(portion) >= MEMBERS):
            yield portion
            portion, cells = [], 0
        portion += alike
        cells += more
    yield portion
