"""SET: change a setting while the engine runs.  It holds until it is set again, or the engine (or
session) stops."""

from __future__ import annotations

from dsms.api import Done
from dsms.commands.sessions import set_timeout
from dsms.running.runtime import Runtime
from dsms.sessions import Caller
from dsms.settings import CHANGEABLE, OF_SESSION
from dsms.sql import ast
from dsms.sql.codes import error, suggest


def set_setting(runtime: Runtime, statement: ast.Set, caller: Caller | None = None) -> Done:
    """SET name = value.  QueryError DS214 for an unknown setting, DS215 for a value that it does
    not take."""
    option = statement.option
    name = option.name.text.casefold()
    if name in OF_SESSION:
        return set_timeout(option, caller)
    if name not in CHANGEABLE:
        if hasattr(runtime.settings, name):
            message = f"the setting {name} is fixed when the engine starts"
            raise error(
                "DS214",
                message,
                option.name,
                f"SET changes {', '.join((*CHANGEABLE, *OF_SESSION))}",
            )
        hint = suggest(option.name.text, [*CHANGEABLE, *OF_SESSION], "settings")
        raise error("DS214", f"unknown setting `{option.name.text}`", option.name, hint)
    value = option.value.casefold().replace("_", "-") if isinstance(option.value, str) else None
    choices = CHANGEABLE[name]
    if value not in choices:
        hint = None if value is None else suggest(value, choices, "values")
        raise error("DS215", f"setting {name} takes {' or '.join(choices)}", option, hint)
    setattr(runtime.settings, name, value)
    return Done(f"{name} is {value}")
