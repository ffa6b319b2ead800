"""Bytes off a socket -> whole frames, without copying big ones twice.

Small frames are cut out of a scratch buffer that takes many of them in one read.  A frame larger
than the scratch gets a buffer of its own that the socket then writes into.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsms.errors import UsageError
from dsms_client.protocol import HEADER

SCRATCH = 256 << 10
_FOREIGN = {
    b"GET ": "HTTP", b"POST": "HTTP", b"HEAD": "HTTP", b"PUT ": "HTTP", b"OPTI": "HTTP",
    b"DELE": "HTTP",
    b"PATC": "HTTP", b"TRAC": "HTTP", b"CONN": "HTTP", b"PRI ": "HTTP/2", b"SSH-": "SSH",
    b"\x16\x03\x01": "TLS", b"\x16\x03\x03": "TLS", b"*": "Redis",
}  # a table  # fmt: skip
_POSTGRES = {  # what follows the length in the first message of PostgreSQL's protocol
    b"\x04\xd2\x16\x2f": "asks",
    b"\x04\xd2\x16\x30": "asks",  # for TLS, for GSSAPI
    b"\x00\x03\x00\x00": "starts",
    b"\x00\x03\x00\x02": "starts",
    b"\x04\xd2\x16\x2e": "cancels",
}
_TEXT = frozenset(range(32, 127)) | {9, 10, 13}


class Oversized(UsageError):
    """A length over the limit: the stream of frames cannot be followed any further."""


class Foreign(UsageError):
    """The first bytes belong to another protocol, named in `speaks`.  `asks`: eight bytes ask
    whether the connection may be encrypted, and the peer begins anew after a N."""

    speaks: str = ""
    asks: bool = False

    @classmethod
    def of(cls, speaks: str, asks: bool = False) -> Foreign:
        what = "" if speaks in ("text", "dsms") else f", not {speaks}"
        problem = cls("DS607", f"this port speaks the dsms protocol{what}")
        problem.speaks, problem.asks = speaks, asks
        return problem


class FrameBuffer:
    """Feed it through `space` and `filled`; take what is whole from `frames`."""

    __slots__ = ("_big", "_end", "_first", "_scratch", "_start", "limit", "size")

    def __init__(self, limit: int, size: int = SCRATCH) -> None:
        self.limit = limit
        self.size = size
        self._scratch = bytearray()  # of `size` once something comes
        self._start = self._end = 0
        self._big: memoryview | None = None
        self._first = True

    def space(self) -> memoryview:
        """Where the next bytes may be written."""
        if self._big is not None:
            return self._big[self._end :]
        if len(self._scratch) < self.size:
            # the first one, or the one after that for strangers
            self._to_front(bytearray(self.size))
        # `frames` leaves less than a whole frame: move it to the front
        if self._end == len(self._scratch):
            self._to_front(self._scratch)
        return memoryview(self._scratch)[self._end :]

    def clear(self) -> None:
        """Give the memory back; nothing more is expected."""
        self._scratch, self._big = bytearray(), None
        self._start = self._end = 0

    def filled(self, count: int) -> None:
        self._end += count

    @property
    def begun(self) -> bool:
        """Whether anything has come."""
        return bool(self._end) or not self._first

    @property
    def partial(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return self._end - self._start

    def frames(self) -> Iterator[bytes | memoryview]:
        """The whole frames received so far.  Raises Oversized or Foreign at the place where
        following must stop."""
        if self._big is not None:
            if self._end < len(self._big):
                return
            whole, self._big = self._big, None
            self._start = self._end = 0
            yield whole
        scratch = self._scratch
        while self._end - self._start >= 4:
            (length,) = HEADER.unpack_from(scratch, self._start)
            if self._first and not self._begins():
                return
            if length > self.limit:
                raise _oversized(length, self.limit)
            if self._end - self._start - 4 < length:
                if length + 4 > len(scratch):
                    self._begin_big(length)
                return
            body = bytes(memoryview(scratch)[self._start + 4 : self._start + 4 + length])
            self._start += 4 + length
            yield body
        if self._start == self._end:
            self._start = self._end = 0

    def skip(self, count: int) -> None:
        """Drop bytes that are no frame."""
        self._start += count

    def _begins(self) -> bool:
        """Whether the first bytes tell enough; raises Foreign if they are another protocol's."""
        head = bytes(self._scratch[self._start : min(self._start + 8, self._end)])
        (length,) = HEADER.unpack_from(head)
        speaks = self._speaks(head) if length > self.limit else None
        if len(head) == 4 and 0 < length <= self.limit:
            return False
        # no map begins so, a PostgreSQL message does
        if speaks is None and head[4:5] in (b"\x00", b"\x04"):
            if len(head) < 8 <= 4 + length:
                return False
            speaks = "PostgreSQL" if head[4:] in _POSTGRES else None
        if length > self.limit and head[4:] and not _maps(head[4]):
            speaks = speaks or "another one"
        if speaks is not None:
            raise Foreign.of(speaks, _POSTGRES.get(head[4:]) == "asks")
        self._first = False
        return True

    @staticmethod
    def _speaks(head: bytes) -> str | None:
        for mark, name in _FOREIGN.items():
            if head.startswith(mark):
                return name
        return "text" if _TEXT.issuperset(head[:4]) else None

    def _to_front(self, scratch: bytearray) -> None:
        rest = self._scratch[self._start : self._end]
        scratch[: len(rest)] = rest
        self._scratch = scratch
        self._start, self._end = 0, len(rest)

    def _begin_big(self, length: int) -> None:
        have = memoryview(self._scratch)[self._start + 4 : self._end]
        self._big = _memory(length)
        self._big[: len(have)] = have
        self._start, self._end = 0, len(have)


def _maps(first: int) -> bool:
    """Whether a map of msgpack begins with this byte, as each frame does."""
    return 0x80 <= first <= 0x8F or first in (0xDE, 0xDF)


def _oversized(length: int, limit: int) -> Oversized:
    return Oversized(
        "DS601",
        f"a frame of {length} bytes is over the limit of {limit}",
        hint="send smaller frames, or start the server with a larger --max-frame",
    )


def _memory(size: int) -> memoryview:
    """Memory that is taken by what is written to it, not by its size: a length alone costs
    nothing."""
    import numpy as np

    return memoryview(np.empty(size, np.uint8))  # type: ignore[arg-type]
