"""VAR and STDDEV, of the sample and of the population."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts


def _spread(name: str, doc: str, warm: str, aliases: tuple[str, ...] = ()) -> Card:
    types = texts("FLOAT -> FLOAT")
    return Card(
        name, doc, types, aliases, invertible=True, shared=True, counting=True, warm=(warm,)
    )


CARDS = (
    _spread("var", "Variance of the sample (n - 1); NULL for fewer than two values.", "VAR(i)",
            ("variance", "var_samp")),
    _spread("var_pop", "Variance of the population (n).", "VAR_POP(f)"),
    _spread("stddev", "Square root of var.", "STDDEV(f)", ("stddev_samp", "std")),
    _spread("stddev_pop", "Square root of var_pop.", "STDDEV_POP(i)"),
)  # a table  # fmt: skip
