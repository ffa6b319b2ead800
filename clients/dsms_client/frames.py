"""Bytes off a socket -> whole frames, without copying big ones twice.

Small frames are cut out of a scratch buffer that takes many of them in one read.  A frame larger than the scratch gets
a buffer of its own that the socket then writes into.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsms.errors import UsageError
from dsms_client.protocol import HEADER

SCRATCH = 256 << 10
_FOREIGN = {
    b"GET ": "HTTP", b"POST": "HTTP", b"HEAD": "HTTP", b"PUT ": "HTTP", b"OPTI": "HTTP", b"DELE": "HTTP",
    b"CONN": "HTTP", b"PRI ": "HTTP/2", b"SSH-": "SSH", b"\x16\x03\x01": "TLS", b"\x16\x03\x03": "TLS",
}  # fmt: skip


class Oversized(UsageError):
    """A length over the limit: the stream of frames cannot be followed any further."""


class Foreign(UsageError):
    """The first bytes belong to another protocol, named in `speaks`."""

    speaks: str = ""


class FrameBuffer:
    """Feed it through `space` and `filled`; take what is whole from `frames`."""

    __slots__ = ("_big", "_end", "_first", "_scratch", "_start", "limit", "size")

    def __init__(self, limit: int, size: int = SCRATCH) -> None:
        self.limit = limit
        self.size = size
        self._scratch = bytearray(size)
        self._start = self._end = 0
        self._big: memoryview | None = None
        self._first = True

    def space(self) -> memoryview:
        """Where the next bytes may be written."""
        if self._big is not None:
            return self._big[self._end :]
        if self._end == len(self._scratch):  # `frames` leaves less than a whole frame: move it to the front
            self._to_front()
        return memoryview(self._scratch)[self._end :]

    def filled(self, count: int) -> None:
        self._end += count

    @property
    def partial(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return self._end - self._start

    def frames(self) -> Iterator[bytes | memoryview]:
        """The whole frames received so far.  Raises Oversized or Foreign at the place where following must stop."""
        if self._big is not None:
            if self._end < len(self._big):
                return
            whole, self._big = self._big, None
            self._start = self._end = 0
            yield whole
        scratch = self._scratch
        while self._end - self._start >= 4:
            (length,) = HEADER.unpack_from(scratch, self._start)
            if self._first or length > self.limit:
                self._judge(length)
            if self._end - self._start - 4 < length:
                if length + 4 > self.size:
                    self._begin_big(length)
                return
            body = bytes(memoryview(scratch)[self._start + 4 : self._start + 4 + length])
            self._start += 4 + length
            yield body
        if self._start == self._end:
            self._start = self._end = 0

    def _judge(self, length: int) -> None:
        head = bytes(self._scratch[self._start : self._start + 4])
        first, self._first = self._first, False
        if first and length > self.limit:
            for mark, name in _FOREIGN.items():
                if head.startswith(mark):
                    problem = Foreign("DS607", f"this port speaks the dsms protocol, not {name}")
                    problem.speaks = name
                    raise problem
        if length > self.limit:
            raise Oversized(
                "DS601",
                f"a frame of {length} bytes is over the limit of {self.limit}",
                hint="send smaller frames, or start the server with a larger --max-frame",
            )

    def _to_front(self) -> None:
        rest = self._scratch[self._start : self._end]
        self._scratch[: len(rest)] = rest
        self._start, self._end = 0, len(rest)

    def _begin_big(self, length: int) -> None:
        have = memoryview(self._scratch)[self._start + 4 : self._end]
        self._big = _memory(length)
        self._big[: len(have)] = have
        self._start, self._end = 0, len(have)


def _memory(size: int) -> memoryview:
    """Memory that is taken by what is written to it, not by its size: a length alone costs nothing."""
    import numpy as np

    return memoryview(np.empty(size, np.uint8))  # type: ignore[arg-type]
