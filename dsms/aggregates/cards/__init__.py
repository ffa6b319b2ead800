"""The cards of all aggregates, a file a family: a new one is added there, and nothing here."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from dsms.aggregates.card import Card as Card

FAMILIES = tuple(sorted(module.name for module in iter_modules(__path__)))
CARDS: dict[str, Card] = {
    card.name: replace(card, family=family)
    for family in FAMILIES
    for card in import_module(f"{__name__}.{family}").CARDS
}
