"""Statements drawn from the grammar itself: each alternative of each rule, to some depth, and from
there the shortest."""

from __future__ import annotations

from functools import cache
from random import Random

from lark.grammar import NonTerminal, Rule

from dsms.sql.parser import parser

DEEP = 14  # levels of rules, from where on the shortest alternatives are taken
NAMES = ("s", "u", "r", "k", "v", "t", "f", "d", "q", "n", "sum", "count", "max", "avg", "lower")
SAMPLES = {
    "NAME": NAMES,
    "QUOTED": ('"k"', '"a b"', '""""'),
    "STRING": ("'a'", "''", "'1 day'", "'2020-01-01'", "'UTC'"),
    "INT": ("0", "1", "2", "10", "60", "9223372036854775807"),
    "BYTES": ("x'00ff'", "x''", "x'0'"),
    "FLOAT": ("1.5", "0.1", "1e3", "1e400"),
    "TIME_UNIT": ("s", "SECONDS", "DAY", "months", "us"),
    "ATTACHED": ("1s", "10ms", "2h"),
    "ISTREAM_RESTORE": ("ISTREAM-RESTORE",),
    "RSTREAM_RESTORE": ("RSTREAM-RESTORE",),
    "WSTREAM_RESTORE": ("WSTREAM-RESTORE",),
    "DOUBLE_PRECISION": ("DOUBLE PRECISION",),
    "AT_TIME_ZONE": ("AT TIME ZONE",),
    "COMPARE": ("<", "<=", "<>", ">"),
}


@cache
def _rules() -> dict[str, list[Rule]]:
    out: dict[str, list[Rule]] = {}
    for rule in parser().rules:
        out.setdefault(rule.origin.name, []).append(rule)
    return out


@cache
def _heights() -> dict[str, int]:
    """Levels of rules below a name, if the shortest alternatives are taken."""
    out: dict[str, int] = {}
    for _ in _rules():
        for name, rules in _rules().items():
            known = [h for rule in rules if (h := _height(rule, out)) is not None]
            if known:
                out[name] = min(known)
    return out


def _height(rule: Rule, heights: dict[str, int]) -> int | None:
    below = [s.name for s in rule.expansion if isinstance(s, NonTerminal)]
    if any(name not in heights for name in below):
        return None
    return 1 + max((heights[name] for name in below), default=0)


@cache
def _shortest(name: str) -> list[Rule]:
    """The alternatives that end soonest."""
    rules = _rules()[name]
    low = min(h for r in rules if (h := _height(r, _heights())) is not None)
    return [r for r in rules if _height(r, _heights()) == low]


@cache
def _words() -> dict[str, tuple[str, ...]]:
    """What may stand for a terminal."""
    out = {}
    for terminal in parser().terminals:
        plain = terminal.pattern.value if terminal.pattern.type == "str" else None
        out[terminal.name] = SAMPLES.get(terminal.name) or (plain or terminal.name.strip("_"),)
    return out


def sentence(rng: Random, start: str = "start") -> str:
    out: list[str] = []
    todo: list[tuple[str, int]] = [(start, 0)]
    while todo:
        name, depth = todo.pop()
        rules = _rules().get(name)
        if rules is None:
            out.append(rng.choice(_words().get(name, (name,))))
            continue
        if depth > DEEP or len(todo) > 60:
            rules = _shortest(name)
        chosen = rng.choice(rules)
        todo += [(symbol.name, depth + 1) for symbol in reversed(chosen.expansion)]
    return " ".join(out)
