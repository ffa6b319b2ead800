"""Variables of the shell: ``:name`` in a statement is its text, ``:'name'`` that as a string,
``:"name"`` as a name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsms_client import literals

NAME = re.compile(r"[A-Za-z_]\w*")
# what holds no variables, first; a second colon makes a cast
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|$)|::|:'(?P<text>[A-Za-z_]\w*)'|:"(?P<name>[A-Za-z_]\w*)"
      |:(?P<plain>[A-Za-z_]\w*)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)""",
    re.DOTALL | re.VERBOSE,
)


def filled(text: str, variables: Mapping[str, str]) -> str:
    """The statement with values in place of variables; names that are none stay as they are."""

    def value(found: re.Match[str]) -> str:
        kind = found.lastgroup
        known = variables.get(found[kind]) if kind else None
        if known is None:
            return found[0]
        return {"text": literals.quoted, "name": literals.name}.get(kind or "", str)(known)

    return _TOKEN.sub(value, text) if variables else text


def value_of(text: str) -> str:
    """What stands behind the name in ``\\set``: without the quotes around it, if it has them."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text
