"""State as bytes and back: the objects of a running engine, without the process's own objects that
they refer to.

What is written is data: numbers, texts, arrays, and objects as a tag with named fields
(`dsms.storage.layout`).  It travels in pickle's encoding, of which a reader knows only the forms of
`dsms.storage.forms`: nothing but registered classes is ever built of a file, and nothing that it
says is executed.  Objects that belong to the process (settings, connections) travel as a name
which the process that reads the state resolves to its own object.  NumPy and Arrow buffers go
beside it (PEP 574), compressed, since state keeps room to grow (`dsms.storage.packed`).
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import cycle
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.errors import DsmsError, InternalError, UsageError
from dsms.storage import forms, layout, opcodes
from dsms.storage.arrow_cuts import cut
from dsms.storage.forms import FORMS
from dsms.storage.layout import LayoutError, Shapes, by_place, kind_of
from dsms.storage.packed import LEGACY, Packing, pack, unpacked

COPIED = 256 << 20  # bytes of state that may be there twice while a checkpoint is written
STRETCH = 8 << 20  # bytes that are copied in one go
MET = 64  # objects that are written in one go,
VALUES = 1 << 12  # ... or numbers and texts: the keys of a table may be a million

Names = Mapping[str, Any]
Refer = Callable[[Any], Any]
# never outside, nor kept elsewhere
PLAIN = frozenset((str, int, float, bool, type(None), bytes, tuple, list, dict))
WRONG = (pickle.UnpicklingError, AttributeError, ImportError, TypeError, LookupError, ValueError,
         EOFError, ArithmeticError, MemoryError, RecursionError, AssertionError, RuntimeError,
         pa.ArrowException, struct.error)  # a long list  # fmt: skip


def freeze(state: Any, outside: Names, refer: Refer = lambda o: None) -> list[Any]:
    """The bytes of `state`, as a list of buffers to be written one after the other.

    outside  objects that are not part of the state, by name
    refer    gives a (plain) reference for an object that is kept elsewhere, None for all others
    Raises InternalError DS931 where something in the state can't be written down."""
    return list(copy(state, outside, refer, 0)())


def copy(
    state: Any,
    outside: Names,
    refer: Refer = lambda o: None,
    most: int = COPIED,
    rest: Callable[[], None] = lambda: None,
    into: Packing | None = None,
) -> Packing:
    """`freeze` in two steps: the state may change once this has returned, and any thread may call
    what is returned, once, for the buffers.  `most` bytes are copied; what is beyond is compressed
    at once, which takes longer but less memory.  Arrow's buffers never change: they are held.
    `rest` is called between two stretches of work, and may take its time, in which the state does
    not change.  `into`: what is filled, so that others can see how much it holds."""
    packing = Packing() if into is None else into
    packing.room = most
    out = io.BytesIO()
    names = {id(o): name for name, o in outside.items()}
    try:
        _Writer(out, names, refer, lambda part: _take(part, packing, rest), rest).dump(state)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InternalError(
            "DS931", f"the state can't be written down: {error}", hint="please report this"
        ) from error
    said = out.getvalue()
    packing.put(said, len(said), 0)
    return packing


def _take(part: pickle.PickleBuffer, packing: Packing, rest: Callable[[], None]) -> None:
    """One buffer of the state's own memory, which changes with it unless it is Arrow's."""
    blob = part.raw()
    if isinstance(blob.obj, pa.Buffer):
        packing.put(blob, 0)
        return
    packing.room -= blob.nbytes
    if packing.room >= 0:
        packing.put(_copied(blob, rest), blob.nbytes)
    else:
        packed = pack(blob, rest)
        packing.put(packed, packed.nbytes)
    rest()


def _copied(blob: memoryview, rest: Callable[[], None]) -> bytes | bytearray:
    if blob.nbytes <= STRETCH:
        return bytes(blob)
    out, flat = bytearray(blob.nbytes), blob.cast("B")
    for start in range(0, len(out), STRETCH):
        out[start : start + STRETCH] = flat[start : start + STRETCH]
        rest()
    return out


def thaw(data: memoryview | bytes, outside: Names, resolve: Refer, where: Path | str) -> Any:
    """The state again, with the caller's own objects `outside`; `resolve` gives the object of a
    reference.

    Raises UsageError DS545 naming `where` if it is damaged, DS546 if it holds what this version
    does not know."""
    version, blobs = unpacked(memoryview(data), where)
    reader: Any = _Reader
    if version == LEGACY:
        from dsms.storage.legacy import LegacyReader as reader
    try:
        opcodes.check(blobs[0])
        return reader(io.BytesIO(blobs[0]), outside, resolve, blobs[1:]).load()
    except (InternalError, *WRONG) as error:  # a fault of what the file says, not of ours
        raise UsageError(
            "DS546",
            f"the state in {where} was written by another version of dsms: {error}",
            hint="start the version that wrote it, or a newer one",
        ) from error


class _Writer(pickle.Pickler):
    def __init__(
        self,
        out: io.BytesIO,
        names: dict[int, str],
        refer: Refer,
        take: Callable[[Any], Any],
        rest: Callable[[], None],
    ) -> None:
        super().__init__(out, 5, buffer_callback=take)
        self._rest, self._met = rest, 0
        self._many = cycle([False] * (VALUES - 1) + [True]).__next__
        self._names, self._refer, self._shapes = names, refer, Shapes()
        self._kinds: dict[type, layout.Kind | None] = {}

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) in PLAIN:  # nearly all there is
            if self._many():
                self._rest()
            return None
        name = self._names.get(id(obj))
        return ("outside", name) if name is not None else self._refer(obj)

    def reducer_override(self, obj: Any) -> Any:
        cls = type(obj)
        self._met += 1
        if not self._met % MET:
            self._rest()
        try:
            kind = self._kinds[cls]
        except KeyError:
            stored = by_place().get((cls.__module__, cls.__qualname__))
            kind = self._kinds[cls] = None if stored is None else kind_of(stored)
        return _other(obj) if kind is None else self._stored(obj, kind)

    def _stored(self, obj: Any, kind: layout.Kind) -> Any:
        if isinstance(obj, Enum):
            return layout.member, (kind.stored.tag, obj.name)
        if kind.made or isinstance(obj, DsmsError):
            make, values = obj.__reduce__()[:2]
            if make is not kind.cls:  # a function
                return forms.called, (_function(make), *values)
            return layout.made, (self._shapes._shape(kind, ()), *values)
        parts = self._shapes.parts(obj, kind)
        if kind.value:
            return layout.value, parts
        return layout.new, (parts[0],), parts, None, None, layout.fill


def _other(obj: Any) -> Any:
    """The form of what is no object of ours."""
    match obj:
        case np.ndarray():
            if obj.dtype == object:
                return forms.objects, (list(obj.reshape(-1)), obj.shape)
            data = pickle.PickleBuffer(_plain(obj))  # type: ignore[arg-type]
            return forms.array, (data, obj.dtype.str, obj.shape, obj.flags.writeable)
        case np.generic():
            return forms.scalar, (obj.dtype.str, obj.tobytes())
        case np.dtype():
            return forms.dtype, (obj.str,)
        case pa.Array() | pa.RecordBatch() | pa.Schema() | pa.Field() | pa.DataType():
            return _arrow(obj)
        case Decimal():
            return forms.decimal, (str(obj),)
        case Fraction():
            return forms.fraction, (obj.numerator, obj.denominator)
        case Counter():
            return forms.counter, (dict(obj),)
        case partial():
            return forms.partly, (_function(obj.func), obj.args, obj.keywords)
        case MethodType():
            return forms.method, (obj.__self__, obj.__func__.__name__)
        case FunctionType():
            return (
                NotImplemented
                if FORMS.get(obj.__name__) is obj
                else (forms.function, (_function(obj),))
            )
        case deque() | OrderedDict():
            return NotImplemented
        case type() if obj is deque or obj is OrderedDict:
            return NotImplemented
        case type() if issubclass(obj, np.generic):
            return forms.scalar_type, (np.dtype(obj).str,)
    if type(obj).__name__ in forms.SKETCHES:
        found: Any = obj
        return forms.sketch, (type(found).__name__, found.serialize())
    what = obj if isinstance(obj, type) else type(obj)
    raise pickle.PicklingError(
        f"{what.__module__}.{what.__qualname__} is not among the stored classes"
    )


def _arrow(obj: Any) -> Any:
    match obj:
        case pa.DataType():
            try:
                if forms.arrow_type(str(obj)) == obj:
                    return forms.arrow_type, (str(obj),)
            except (ValueError, pa.ArrowException):
                pass
            raise pickle.PicklingError(f"columns of type {obj} are not written down")
        case pa.Field():
            raise pickle.PicklingError("fields of schemas are written down in schemas")
        case pa.Schema():
            return forms.arrow_schema, tuple((f.name, f.type, f.nullable) for f in obj)
        case pa.RecordBatch():
            return forms.arrow_columns, (obj.schema, obj.num_rows, *obj.columns)
    if obj.type.num_fields or pa.types.is_dictionary(obj.type):
        raise pickle.PicklingError(f"columns of type {obj.type} are not written down")
    offset, buffers = cut(obj)
    parts = [None if b is None else pickle.PickleBuffer(b) for b in buffers]
    return forms.arrow_array, (obj.type, len(obj), obj.null_count, offset, *parts)


def _function(found: Any) -> str:
    name = forms.NAMES.get(f"{found.__module__}:{found.__qualname__}")
    if name is None:
        raise pickle.PicklingError(
            f"{found.__module__}.{found.__qualname__} is not among the stored functions"
        )
    return name


class _Reader(pickle.Unpickler):
    def __init__(
        self, data: io.BytesIO, outside: Names, resolve: Refer, blobs: Sequence[Any]
    ) -> None:
        super().__init__(data, buffers=blobs)
        self._outside, self._resolve = outside, resolve

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid[1]] if pid[0] == "outside" else self._resolve(pid)

    def find_class(self, module: str, name: str) -> Any:
        """The form of that name, wherever its function was when the file was written."""
        found = FORMS.get(name)
        if found is None:
            raise LayoutError(f"it names {module[:40]}.{name[:40]}, which is no part of a state")
        return found


def _plain(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
