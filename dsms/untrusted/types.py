"""Which Arrow types may come in: flat ones, a dictionary or runs over them, lists of these, with
parameters in their ranges.

Arrow takes a decimal of any scale from a stranger's schema, and its casts look the scale up in
tables of powers of ten without a check of their own; so types are judged before any value is
touched."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from dsms.errors import UsageError

MAX_COLUMNS = 1 << 14
MOST_FIELDS = 256  # of a struct
MAX_WIDTH = 1 << 20  # bytes of a fixed-size value
_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}  # of a decimal of that many bits
_ZEROS = 38  # as many digits as a DECIMAL has
_FLAT = (
    kinds.is_null, kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_timestamp,
    kinds.is_date, kinds.is_time,
    kinds.is_duration, kinds.is_string, kinds.is_large_string, kinds.is_string_view,
    kinds.is_binary,
    kinds.is_large_binary, kinds.is_binary_view,
)  # a long list  # fmt: skip


def check_schema(schema: pa.Schema) -> None:
    """Raises DS510 for a schema that can't be right, DS503 for a column of a type that no stream
    takes."""
    if len(schema) > MAX_COLUMNS:
        raise UsageError("DS510", f"{len(schema)} columns came, at most {MAX_COLUMNS} are taken")
    for place in range(len(schema)):
        field = schema.field(place)
        name = _name(field, place)
        why = why_not(field.type)
        if why is not None:
            raise UsageError("DS503", f"column {name!r}: {why}")


def _name(field: pa.Field, place: int) -> str:
    try:
        return str(field.name)
    except UnicodeDecodeError:
        raise UsageError("DS510", f"the name of column {place + 1} is not UTF-8") from None


def why_not(type_: pa.DataType) -> str | None:
    """Why values of the type are not taken, or None."""
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    type_ = decoded(type_)
    if is_list(type_):
        return _of_list(type_)
    return _of_struct(type_) if kinds.is_struct(type_) else _flat(type_)


def decoded(type_: pa.DataType) -> pa.DataType:
    """The type of what a dictionary or runs hold; any other as it is."""
    encoded = kinds.is_dictionary(type_) or kinds.is_run_end_encoded(type_)
    return type_.value_type if encoded else type_


def is_list(type_: pa.DataType) -> bool:
    """Whether values are lists of one form or another."""
    return any(
        belongs(type_)
        for belongs in (
            kinds.is_list,
            kinds.is_large_list,
            kinds.is_list_view,
            kinds.is_large_list_view,
            kinds.is_fixed_size_list,
        )
    )


def _of_list(type_: pa.DataType) -> str | None:
    """Why lists of the type are not taken: what is in them is flat, a dictionary, or runs."""
    item = decoded(type_.value_type)
    if isinstance(item, pa.BaseExtensionType):
        return "a list has no items of an extension type"
    if kinds.is_fixed_size_list(type_) and not 0 <= type_.list_size <= MAX_WIDTH:
        return f"lists of {type_.list_size} items each"
    why = _flat(item)
    return None if why is None else f"a list has no items of the Arrow type {_kind(item)}"


def _of_struct(type_: pa.DataType) -> str | None:
    """Why structs of the type are not taken: what is in them is flat, a dictionary, or runs."""
    if not 0 < type_.num_fields <= MOST_FIELDS:
        return f"structs of {type_.num_fields} fields"
    for place in range(type_.num_fields):
        field = type_.field(place)
        _name(field, place)
        kind = decoded(field.type)
        if isinstance(kind, pa.BaseExtensionType) or _flat(kind) is not None:
            return f"a struct has no field of the Arrow type {_kind(kind)}"
    return None


def _flat(type_: pa.DataType) -> str | None:
    if kinds.is_decimal(type_):
        digits, scale = _DIGITS[type_.bit_width], type_.scale
        if not 1 <= type_.precision <= digits or scale > digits:
            return f"no decimal has {type_.precision} digits, {scale} of them behind the point"
        if scale < -_ZEROS:  # the others are made whole before a cast sees them
            return f"a decimal that ends with {-scale} zeros is none of at most {_ZEROS} digits"
        return None
    if kinds.is_fixed_size_binary(type_):
        return (
            None
            if 0 <= type_.byte_width <= MAX_WIDTH
            else f"values of {type_.byte_width} bytes each"
        )
    if any(belongs(type_) for belongs in _FLAT):
        return None
    return f"a stream has no columns of the Arrow type {_kind(type_)}"


def _kind(type_: pa.DataType) -> str:
    """The type's name without what is in it, which may be deep or hold names that can't be
    printed."""
    for known in (
        "struct",
        "list",
        "large_list",
        "list_view",
        "large_list_view",
        "fixed_size_list",
        "map",
        "union",
        "time",
        "interval",
        "dictionary",
        "run_end_encoded",
    ):
        if getattr(kinds, f"is_{known}")(type_):
            return known
    return type(type_).__name__
