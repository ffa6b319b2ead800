"""Which aggregate a call means (their meanings and types: `dsms.aggregates.cards`).

NULLs are ignored, and over no values the answer is NULL (COUNT: 0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from dsms import lists
from dsms.aggregates.cards import CARDS, Card
from dsms.aggregates.cards.python import PYTHON_AGGREGATE
from dsms.sql.signatures import FunctionError, casts, choose
from dsms.sql.types import Type
from dsms.sql.types import named as type_named

Params = tuple[object, ...]
MOST_EDGES = 10_000


@dataclass(frozen=True, slots=True)
class ResolvedAgg:
    """The aggregate, the cast each argument needs (None: none), its type, and its constants,
    checked."""

    fn: str
    casts: tuple[Type | None, ...]
    type: Type
    params: Params = ()


# constants that are whole numbers
_WHOLE = {"k": (1, 1_000_000), "lg_k": (4, 21), "size": (8, 65_535), "g": (2, 10_000),
          "n": (1, lists.MOST)}  # a table  # fmt: skip
# constants that are words
_WORDS = {"scale": ("linear", "log")}

AGGREGATES = tuple(CARDS.values())
_BY_NAME = {n: a for a in AGGREGATES for n in (a.name, *a.aliases)}


def is_aggregate(name: str) -> bool:
    """Whether an aggregate has that name, in any case."""
    return name.casefold() in _BY_NAME


def aggregate_names(aliases: bool = False) -> list[str]:
    """Names of the aggregates."""
    return list(_BY_NAME) if aliases else [a.name for a in AGGREGATES]


def aggregate(name: str) -> Card:
    """The aggregate of that name or alias, in any case."""
    found = _BY_NAME.get(name.casefold())
    if found is None:
        raise FunctionError("unknown", f"there is no aggregate `{name}`", tuple(aggregate_names()))
    return found


def aggregate_params(name: str) -> tuple[str, ...]:
    """Names of the trailing constant arguments, which the binder moves to `AggCall.params`."""
    return aggregate(name).params


def resolve_aggregate(
    name: str, args: Sequence[Type], *, distinct: bool = False, params: Sequence[object] = ()
) -> ResolvedAgg:
    """The aggregate for arguments of these types (without the constant ones); COUNT without
    arguments is COUNT(*).

    Raises FunctionError.
    """
    spec = aggregate(name)
    if spec.name == "count" and not args:
        spec = aggregate("count_star")
    if distinct and not spec.distinct:
        raise FunctionError("distinct", f"{spec.name} does not take DISTINCT", spec.signatures())
    checked = _checked(spec, params)
    found = choose(spec.name, spec.overloads, args, spec.signatures())
    if spec.params == ("edges",):
        checked = (_edges(spec, checked[0], found.targets[0]),)
    type_ = type_named(str(checked[1])) if spec.name == PYTHON_AGGREGATE else found.type
    if type_ is None:
        raise FunctionError("constant", f"{checked[1]} is no type", position=2)
    return ResolvedAgg(spec.name, casts(args, found.targets), type_, checked)


def _checked(spec: Card, params: Sequence[object]) -> Params:
    params = (
        *params,
        *spec.defaults[max(len(spec.defaults) - (len(spec.params) - len(params)), 0) :],
    )
    if len(params) != len(spec.params):
        wants = " and ".join(spec.params) or "no constant"
        raise FunctionError(
            "constant", f"{spec.name} takes {wants} after its argument", spec.signatures()
        )
    return tuple(_check(spec, what, value) for what, value in zip(spec.params, params, strict=True))


def _check(spec: Card, what: str, value: object) -> object:
    if what in _WHOLE:
        least, most = _WHOLE[what]
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        message = f"{spec.name} needs a number {what} from {least} to {most}, not {_shown(value)}"
        raise FunctionError("constant", message, position=1 + spec.params.index(what))
    if what in _WORDS:
        if value in _WORDS[what]:
            return value
        words = " or ".join(f"'{word}'" for word in _WORDS[what])
        message = f"{spec.name} needs a {what} {words}, not {_shown(value)}"
        raise FunctionError("constant", message, position=1 + spec.params.index(what))
    if what == "edges":
        return value  # of the type of the values, which is known later
    if what in ("sep", "place", "result"):
        if isinstance(value, str):
            return value
        message = f"{spec.name} needs a text {what}, not {_shown(value)}"
        raise FunctionError("constant", message, position=1 + spec.params.index(what))
    try:
        share = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        share = math.nan
    if 0 <= share <= 1:
        return share
    raise FunctionError(
        "constant",
        f"{spec.name} needs a constant share from 0 to 1, not {_shown(value)}",
        position=1,
    )


def _edges(spec: Card, value: object, type_: Type) -> str:
    """A list of the type, as it is kept."""
    if isinstance(value, str):
        texts, bad = lists.canonical(pa.array([value], pa.string()), str(type_))
        edges = [] if bad[0] else lists.read(texts, str(type_)).flatten().to_pylist()
        ascend = None not in edges and all(a < b for a, b in pairwise(edges))
        if 1 <= len(edges) <= MOST_EDGES and ascend and edges[-1] == edges[-1]:
            text: str = texts[0].as_py()
            return text
    message = (
        f"{spec.name} needs a list of 1 to {MOST_EDGES} constant edges that ascend, of the type "
        f"{type_}, not {_shown(value)}"
    )
    raise FunctionError("constant", message, position=1)


def _shown(value: object) -> str:
    return "NULL" if value is None else str(value)
