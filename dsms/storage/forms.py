"""What a state is made of beside stored classes: arrays, numbers, sketches, functions by name.

Each form is a function that makes the thing again of plain data.  A reader knows these forms and
nothing else, so a file can name no function or class of its choice.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.storage import layout
from dsms.storage.layout import LayoutError

# Functions that stand in states, by names that outlive their places.
FUNCTIONS: Mapping[str, str] = {
    "compile_expr": "dsms.operators.expressions.compile:compile_expr",
    "compile_many": "dsms.operators.expressions.compile:compile_many",
    "compile_predicate": "dsms.operators.expressions.compile:compile_predicate",
    "look": "dsms.operators.pieces:go_on",
    "onto": "dsms.sharing.shared_join:_onto",
}
NAMES = {place: name for name, place in FUNCTIONS.items()}
METHODS = frozenset({"looked", "moved"})  # of objects in states, kept as what is to be called
SKETCHES = ("cpc_sketch", "frequent_strings_sketch", "kll_doubles_sketch")  # of Apache DataSketches
MOST = 2**40  # values of a column: Arrow reads from below zero where an offset is negative
_DTYPE = re.compile(r"[<>|=]?[biufcSUM]\d*(\[\w+\])?|bool|\|O|O")
_DECIMAL = re.compile(r"decimal128\((\d{1,2}), (-?\d{1,2})\)")


def array(data: Any, kind: str, shape: tuple[int, ...], writeable: bool) -> np.ndarray:
    """A NumPy array over its bytes."""
    out = np.frombuffer(data, dtype(kind)).reshape(shape)
    if out.flags.writeable != writeable:
        if writeable:
            return out.copy()
        out.flags.writeable = False
    return out


def objects(values: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """An array of Python objects."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


def scalar(kind: str, data: bytes) -> Any:
    """A NumPy number."""
    return np.frombuffer(data, dtype(kind))[0]


def dtype(text: str) -> np.dtype:
    if not _DTYPE.fullmatch(text):
        raise LayoutError(f"there is no array type {text[:40]}")
    return np.dtype(text)


def scalar_type(name: str) -> type:
    """A class of NumPy numbers."""
    return dtype(name).type


def decimal(text: str) -> Decimal:
    return Decimal(text)


def fraction(numerator: int, denominator: int) -> Fraction:
    if not (isinstance(numerator, int) and isinstance(denominator, int)):
        raise LayoutError("a fraction of something else than whole numbers")
    return Fraction(numerator, denominator)


def counter(counts: dict[Any, int]) -> Counter[Any]:
    return Counter(counts)


def sketch(kind: str, data: bytes) -> Any:
    """A sketch of Apache DataSketches."""
    if kind not in SKETCHES:
        raise LayoutError(f"there is no sketch {kind[:40]}")
    return getattr(import_module("datasketches"), kind).deserialize(data)


def function(name: str) -> Callable[..., Any]:
    """One of FUNCTIONS."""
    return _found(name)


@cache
def _found(name: str) -> Any:
    if name not in FUNCTIONS:
        raise LayoutError(f"there is no function {name[:40]} for states")
    module, _, attribute = FUNCTIONS[name].partition(":")
    return getattr(import_module(module), attribute)


def called(name: str, *arguments: Any) -> Any:
    """What a function of FUNCTIONS gives."""
    return _found(name)(*arguments)


def partly(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A function of FUNCTIONS with some of its arguments."""
    return partial(_found(name), *arguments, **named)


def method(of: Any, name: str) -> Any:
    """A method of an object, of METHODS."""
    if name not in METHODS:
        raise LayoutError(f"there is no method {name[:40]} for states")
    return getattr(of, name)


# ---------------------------------------------------------------- Arrow


def arrow_type(text: str) -> pa.DataType:
    """A type without parameters that could be wrong."""
    if found := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(found[1]), int(found[2]))
    return pa.type_for_alias(text)


def arrow_schema(*fields: tuple[str, pa.DataType, bool]) -> pa.Schema:
    """Of (name, type, whether it may be NULL)."""
    return pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in fields])


def arrow_array(kind: pa.DataType, length: int, nulls: int, offset: int, *buffers: Any) -> pa.Array:
    """An array over its buffers, which are checked."""
    parts = [None if b is None else pa.py_buffer(b) for b in buffers]
    if not (0 <= length <= MOST and 0 <= offset <= MOST and -1 <= nulls <= length):
        raise LayoutError(f"a column of {length} values, {nulls} of them NULL, from {offset} on")
    out = pa.Array.from_buffers(kind, length, parts, nulls, offset)
    out.validate(full=True)
    return out


def arrow_columns(schema: pa.Schema, rows: int, *columns: pa.Array) -> pa.RecordBatch:
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(list(columns), schema=schema)


# Names in files: what stands here may never be taken away or come to mean something else.
FORMS: Mapping[str, Any] = {
    "new": layout.new,
    "fill": layout.fill,
    "value": layout.value,
    "made": layout.made,
    "member": layout.member,
    "array": array,
    "objects": objects,
    "scalar": scalar,
    "dtype": dtype,
    "scalar_type": scalar_type,
    "decimal": decimal,
    "fraction": fraction,
    "counter": counter,
    "sketch": sketch,
    "function": function,
    "called": called,
    "partly": partly,
    "method": method,
    "arrow_type": arrow_type,
    "arrow_schema": arrow_schema,
    "arrow_array": arrow_array,
    "arrow_columns": arrow_columns,
    "deque": deque,
    "OrderedDict": OrderedDict,
}
