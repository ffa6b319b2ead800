"""What a state's pickle may consist of: what a writer of protocol 5 writes, and nothing else.

A reader makes room for as many objects as the number says under which one is put down to be
referred to (PUT, LONG_BINPUT): a byte that has changed in a file would take gigabytes.  Writers of
protocol 5 number none (MEMOIZE).  Formats of lines, of protocol 0, are of no use, either.
"""

from __future__ import annotations

import re

from dsms.storage.layout import LayoutError

# operations with 0, 1, 2, 4 and 8 bytes behind them, as many as there are in a row
_PLAIN = re.compile(
    rb"(?:[N\x88\x89()t\x85\x86\x87\]ael}su\x8f\x90\x91Rbo\x81\x92\x93Q\x940"
    rb"12\x97\x98]"
    rb"|[\x80\x82Kh].|[\x83M]..|[\x84Jj].{4}|[G\x95].{8})*+",
    re.DOTALL,
)
# those that are followed by a length of so many bytes, and by that many more
_COUNTED = {b"C": 1, b"\x8c": 1, b"\x8a": 1, b"B": 4, b"X": 4, b"\x8b": 4, b"\x8e": 8, b"\x8d": 8,
            b"\x96": 8}  # a table  # fmt: skip
_STOP = b"."


def check(said: bytes | bytearray | memoryview) -> None:
    """Raises LayoutError for an operation that no writer of a state uses, and for values that are
    longer than what is there, for which a reader would make room; what is wrong otherwise, it
    says."""
    at = 0
    while True:
        found = _PLAIN.match(said, at)
        at = found.end() if found else at
        operation = bytes(said[at : at + 1])
        if operation in (_STOP, b""):
            return
        size = _COUNTED.get(operation)
        if size is None:
            raise LayoutError(f"it has an operation {operation!r}, which is no part of a state")
        first = at + 1 + size
        at = first + int.from_bytes(said[at + 1 : first], "little")
        if at > len(said):
            raise LayoutError("it says more than there is")
