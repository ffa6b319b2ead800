"""Typing rules that a signature text cannot say: numbers, DECIMAL digits, instants and lengths,
CASE, IN."""

from __future__ import annotations

from collections.abc import Callable

from dsms.sql.signatures import (
    MAX_DIGITS,
    FunctionError,
    Match,
    Overload,
    Types,
    bends,
    castable,
    common_of,
    common_type,
    digits,
)
from dsms.sql.types import BOOL, INT, NULL, STRING, Kind, Type, decimal


def _exact(args: Types) -> bool:
    """Whether all are DECIMAL or may stand beside DECIMALs, and one is."""
    kinds = {a.kind for a in args}
    return Kind.DECIMAL in kinds and kinds <= {Kind.DECIMAL, Kind.INT, Kind.NULL}


def _decimals(n: int, result: Callable[..., Type]) -> Callable[[Types], Match | None]:
    def match(args: Types) -> Match | None:
        if len(args) != n or not _exact(args):
            return None
        targets = tuple(digits(a) for a in args)
        return Match(targets, result(*targets), 1)

    return match


def _sum_type(a: Type, b: Type) -> Type:
    scale = max(a.scale, b.scale)
    return decimal(
        min(MAX_DIGITS, max(a.precision - a.scale, b.precision - b.scale) + scale + 1), scale
    )


def _product_type(a: Type, b: Type) -> Type:
    scale = a.scale + b.scale
    if scale > MAX_DIGITS:
        rule = (
            f"has {scale} digits after the point, {MAX_DIGITS} is the most: cast one to a "
            "smaller scale"
        )
        raise FunctionError("types", f"{a} * {b} {rule}")
    return decimal(min(MAX_DIGITS, a.precision + b.precision), scale)


def _rest_type(a: Type, b: Type) -> Type:
    found = common_type(a, b)
    assert found is not None  # two DECIMALs always have one
    return found


def _whole_type(a: Type) -> Type:
    return decimal(min(MAX_DIGITS, a.precision - a.scale + 1), 0)


def _rounded_type(a: Type) -> Type:
    return decimal(min(MAX_DIGITS, a.precision + 1), a.scale)


def _round_to(args: Types) -> Match | None:
    if len(args) != 2 or args[0].kind is not Kind.DECIMAL or args[1] not in (INT, NULL):
        return None
    return Match((args[0], INT), _rounded_type(args[0]))


ADD_DECIMALS = Overload(
    "(DECIMAL, DECIMAL) -> DECIMAL(.., the larger scale)", _decimals(2, _sum_type)
)
MUL_DECIMALS = Overload(
    "(DECIMAL, DECIMAL) -> DECIMAL(.., the sum of scales)", _decimals(2, _product_type)
)
MOD_DECIMALS = Overload(
    "(DECIMAL, DECIMAL) -> DECIMAL(.., the larger scale)", _decimals(2, _rest_type)
)
SAME_DECIMAL = Overload("(DECIMAL(p,s)) -> DECIMAL(p,s)", _decimals(1, lambda a: a))
WHOLE_DECIMAL = Overload("(DECIMAL(p,s)) -> DECIMAL(p-s+1,0)", _decimals(1, _whole_type))
SIGN_DECIMAL = Overload("(DECIMAL) -> INT", _decimals(1, lambda a: INT))
ROUND_DECIMAL = Overload("(DECIMAL(p,s), INT) -> DECIMAL(p+1,s)", _round_to)


def _comparable(args: Types) -> Match | None:
    """Two DECIMALs (or INT and DECIMAL) compare exactly whatever their scales, so they need no
    common column type."""
    if len(args) != 2:
        return None
    if _exact(args):
        return Match(tuple(digits(a) for a in args), BOOL)
    common = common_type(*args)
    if common is None:
        return None
    common = INT if common is NULL else common
    cost = bends(args, (common, common))
    return None if cost is None else Match((common, common), BOOL, cost)


COMPARE = Overload("(T, T) -> BOOL", _comparable)


def _in_list(args: Types) -> Match | None:
    if len(args) >= 2 and _exact(args):
        return Match(tuple(digits(a) for a in args), BOOL)
    common = common_of(args) if len(args) >= 2 else None
    if common is None:
        return None
    common = INT if common is NULL else common
    return Match((common,) * len(args), BOOL)


IN_LIST = Overload("(T, T...) -> BOOL", _in_list)


def _case(args: Types) -> Match | None:
    if len(args) < 3 or len(args) % 2 == 0:
        return None
    conditions = args[:-1:2]
    values = (*args[1::2], args[-1])
    common = common_of(values)
    if common is None or any(c not in (BOOL, NULL) for c in conditions):
        return None
    return Match((BOOL, common) * (len(args) // 2) + (common,), common)


CASE = Overload("(BOOL, T, ..., T) -> T", _case)


def _nullif(args: Types) -> Match | None:
    """NULLIF keeps the type of its first argument only where the second needs no wider one."""
    common = common_type(*args) if len(args) == 2 else None
    return None if common is None else Match((common, common), common)


NULLIF = Overload("(T, T) -> T", _nullif)


def _text_of(args: Types) -> Match | None:
    """`||` makes text of its partners if one is text."""
    if len(args) < 2 or STRING not in args or not all(castable(a, STRING) for a in args):
        return None
    return Match((STRING,) * len(args), STRING, sum(a != STRING for a in args))


CONCAT = Overload("(STRING, any...) -> STRING", _text_of)


def _texts(args: Types) -> Match | None:
    if len(args) < 2 or args[0] not in (STRING, NULL) or not all(castable(a, STRING) for a in args):
        return None
    return Match((STRING,) * len(args), STRING, 1)


CONCAT_WS = Overload("(STRING, any...) -> STRING", _texts)


def _any(result: Type) -> Callable[[Types], Match | None]:
    return lambda args: Match(args, result) if len(args) == 1 else None


ANY_TO_BOOL = Overload("(any) -> BOOL", _any(BOOL))
SOME_TO_INT = Overload("(any, ...) -> INT", lambda args: Match(args, INT) if args else None)
