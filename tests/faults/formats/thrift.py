"""Thrift's compact protocol, as Parquet writes its metadata: bytes <-> a tree that any value can be
changed in.

A struct is a list of [number, type, value], a list or set [type of its elements, [values]], a map
its bytes' rest, which Parquet has none of.  Numbers are Python's, of any size; what is too large
for its type is written nevertheless."""

from __future__ import annotations

import struct
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
MASK = 2**70 - 1


class Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def struct(self) -> list[Any]:
        out, number = [], 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._zigzag()
            out.append([number, kind, self._value(kind)])
        return out

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:
                return 0
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return struct.unpack("<d", self._take(8))[0]
            case 8:
                return self._take(self._varint())
            case 9 | 10:
                return self._list()
            case 12:
                return self.struct()
        raise ValueError(f"Parquet has no type {kind}")

    def _list(self) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 != 15 else self._varint()
        kind = head & 15
        return [kind, [self._byte() if kind < 3 else self._value(kind) for _ in range(size)]]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def _varint(self) -> int:
        out = shift = 0
        while (byte := self._byte()) & 128:
            out |= (byte & 127) << shift
            shift += 7
        return out | byte << shift

    def _zigzag(self) -> int:
        found = self._varint()
        return found >> 1 ^ -(found & 1)


def written(fields: list[Any]) -> bytes:
    """The bytes of a struct, whatever has become of it."""
    out = bytearray()
    before = 0
    for field in fields:
        number, kind, value = (*_list(field), 0, 0, 0)[:3]
        number, kind = _int(number), _int(kind) & 15
        delta = number - before
        out.append((delta if 0 < delta < 16 else 0) << 4 | kind)
        if not 0 < delta < 16:
            out += _zigzag(number)
        before = number
        out += _value(kind, value)
    return bytes(out) + b"\0"


def _value(kind: int, value: Any) -> bytes:
    match kind:
        case 0 | 1 | 2:
            return b""
        case 3:
            return bytes([_int(value) & 255])
        case 4 | 5 | 6:
            return _zigzag(_int(value))
        case 7:
            return struct.pack("<d", value if isinstance(value, float) else 0.0)
        case 9 | 10:
            element, values = (*_list(value), 0, 0)[:2]
            return _elements(_int(element) & 15, _list(values))
        case 12:
            return written(_list(value))
    data = value if isinstance(value, bytes) else b""
    return _varint(len(data)) + data


def _elements(kind: int, values: list[Any]) -> bytes:
    size = len(values)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)
    return head + b"".join(bytes([_int(v) & 255]) if kind < 3 else _value(kind, v) for v in values)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _int(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _zigzag(value: int) -> bytes:
    return _varint((value << 1 ^ value >> 71) & MASK)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
