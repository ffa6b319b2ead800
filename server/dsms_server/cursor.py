"""A place in a msgpack text, where values that are many may be left as they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgpack

from dsms.errors import UsageError
from dsms.intake.nesting import Extent, extent
from dsms_client import protocol
from dsms_client.values import from_wire, map_of

MOST_VALUES = 4096  # in one field
# inside of the values of one row, which are built together, or of all columns: lists with their
# items, or what no column takes
MOST_NESTED = 1 << 20
Extensions = Callable[[int, bytes], Any]


@dataclass(frozen=True, slots=True)
class Bulk:
    """Rows or columns still packed; `longest`: so many values may one of them have, those inside
    of values among them."""

    data: memoryview
    longest: int

    def reader(self, lax: bool = False) -> Any:
        """`lax`: maps with keys that are no text are read, as `Pairs`."""
        return reader_of(self.data, from_wire, lax)


def _too_much(what: str) -> UsageError:
    return UsageError("DS600", f"the frame holds too much: {what}", hint="send less at a time")


class Cursor:
    """A place in a msgpack text.  Values are read through a window, so that what follows is not
    copied."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self.at = 0

    def map_header(self) -> int:
        reader = self.reader(self.at + 8)
        count = reader.read_map_header()
        self.at += reader.tell()
        return count

    def value(self, extensions: Extensions = protocol.no_extension) -> Any:
        """The value here, whatever it is, unless it holds thousands."""
        found = self._extent("a value")
        if found.values > MOST_VALUES:
            raise _too_much(f"a field holds {found.values} values: {MOST_VALUES} are the most")
        value = self.reader(self.at + found.size, extensions).unpack()
        self.at += found.size
        return value

    def bulk(self, what: str, fix: int, marks: tuple[int, ...], most: int) -> Any:
        """Rows (an array) or columns (a map) as they stand, if they may be built, rows one by one;
        anything else as `value` has it."""
        mark = self._body[self.at] if self.at < len(self._body) else 0
        if mark & 0xF0 != fix and mark not in marks:
            return self.value()
        found = self._extent(f"`{what}`")
        nested = found.deepest if what == "rows" else found.deep
        if found.longest > most or nested > MOST_NESTED:
            where = " in one row" if what == "rows" else ""
            raise _too_much(
                f"`{what}` holds {nested} values inside of values{where} ({MOST_NESTED} are the "
                f"most), and up to {found.longest} in one ({most})"
            )
        start, self.at = self.at, self.at + found.size
        return Bulk(self._body[start : self.at], found.longest + found.deepest)

    def _extent(self, what: str) -> Extent:
        found = extent(self._body[self.at :])
        if found is None:
            raise ValueError(f"the frame ends inside {what}, or is broken there")
        return found

    def blob(self) -> Any:
        """Bytes, as a view; anything else as `value` has it."""
        for mark, size in ((0xC4, 1), (0xC5, 2), (0xC6, 4)):
            if self._body[self.at] == mark:
                start = self.at + 1 + size
                stop = start + int.from_bytes(self._body[self.at + 1 : start])
                if stop > len(self._body):
                    raise ValueError("the frame ends inside `arrow`")
                self.at = stop
                return self._body[start:stop]
        return self.value()

    def rest(self) -> memoryview:
        """What follows."""
        return self._body[self.at :]

    def reader(self, stop: int, extensions: Extensions = protocol.no_extension) -> Any:
        """An unpacker that stands here and sees no further than `stop`."""
        return reader_of(self._body[self.at : stop], extensions)


def reader_of(data: memoryview, extensions: Extensions, lax: bool = False) -> Any:
    reader = msgpack.Unpacker(
        use_list=False,
        max_buffer_size=max(len(data), 1),
        ext_hook=extensions,
        strict_map_key=not lax,
        object_pairs_hook=map_of if lax else None,
    )
    reader.feed(data)
    return reader
