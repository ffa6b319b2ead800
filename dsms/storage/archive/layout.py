"""How an archive is cut into sub-indices: by insertion time and by expiration time (Golab 2006,
§4.3, Algorithm 1).

Time goes in steps of Δ, the interval between updates.  Algorithm 1 gives every sub-index its
intervals and replaces them as time goes by; which sub-index a row belongs to is then a function of
the steps of its insertion and expiration alone, and that is what stands here: nothing has to be
kept or moved.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dsms.errors import UsageError
from dsms.sql.types import FOREVER

Order = Literal["round-robin", "chronological"]
Strategy = Literal["rebuild", "no rebuild"]
MOST = 256  # partitions of one kind


@dataclass(frozen=True, slots=True)
class Layout:
    """generations  G: partitions of insertion times
    expirations  E: partitions of expiration times; 1 where rows are kept for good
    every        Δ: µs between updates
    span         S: the longest lifetime of a row that expires, µs; None: no row does
    origin       µs: an instant at which a step begins
    order        round-robin: consecutive steps go to consecutive partitions, so that updates
                 spread; chronological: each partition has one stretch of steps (with G or E = 1: a
                 wave index)
    strategy     rebuild: an update rewrites the sub-indices that it touches, clustered anew;
                 no rebuild: it adds files to them; those with mostly expired rows are rewritten
                 (eager: those with any), others are left, and readers skip their expired rows
    """

    generations: int
    expirations: int
    every: int
    span: int | None = None
    origin: int = 0
    order: Order = "round-robin"
    strategy: Strategy = "rebuild"
    eager: bool = False

    def __post_init__(self) -> None:
        for name in ("generations", "expirations"):
            if not 1 <= getattr(self, name) <= MOST:
                raise UsageError(
                    "DS950", f"{name} must lie in 1..{MOST}, not {getattr(self, name)}"
                )
        for name, words in (("order", get_args(Order)), ("strategy", get_args(Strategy))):
            if getattr(self, name) not in words:
                raise UsageError(
                    "DS950", f"{name} is {' or '.join(words)}, not {getattr(self, name)}"
                )
        if self.every < 1:
            raise UsageError(
                "DS950", f"an archive is updated every {self.every} us, which makes no sense"
            )
        if self.span is not None and self.span < 0:
            raise UsageError("DS950", f"rows are kept for {self.span} us, which makes no sense")
        if self.span is None and self.expirations != 1:
            raise UsageError(
                "DS950",
                "rows that are kept for good have no expiration times to be partitioned by",
                hint="one partition of expiration times is right for them",
            )

    @property
    def count(self) -> int:
        """n = G * E sub-indices."""
        return self.generations * self.expirations

    def step(self, x: Any) -> Any:
        """The number of the step in which an instant lies (floor)."""
        return (x - self.origin) // self.every

    def start(self, x: int) -> int:
        """The first instant of the step in which `x` lies."""
        return self.origin + self.step(x) * self.every

    @property
    def steps(self) -> int:
        """S / Δ: steps in the longest lifetime."""
        return self.generations if self.span is None else max(1, -(-self.span // self.every))

    def width(self, partitions: int) -> int:
        """Consecutive steps that belong to one partition before the next one's turn."""
        return 1 if self.order == "round-robin" else max(1, -(-self.steps // partitions))

    def generation(self, ts: Any) -> Any:
        """The partition of an insertion time."""
        return self.step(ts) // self.width(self.generations) % self.generations

    def expiration(self, exp: Any) -> Any:
        """The partition of an expiration time."""
        if self.expirations == 1:
            return exp * 0
        return self.step(self._finite(exp)) // self.width(self.expirations) % self.expirations

    def _finite(self, exp: Any) -> Any:
        """Rows that never expire are with those of one step; no update looks there for them."""
        if isinstance(exp, int):
            return self.origin if exp == FOREVER else exp
        return np.where(exp == FOREVER, self.origin, exp)

    def sub(self, ts: Any, exp: Any) -> Any:
        """The sub-index of rows: numbers or NumPy int64 arrays."""
        return self.generation(ts) * self.expirations + self.expiration(exp)

    def place(self, sub: int) -> tuple[int, int]:
        """The (generation, expiration) of a sub-index."""
        return divmod(sub, self.expirations)

    def inserting(self, after: int, upto: int) -> set[int]:
        """The sub-indices that may get rows inserted in (after, upto]."""
        return {
            g * self.expirations + e
            for g in self._parts(after, upto, True)
            for e in range(self.expirations)
        }

    def expiring(self, after: int, upto: int) -> set[int]:
        """The sub-indices that may lose rows which expire in (after, upto]."""
        if self.span is None:
            return set()
        return {
            g * self.expirations + e
            for e in self._parts(after, upto, False)
            for g in range(self.generations)
        }

    def touched(self, after: int, upto: int) -> tuple[int, ...]:
        """The sub-indices of an update: G + E - 1 where it spans one step."""
        return tuple(sorted(self.inserting(after, upto) | self.expiring(after, upto)))

    def _parts(self, after: int, upto: int, births: bool) -> set[int]:
        partitions = self.generations if births else self.expirations
        first, last = self.step(after + 1), self.step(upto)
        count = last - first + 1
        if upto <= after:
            return set()
        if count >= partitions * self.width(partitions):
            return set(range(partitions))
        marks = self.origin + np.arange(first, last + 1) * self.every
        return set(np.unique(self.generation(marks) if births else self.expiration(marks)).tolist())

    def living(self, lifetime: int | None) -> Layout:
        """The layout for rows that may now live so long.  (Where partitions have stretches of steps
        they stay.)"""
        if lifetime is None or (
            self.span is not None and (lifetime <= self.span or self.order == "chronological")
        ):
            return self
        return replace(self, span=lifetime)

    def serialized(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.generations}x{self.expirations}, {self.order}, {self.strategy}"


def expiry(ts: np.ndarray, lifetime: int | None) -> np.ndarray:
    """When rows that are kept for `lifetime` µs leave."""
    return np.full(len(ts), FOREVER, np.int64) if lifetime is None else ts + lifetime
