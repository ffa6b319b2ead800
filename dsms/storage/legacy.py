"""States of layout 4, the first: pickles in which classes stood under their modules' names.

They are read by pickle's own reader in Python, with three differences.  Only what `legacy.txt` and
this page list can be named.  What an object was made of goes through the same upgrades as version 1
of its tag (`dsms.storage.layout`).  And a value is put together when all of its fields are known,
so that it may have become one of another class.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy._core.multiarray import _reconstruct, scalar

from dsms.storage import forms, layout
from dsms.storage.layout import LayoutError

TABLE = Path(__file__).with_name("legacy.txt")
METHODS = frozenset(
    {
        "looked",
        "moved",
        "empty",
        "lift",
        "lower",
        "combine",
        "subtract",
        "size",
        "take",
        "concat",
        "nbytes",
    }
)


def _method(of: Any, name: str) -> Any:
    if name not in METHODS:
        raise LayoutError(f"there is no method {name[:40]} for states")
    return getattr(of, name)


def _restored(data: Any) -> pa.Array:
    out = pa.lib._restore_array(data)
    out.validate(full=True)
    return out


FUNCTIONS: dict[tuple[str, str], Any] = {
    ("builtins", "getattr"): _method,
    ("collections", "Counter"): Counter,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "deque"): deque,
    ("decimal", "Decimal"): Decimal,
    ("fractions", "Fraction"): Fraction,
    ("functools", "partial"): partial,
    ("numpy", "bool"): np.bool_,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "float64"): np.float64,
    ("numpy", "int8"): np.int8,
    ("numpy", "int32"): np.int32,
    ("numpy", "int64"): np.int64,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "scalar"): scalar,
    ("pyarrow.lib", "_reconstruct_record_batch"): pa.lib._reconstruct_record_batch,
    ("pyarrow.lib", "_restore_array"): _restored,
    ("pyarrow.lib", "decimal128"): pa.decimal128,
    ("pyarrow.lib", "field"): pa.field,
    ("pyarrow.lib", "py_buffer"): pa.py_buffer,
    ("pyarrow.lib", "schema"): pa.schema,
    ("pyarrow.lib", "type_for_alias"): pa.type_for_alias,
    ("dsms.storage.frozen", "_array"): forms.array,
    ("dsms.storage.frozen", "_sketch"): forms.sketch,
    ("dsms.operators.expressions.compile", "compile_expr"): partial(forms.called, "compile_expr"),
    ("dsms.operators.expressions.compile", "compile_many"): partial(forms.called, "compile_many"),
    ("dsms.operators.expressions.compile", "compile_predicate"): partial(
        forms.called, "compile_predicate"
    ),
}
NAMED = {("dsms.operators.pieces", "go_on"): "look", ("dsms.running.sharing.stem", "_onto"): "onto"}


@dataclass(frozen=True, slots=True)
class Old:
    """A class of layout 4: its tag, and its fields in their order."""

    tag: str
    fields: tuple[str, ...]

    @property
    def kind(self) -> layout.Kind:
        return layout.kind_of(layout.by_tag()[self.tag])


@cache
def _olds() -> dict[tuple[str, str], Old]:
    out = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            place, tag, *fields = line.split(" ")
            module, _, name = place.partition(":")
            out[module, name] = Old(
                tag, tuple(fields[0].split(",")) if fields and fields[0] else ()
            )
    return out


class _StandIn:
    """A value whose fields are still to come."""

    old: Old
    place: int = -1  # in the reader's memo


_Python: Any = vars(pickle)["_Unpickler"]  # the reader that is written in Python


class LegacyReader(_Python):  # type: ignore[misc]
    """See `dsms.storage.frozen`; same arguments as its reader."""

    dispatch = dict(_Python.dispatch)

    def __init__(
        self, data: io.BytesIO, outside: Any, resolve: Callable[[Any], Any], blobs: Sequence[Any]
    ) -> None:
        super().__init__(data, buffers=blobs)
        self._outside, self._resolve = outside, resolve
        self._mutable: dict[type, Old] = {}

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid[1]] if pid[0] == "outside" else self._resolve(pid)

    def find_class(self, module: str, name: str) -> Any:
        old = _olds().get((module, name))
        if old is None:
            return _named(module, name)
        kind = old.kind
        if kind.made or issubclass(kind.cls, Enum | Exception):
            return kind.cls
        if kind.value:
            return type("StandIn", (_StandIn,), {"old": old})
        self._mutable[kind.cls] = old
        return kind.cls

    def load_build(self) -> None:
        found = self.stack[-2]
        if isinstance(found, _StandIn):
            fields = _fields(found.old, self.stack.pop())
            self.stack[-1] = self.memo[found.place] = layout.valued(found.old.kind, 1, fields)
        elif type(found) in self._mutable:
            old = self._mutable[type(found)]
            layout.put(found, old.kind, 1, _fields(old, self.stack.pop()))
        else:
            super().load_build()

    dispatch[pickle.BUILD[0]] = load_build

    def load_memoize(self) -> None:
        found = self.stack[-1]
        if isinstance(found, _StandIn):
            found.place = len(self.memo)
        self.memo[len(self.memo)] = found

    dispatch[pickle.MEMOIZE[0]] = load_memoize


def _named(module: str, name: str) -> Any:
    if (module, name) in NAMED:
        return forms.function(NAMED[module, name])
    found = FUNCTIONS.get((module, name))
    if found is None:
        raise LayoutError(f"it names {module[:60]}.{name[:60]}, which is no part of a state")
    return found


def _fields(old: Old, state: Any) -> dict[str, Any]:
    """By name what an object was made of."""
    match state:
        case dict():
            return state
        case list():
            return dict(zip(old.fields, state, strict=True))
        case (None | dict() as attributes, dict() as slots):
            return {**(attributes or {}), **slots}
        case tuple():
            return dict(enumerate(state))  # type: ignore[arg-type]
    raise LayoutError(f"a `{old.tag}` is made of something else")
