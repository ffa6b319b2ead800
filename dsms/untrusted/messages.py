"""The messages of an Arrow IPC stream, as they come, or of a file, as its footer lists them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import IO

import pyarrow as pa

from dsms.untrusted.contents import MAX_ROWS
from dsms.untrusted.footer import BEGIN, MARK, footer_of
from dsms.untrusted.malformed import Malformed
from dsms.untrusted.metadata import body_size, sizes_of

MAX_METADATA = 16 << 20  # bytes of one message
MOST = 1 << 30  # bytes that a message may have when it is unpacked, unless it is large itself
PACKED = 16  # times as long as a message may be what is in it
PART = 16 << 20  # bytes that are read at a time: no more is allocated than has come
CUT = "it is cut short"
_BATCHES = ("record batch", "dictionary")

Read = Callable[[int], bytes]  # at most so many bytes, none at the end


def messages(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of each message, whose sizes are possible: the schema, then what the rows need.

    `file`: of streams only `read` is used, which may give less than is asked for before the end.
    Raises Malformed; pa.ArrowException for metadata that is none."""
    start = _some(file.read, len(MARK))
    for message in _listed(file) if start == MARK else _in_turn(_Behind(start, file.read).read):
        _check(message)
        yield message


def _listed(file: IO[bytes]) -> Iterator[bytes]:
    footer = footer_of(file)
    yield footer.schema
    for place in footer.places:
        file.seek(place)
        message = _message(file.read)
        if message is None:
            raise Malformed("there is no message where its end says one is")
        yield message


def _in_turn(read: Read) -> Iterator[bytes]:
    while (message := _message(read)) is not None:
        yield message
    if read(1):
        raise Malformed("it goes on behind its end")


class _Behind:
    """Bytes that were read already, then the others."""

    def __init__(self, start: bytes, read: Read) -> None:
        self._start, self._read = start, read

    def read(self, size: int) -> bytes:
        if not self._start:
            return self._read(size)
        part, self._start = self._start[:size], self._start[size:]
        return part


def _some(read: Read, size: int) -> bytes:
    """So many bytes, fewer only at the end."""
    parts, missing = [], size
    while missing and (part := read(min(missing, PART))):
        parts.append(part)
        missing -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _all(read: Read, size: int) -> bytes:
    """So many bytes.  Raises Malformed if there are fewer."""
    found = _some(read, size)
    if len(found) < size:
        raise Malformed(CUT)
    return found


def _message(read: Read) -> bytes | None:
    """The next one; None at the end, whether or not it is marked."""
    head = _some(read, 4)
    if not head:
        return None
    if head == BEGIN:
        head = _some(read, 4)
    if len(head) < 4:
        raise Malformed(CUT)
    (size,) = struct.unpack("<i", head)
    if size == 0:
        return None
    if not 0 < size <= MAX_METADATA:
        raise Malformed(f"a message has {size} bytes of metadata")
    metadata = _all(read, size)
    return b"".join((BEGIN, head, metadata, _all(read, body_size(metadata))))


def _check(data: bytes) -> None:
    """Raises Malformed for a message whose sizes are impossible, or of which far more becomes."""
    message = pa.ipc.read_message(pa.py_buffer(data))
    if message.type not in _BATCHES:
        return
    sizes = sizes_of(message)
    if sizes.least < 0:
        raise Malformed("a length is negative")
    if sizes.unpacked > max(MOST, PACKED * len(data)):
        raise Malformed(f"{len(data)} bytes of it become {sizes.unpacked} when they are unpacked")
    if sizes.longest > max(MAX_ROWS, 8 * max(len(data), sizes.unpacked)):  # a bit each, at least
        raise Malformed(f"{len(data)} bytes of it hold {sizes.longest} values")
