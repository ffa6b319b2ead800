"""State as bytes and back: the objects of a running engine, pickled with what they stand on left out.

What is written is data: arrays, numbers, dataclasses of ours.  Functions travel by their names, compiled expressions as
the expressions they were compiled from, and objects that belong to the process (settings, connections) by a name under
which whoever reads the state puts in his own.  NumPy and Arrow buffers go beside the pickle (PEP 574), compressed,
since state keeps room to grow.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from dsms.errors import InternalError, UsageError

MAGIC = b"dsmsST01"
VERSION = 4  # of what the pickles hold: raise it with every change of a class that runs in an engine
SMALL = 512  # bytes up to which a buffer is not compressed
_HEAD = struct.Struct("<8sIQ")  # magic, length and checksum of the table of contents

_SKETCHES = ("cpc_sketch", "frequent_strings_sketch", "kll_doubles_sketch")  # of Apache DataSketches

Names = Mapping[str, Any]
Refer = Callable[[Any], Any]


def freeze(state: Any, outside: Names, refer: Refer = lambda o: None) -> list[Any]:
    """The bytes of `state`, as a list of buffers to be written one after the other.

    outside  objects that are not part of the state, by name
    refer    gives a (picklable) reference for an object that is kept elsewhere, None for all others
    Raises InternalError DS931 where something in the state can't be written down."""
    parts: list[pickle.PickleBuffer] = []
    out = io.BytesIO()
    try:
        _Writer(out, {id(o): name for name, o in outside.items()}, refer, parts.append).dump(state)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InternalError("DS931", f"the state can't be written down: {error}", hint="please report this") from error
    return _packed([memoryview(out.getbuffer()), *(p.raw() for p in parts)])


def thaw(data: memoryview | bytes, outside: Names, resolve: Refer, where: Path | str) -> Any:
    """The state again, with the caller's own objects `outside`; `resolve` gives the object of a reference.

    Raises UsageError DS545 naming `where` if it is damaged, DS546 if another version wrote it."""
    blobs = _unpacked(memoryview(data), where)
    try:
        return _Reader(io.BytesIO(blobs[0]), outside, resolve, blobs[1:]).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, TypeError, KeyError, ValueError, EOFError) as error:
        raise UsageError("DS546", f"the state in {where} was written by another version of dsms: {error}",
                         hint="start the version that wrote it") from error  # fmt: skip


class _Writer(pickle.Pickler):
    def __init__(self, out: io.BytesIO, names: dict[int, str], refer: Refer, take: Callable[[Any], Any]) -> None:
        super().__init__(out, 5, buffer_callback=take)
        self._names, self._refer = names, refer

    def persistent_id(self, obj: Any) -> Any:
        name = self._names.get(id(obj))
        return ("outside", name) if name is not None else self._refer(obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray) and obj.dtype != object:
            data = pickle.PickleBuffer(_plain(obj))  # type: ignore[arg-type]
            return _array, (data, obj.dtype.str, obj.shape, obj.flags.writeable)
        if isinstance(obj, pa.Array) and obj.get_total_buffer_size() > obj.nbytes + SMALL:
            return pa.concat_arrays([obj]).__reduce__()
        if hasattr(obj, "py_func"):  # a kernel
            return _named, (obj.py_func.__module__, obj.py_func.__qualname__)
        if type(obj).__name__ in _SKETCHES:
            return _sketch, (type(obj).__name__, obj.serialize())
        return NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, outside: Names, resolve: Refer, blobs: Sequence[Any]) -> None:
        super().__init__(data, buffers=blobs)
        self._outside, self._resolve = outside, resolve

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid[1]] if pid[0] == "outside" else self._resolve(pid)


def _plain(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _array(data: Any, dtype: str, shape: tuple[int, ...], writeable: bool) -> np.ndarray:
    array = np.frombuffer(data, np.dtype(dtype)).reshape(shape)
    if array.flags.writeable != writeable:
        if writeable:
            return array.copy()
        array.flags.writeable = False
    return array


def _named(module: str, name: str) -> Any:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _sketch(kind: str, data: bytes) -> Any:
    return getattr(import_module("datasketches"), kind).deserialize(data)


# ---------------------------------------------------------------- bytes


def _packed(blobs: Sequence[memoryview]) -> list[Any]:
    stored, sizes = [], []
    for blob in blobs:
        small = blob.nbytes <= SMALL
        data = bytes(blob) if small else pa.compress(blob, codec="lz4", asbytes=True)
        stored.append(data)
        sizes.append((len(data), blob.nbytes, xxhash.xxh3_64_intdigest(data)))
    table = {"version": VERSION, "python": sys.version_info[:2], "blobs": sizes}
    head = json.dumps(table).encode()
    return [_HEAD.pack(MAGIC, len(head), xxhash.xxh3_64_intdigest(head)), head, *stored]


def _unpacked(data: memoryview, where: Path | str) -> list[bytearray]:
    try:
        magic, length, crc = _HEAD.unpack_from(data)
        head = bytes(data[_HEAD.size : _HEAD.size + length])
        if magic != MAGIC or xxhash.xxh3_64_intdigest(head) != crc:
            raise ValueError("its head is not what was written")
        table = json.loads(head)
        if table["version"] != VERSION:
            raise UsageError("DS546", f"the state in {where} was written by another version of dsms "
                             f"(layout {table['version']}, this one is {VERSION})",
                             hint="start the version that wrote it")  # fmt: skip
        return _blobs(data[_HEAD.size + length :], table["blobs"])
    except (struct.error, ValueError, KeyError, json.JSONDecodeError, pa.ArrowException) as error:
        raise UsageError("DS545", f"the state in {where} is damaged: {error}",
                         hint="restore it from a backup") from None  # fmt: skip


def _blobs(data: memoryview, sizes: Sequence[tuple[int, int, int]]) -> list[bytearray]:
    out, at = [], 0
    for stored, size, crc in sizes:
        part = data[at : at + stored]
        if len(part) != stored or xxhash.xxh3_64_intdigest(part) != crc:
            raise ValueError(f"a part of it at byte {at} is not what was written")
        at += stored
        out.append(bytearray(part) if size <= SMALL else bytearray(pa.decompress(part, size, codec="lz4")))
    return out
