"""The interactive prompt: history, completion, several lines until ``;``."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from dsms.errors import DsmsError
from dsms.secret_texts import without_secrets
from dsms_client.shell.complete import ShellCompleter
from dsms_client.shell.meta import Quit
from dsms_client.shell.runner import Runner
from dsms_client.shell.statements import complete

SHOWN = 1000  # rows of a table, unless \\limit says otherwise
PROMPT, MORE = "dsms> ", "   -> "


def run(runner: Runner) -> int:
    """Read and run until ``\\q`` or Ctrl-D; returns the exit code."""
    runner.interactive, runner.most = True, SHOWN
    completer = ShellCompleter(runner.client)
    runner.changed = completer.forget
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=completer,
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        lexer=_lexer(),
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, number, wrapped: MORE,
    )
    runner.say("dsms shell.  Statements end with ;  help lists commands, exit leaves.")
    while True:
        try:
            text = session.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        try:
            runner.script(text)
        except Quit:
            return 0
        except KeyboardInterrupt:
            runner.complain("cancelled")
        except DsmsError as problem:
            runner.complain(str(problem))


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @Condition
    def finished() -> bool:
        from prompt_toolkit.application import get_app

        return complete(get_app().current_buffer.text)

    @keys.add("enter", filter=finished)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


class _Discreet(FileHistory):
    """Passwords and tokens of statements are not written down."""

    def store_string(self, string: str) -> None:
        super().store_string(without_secrets(string))


def _history() -> History:
    place = Path(os.environ.get("DSMS_HISTORY", Path.home() / ".dsms_history"))
    try:
        place.touch(mode=0o600, exist_ok=True)
    except OSError:
        return InMemoryHistory()
    return _Discreet(str(place))


def _lexer() -> PygmentsLexer | None:
    try:
        from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]
    except ImportError:
        return None
    return PygmentsLexer(SqlLexer)
