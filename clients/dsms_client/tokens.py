"""Where a token comes from: a file, the environment or the command line, which all users of the
machine can see."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from dsms.errors import UsageError

VARIABLE = "DSMS_TOKEN"


def from_environment() -> str | None:
    """What DSMS_TOKEN says; None if it is not set, or empty."""
    return os.environ.get(VARIABLE) or None


def read(path: str) -> str:
    """The token in a file: all its text but the end of the last line.  Raises DS640."""
    try:
        token = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise UsageError("DS640", f"cannot read the token from {path}: {why}") from None
    if not token or "\n" in token:
        raise UsageError("DS640", f"{path} holds no token", hint="a token is one line of text")
    return token


def add_options(group: Any, what: str) -> None:
    """--token and --token-file, which both fill `token`."""
    group.add_argument(
        "--token", action=_Seen, help=f"{what}; better --token-file, since `ps` shows this one"
    )
    group.add_argument(
        "--token-file",
        dest="token",
        action=ReadLine,
        metavar="FILE",
        help=f"{what}: the line in this file",
    )


class _Seen(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, space: Any, value: Any, option: str | None = None
    ) -> None:
        print(
            f"note: `ps` shows the token of {option}; --token-file FILE or {VARIABLE} keep it to "
            "you",
            file=sys.stderr,
        )
        setattr(space, self.dest, value)


class ReadLine(argparse.Action):
    """An option that names a file, and has the line that is in it."""

    def __call__(
        self, parser: argparse.ArgumentParser, space: Any, value: Any, option: str | None = None
    ) -> None:
        setattr(space, self.dest, read(value))
