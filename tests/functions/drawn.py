"""Functions and aggregates in Python that are drawn at random: their names say what they are made
of, and the module makes them when they are asked for.

    Int_chain0_last1       an aggregate: of its first argument the chain, of the second the last
                           value, and of these states an INT
    Text_chain0_minus      with `subtract`
    money                  a function, of any arguments

All that they compute is exact, so the same whatever they are put together from.  Some states are
not made of rows in another order (`chain`, `first`, `last`, `affine`, `rise`), and what is
subtracted must be the oldest part (`chain` says so where it isn't).
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from typing import Any
from zlib import crc32

import pyarrow as pa

P = 97  # what numbers are taken modulo of, a prime
State = tuple[Any, ...]


def number(value: Any) -> int:
    """0 <= number < P."""
    return crc32(shown(value).encode()) % P


def shown(value: Any) -> str:
    """Equal for equal values of SQL, and for numbers of whatever type a column has."""
    return repr(value + 0.0) if isinstance(value, float | int) else str(value)


def plain(column: pa.Array) -> list[Any]:
    """Values; instants and durations as numbers."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    return column.to_pylist()


# ---------------------------------------------------------------- parts of states


class Count:
    """How many rows."""

    types: tuple[pa.DataType | None, ...] = (pa.int64(),)

    def lift(self, value: Any) -> State:
        return (1,)

    def combine(self, a: State, b: State) -> State:
        return (a[0] + b[0],)

    def subtract(self, a: State, b: State) -> State:
        return (a[0] - b[0],)


class Total(Count):
    """A sum of numbers."""

    def lift(self, value: Any) -> State:
        return (number(value),)


class Typed(Total):
    """A sum of integers or of floats, as values are: so its column has the one type or the
    other."""

    types = (None,)

    def lift(self, value: Any) -> State:
        found = number(value)
        return (found if found % 2 else found + 0.5,)


class Most:
    """The greatest number."""

    types = (pa.int8(),)

    def lift(self, value: Any) -> State:
        return (number(value),)

    def combine(self, a: State, b: State) -> State:
        return (max(a[0], b[0]),)


class Bits:
    """A set of small numbers."""

    types = (pa.uint16(),)

    def lift(self, value: Any) -> State:
        return (1 << number(value) % 16,)

    def combine(self, a: State, b: State) -> State:
        return (a[0] | b[0],)


class Maybe:
    """The sum of even numbers; NULL where there is none."""

    types = (None,)

    def lift(self, value: Any) -> State:
        found = number(value)
        return (None if found % 2 else found,)

    def combine(self, a: State, b: State) -> State:
        return (b[0] if a[0] is None else a[0] if b[0] is None else a[0] + b[0],)


class First:
    """The oldest value."""

    types = (pa.string(),)

    def lift(self, value: Any) -> State:
        return (shown(value),)

    def combine(self, a: State, b: State) -> State:
        return a


class Last(First):
    """The newest value."""

    def combine(self, a: State, b: State) -> State:
        return b


class Chain(First):
    """All values in their order."""

    types = (pa.binary(),)

    def lift(self, value: Any) -> State:
        return (shown(value).encode() + b",",)

    def combine(self, a: State, b: State) -> State:
        return (a[0] + b[0],)

    def subtract(self, a: State, b: State) -> State:
        if not a[0].startswith(b[0]):
            raise ValueError(f"{b[0]!r} is not the oldest part of {a[0]!r}")
        return (a[0][len(b[0]) :],)


class Affine:
    """y = u x + v modulo P for each row, one after the other."""

    types = (pa.int32(), pa.int64())

    def lift(self, value: Any) -> State:
        found = number(value)
        return (found % (P - 1) + 1, found * 5 % P)

    def combine(self, a: State, b: State) -> State:
        return (a[0] * b[0] % P, (b[0] * a[1] + b[1]) % P)

    def subtract(self, a: State, b: State) -> State:
        u = a[0] * pow(b[0], -1, P) % P
        return (u, (a[1] - u * b[1]) % P)


class Rise:
    """The longest run of numbers that don't fall: rows, first and last number, and the lengths of
    the runs at the beginning, at the end and of the longest."""

    types = (pa.int64(),) * 6

    def lift(self, value: Any) -> State:
        return (1, number(value), number(value), 1, 1, 1)

    def combine(self, a: State, b: State) -> State:
        joined = b[1] >= a[2]
        head = a[0] + b[3] if joined and a[3] == a[0] else a[3]
        tail = b[0] + a[4] if joined and b[4] == b[0] else b[4]
        return (a[0] + b[0], a[1], b[2], head, tail, max(a[5], b[5], joined * (a[4] + b[3])))


PARTS: dict[str, Any] = {
    "count": Count(),
    "total": Total(),
    "typed": Typed(),
    "most": Most(),
    "bits": Bits(),
    "maybe": Maybe(),
    "first": First(),
    "last": Last(),
    "chain": Chain(),
    "affine": Affine(),
    "rise": Rise(),
}

# ---------------------------------------------------------------- what comes of them


def _int(said: str) -> int | None:
    return None if number(said) % 11 == 0 else number(said)


def _list(said: str) -> str | None:
    return None if (found := _int(said)) is None else f"[{found},null]"


def _decimal(said: str) -> Decimal | None:
    return None if (found := _int(said)) is None else Decimal(found).scaleb(-2)


RESULTS: dict[str, tuple[pa.DataType | None, Any]] = {
    "int": (pa.int16(), _int),
    "float": (None, lambda said: number(said) / 4),
    "text": (None, lambda said: said),
    "money": (None, _decimal),
    "truth": (None, lambda said: (True, False, None)[number(said) % 3]),
    "instant": (pa.timestamp("us", "UTC"), lambda said: number(said) * 250_000),
    "listed": (pa.string(), _list),
}


def given(result: str, texts: list[str]) -> pa.Array:
    """The answer that each text stands for."""
    type_, of = RESULTS[result]
    return pa.array([of(t) for t in texts], type_)


class Drawn:
    """Parts, each of an argument."""

    result = ""
    parts: tuple[tuple[Any, int], ...] = ()

    def lift(self, *args: pa.Array) -> pa.Array:
        columns = [plain(a) for a in args]
        return self._states(
            [
                tuple(s for part, at in self.parts for s in part.lift(row[at]))
                for row in zip(*columns, strict=True)
            ]
        )

    def combine(self, a: pa.Array, b: pa.Array) -> pa.Array:
        return self._states(self._paired("combine", a, b))

    def lower(self, s: pa.Array) -> pa.Array:
        return given(self.result, ["|".join(map(shown, row)) for row in self._rows(s)])

    def _paired(self, verb: str, a: pa.Array, b: pa.Array) -> list[State]:
        made = []
        for x, y in zip(self._rows(a), self._rows(b), strict=True):
            state: State = ()
            for part, _ in self.parts:
                mine = slice(len(state), len(state) + len(part.types))
                state += getattr(part, verb)(x[mine], y[mine])
            made.append(state)
        return made

    def _rows(self, states: pa.Array) -> list[State]:
        if not pa.types.is_struct(states.type):
            return [(v,) for v in states.to_pylist()]
        return list(zip(*(c.to_pylist() for c in states.flatten()), strict=True))

    def _states(self, rows: list[State]) -> pa.Array:
        types = [t for part, _ in self.parts for t in part.types]
        columns = [pa.array([r[k] for r in rows], t) for k, t in enumerate(types)]
        if len(columns) == 1:
            return columns[0]
        return pa.StructArray.from_arrays(columns, [f"s{k}" for k in range(len(columns))])


class Subtracting(Drawn):
    """With what leaves taken out."""

    def subtract(self, a: pa.Array, b: pa.Array) -> pa.Array:
        return self._states(self._paired("subtract", a, b))


def function(result: str, *args: pa.Array) -> pa.Array:
    """A value for each row, NULLs among the arguments."""
    rows = zip(*map(plain, args), strict=True)
    return given(result, ["|".join(map(shown, row)) for row in rows])


def __getattr__(name: str) -> Any:
    result, *words = name.split("_")
    if result in RESULTS and not words:
        made = partial(function, result)
        made.__module__, made.__name__ = __name__, name  # type: ignore[attr-defined]
        return made
    minus = words[-1:] == ["minus"]
    found = [re.fullmatch(r"([a-z]+)(\d)", w) for w in (words[:-1] if minus else words)]
    if result.lower() not in RESULTS or not found or None in found:
        raise AttributeError(name)
    parts = tuple((PARTS[m[1]], int(m[2])) for m in found if m is not None)
    kept = {"result": result.lower(), "parts": parts, "__module__": __name__}
    return type(name, (Subtracting if minus else Drawn,), kept)
