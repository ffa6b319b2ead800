"""The nearest known name: what an "unknown ..." message offers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_ODD = re.compile(r"[^\w-]|^\d")  # (words of settings have hyphens)
_LISTED = 12  # more names than this would bury the message
_SOME = 5  # of so many


def distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap two neighbours) from `a` to `b`; anything above `limit`
    is limit + 1."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], last[j - 2] + 1)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def ranked(word: str, known: Iterable[str]) -> list[str]:
    """The known names that `word` may be a slip of, nearest first; case counts only between
    equals."""
    folded = word[:100].casefold()[:100]
    limit = 0 if len(folded) < 2 else 1 if len(folded) < 5 else 2 if len(folded) < 9 else 3
    scored = []
    for name in dict.fromkeys(known):
        edits = distance(folded, name.casefold(), limit)
        if edits <= limit and edits < len(name):  # never a name of which nothing is left
            scored.append((edits, name.casefold()[:1] != folded[:1], name))
    return [name for *_, name in sorted(scored)]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` is most likely a slip of, or None if none is near."""
    return next(iter(ranked(word, known)), None)


def hint(word: str, known: Sequence[str], what: str = "names") -> str | None:
    """A hint for an unknown `word`: the nearest name if there is one, and the known `what`."""
    near = nearest(word, known)
    parts = [f"did you mean {written(near)}?"] if near is not None else []
    if known and (near is None or len(known) <= _LISTED):
        parts.append(f"known {what}: {listed(known)}")
    return "; ".join(parts) or None


def listed(names: Sequence[str]) -> str:
    """`a, b, c`; of very many a few and how many more there are."""
    shown = [written(n) for n in names]
    if len(shown) <= _LISTED:
        return ", ".join(shown)
    return f"{', '.join(shown[:_SOME])} and {len(shown) - _SOME} more"


def written(name: str) -> str:
    """A name as a statement has it: in quotes if it is no plain word."""
    return name if not _ODD.search(name) else '"' + name.replace('"', '""') + '"'
