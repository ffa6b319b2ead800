"""Text to values, as the documentation of `cast` says: a pattern tells what is well formed, then
Arrow converts."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.decimals import decimals
from dsms.errors import InternalError
from dsms.instants import instants
from dsms.lengths import lengths
from dsms.operators.expressions.arrays import blank, either
from dsms.operators.expressions.decimals import from_integers, to_unscaled
from dsms.operators.expressions.errors import CAST, ErrorCounter
from dsms.operators.expressions.node import Built, Kernel
from dsms.sql.types import Kind, Type
from dsms.typed_texts import READ

_WHOLE = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FLOAT = r"^[+-]?(([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|inf|infinity))$"
_TRUE = ("true", "t", "yes", "y", "on", "1")
_FALSE = ("false", "f", "no", "n", "off", "0")


def parse(to: Type) -> Built:
    """The kernel from STRING to the type."""
    match to.kind:
        case Kind.BYTES:
            return Built(lambda errors, x: x.cast(pa.binary()))
        case Kind.BOOL:
            return Built(_trimmed(_bool), True)
        case Kind.INT:
            return Built(_trimmed(_int), True)
        case Kind.FLOAT:
            return Built(_trimmed(_float), True)
        case Kind.DECIMAL:
            return Built(_trimmed(_decimal(to)), True)
        case Kind.TIMESTAMP:
            return Built(_trimmed(_timestamp), True)
        case Kind.INTERVAL:
            return Built(_trimmed(_interval), True)
        case Kind.DATE | Kind.TIME | Kind.UUID:
            return Built(_typed(to), True)
    raise InternalError("DS902", f"no cast from STRING to {to}; please report this")


def _trimmed(kernel: Kernel) -> Kernel:
    return lambda errors, x: kernel(errors, pc.ascii_trim_whitespace(x))


def _drop(errors: ErrorCounter, x: pa.Array, good: pa.Array, to: str) -> pa.Array:
    """The texts with NULL where they are not good (NULL: not there at all), which are counted."""
    bad = ~pc.fill_null(good, True).to_numpy(zero_copy_only=False)
    if not bad.any():
        return x
    sample = x[int(np.flatnonzero(bad)[0])].as_py()
    errors.add(int(bad.sum()), CAST, f"'{sample[:40]}' is no {to}")
    return blank(x, bad)


def _bool(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    code = pc.index_in(pc.utf8_lower(x), value_set=pa.array(_TRUE + _FALSE))
    _drop(errors, x, pc.or_(pc.is_valid(code), pc.is_null(x)), "BOOL")
    return pc.less(code, len(_TRUE))


def _without_plus(x: pa.Array) -> pa.Array:
    plus = pc.starts_with(x, "+")
    return pc.if_else(plus, pc.utf8_slice_codeunits(x, 1), x) if pc.any(plus).as_py() else x


def _int(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    x = _without_plus(_drop(errors, x, pc.match_substring_regex(x, _WHOLE), "INT"))
    try:
        return x.cast(pa.int64())
    except pa.ArrowInvalid:
        return _long_ints(errors, x)


def _long_ints(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    """Some text has more digits than an INT (perhaps zeros): Python reads the long ones."""
    long = pc.fill_null(pc.greater_equal(pc.binary_length(x), 19), False)
    texts = x.filter(long).to_pylist()
    values = [int(t) if len(t) <= 4000 else 2**63 for t in (_short(t) for t in texts)]
    fits = [-(2**63) <= v < 2**63 for v in values]
    for text, ok in zip(texts, fits, strict=True):
        errors.add(int(not ok), CAST, f"'{text[:40]}' is no INT")
    part = pa.array([v if ok else None for v, ok in zip(values, fits, strict=True)], pa.int64())
    rest = either(long, None, x).cast(pa.int64())
    return pc.replace_with_mask(rest, long, part)


def _short(text: str) -> str:
    """Without leading zeros."""
    digits = text.lstrip("+-").lstrip("0") or "0"
    return "-" + digits if text[0] == "-" else digits


def _float(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    x = _drop(errors, x, pc.match_substring_regex(x, _FLOAT), "FLOAT")
    out = x.cast(pa.float64())
    if not pc.any(pc.is_inf(out)).as_py():
        return out
    large = pc.and_(pc.is_inf(out), pc.match_substring_regex(x, "[0-9]"))
    return blank(out, _too_large(errors, x, large.fill_null(False)))


def _too_large(errors: ErrorCounter, x: pa.Array, large: pa.Array) -> np.ndarray:
    """The numbers that no FLOAT is near, which are counted."""
    bad = large.to_numpy(zero_copy_only=False)
    if bad.any():
        sample = x[int(np.flatnonzero(bad)[0])].as_py()
        errors.add(int(bad.sum()), CAST, f"'{sample[:40]}' is too large for FLOAT")
    return bad


def _decimal(to: Type) -> Kernel:
    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        x = _drop(errors, x, pc.match_substring_regex(x, _NUMBER), str(to))
        try:
            return decimals(x, to.arrow)
        except pa.ArrowInvalid:  # some text has more digits after the point, or before it
            return _long_decimals(errors, x, to)

    return kernel


def _long_decimals(errors: ErrorCounter, x: pa.Array, to: Type) -> pa.Array:
    found: list[int | None] = []
    for text in x.to_pylist():
        number = None if text is None else to_unscaled(_exact(text), to)
        errors.add(
            int(text is not None and number is None), CAST, f"'{(text or '')[:40]}' is no {to}"
        )
        found.append(number)
    return from_integers(found, to)


def _exact(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of very many digits
        return Decimal("nan")


def _timestamp(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    out = instants(x)
    _drop(errors, x, pc.or_(pc.is_valid(out), pc.is_null(x)), "TIMESTAMP")
    return out


def _interval(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    out = lengths(x)
    _drop(errors, x, pc.or_(pc.is_valid(out), pc.is_null(x)), "INTERVAL")
    return out


def _typed(to: Type) -> Kernel:
    read = READ[str(to)]

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        out = read(x)
        _drop(errors, x, pc.or_(pc.is_valid(out), pc.is_null(x)), str(to))
        return out

    return kernel
