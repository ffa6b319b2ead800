"""Names of outside columns -> places in a schema: exactly as declared, else in any case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsms.errors import UsageError
from dsms.sql.suggest import nearest


class Keys:
    """The names of columns, and the keys that have been looked up.  `owner` is for messages;
    `computed`: columns of it that rows can't give; `defaults`: what stands where they leave one
    out."""

    def __init__(
        self,
        names: Sequence[str],
        owner: str,
        computed: Sequence[str] = (),
        defaults: Sequence[Any] | None = None,
    ) -> None:
        self._names, self._owner = list(names), owner
        self._defaults = [None] * len(self._names) if defaults is None else defaults
        self._computed = {name.casefold(): name for name in computed}
        self._known: dict[str, int] = {}

    def position(self, key: str) -> int:
        """Raises DS501 for a name that no column has, DS506 for one that several have in another
        case."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(key)
        return found

    def values(self, row: Mapping[str, Any]) -> list[Any] | None:
        """The row in the order of the columns, the default where it has no key; None if two keys
        name one column."""
        out: list[Any] = list(self._defaults)
        places = {self.position(key): value for key, value in row.items()}
        if len(places) < len(row):
            return None
        for place, value in places.items():
            out[place] = value
        return out

    def clash(self, row: Mapping[str, Any]) -> str:
        """Which keys of the row name one column."""
        seen: dict[int, str] = {}
        for key in row:
            first = seen.setdefault(self.position(key), key)
            if first != key:
                return (
                    f"column {self._names[self.position(key)]} is given twice, as {first!r} "
                    f"and {key!r}"
                )
        return ""

    def _find(self, key: str) -> int:
        if key in self._names:
            return self._names.index(key)
        same = [i for i, n in enumerate(self._names) if n.casefold() == key.casefold()]
        if len(same) == 1:
            return same[0]
        if same:
            listed = " or ".join(self._names[i] for i in same)
            raise UsageError("DS506", f"column {key!r} could be {listed}", hint="spell it so")
        if (made := self._computed.get(key.casefold())) is not None:
            what = f"column {made!r} of {self._owner} is computed, and rows can't give it"
            raise UsageError("DS443", what, hint="leave it out")
        close = nearest(key, self._names)
        raise UsageError(
            "DS501",
            f"{self._owner} has no column {key!r}; it has {', '.join(self._names)}",
            hint=f"did you mean {close}?" if close else None,
        )
