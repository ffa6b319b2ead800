"""Commands of the shell that reach out of it: files, an editor, other programs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TextIO

from dsms.errors import DsmsError
from dsms_client import literals
from dsms_client.results import RowSet
from dsms_client.shell import show
from dsms_client.shell.live import Screen
from dsms_client.visible import prose

_COPY = re.compile(
    r"(?P<what>\(.*\)|\"(?:[^\"]|\"\")+\"|\w+)\s+to\s+(?P<file>'(?:[^']|'')*'|\S+)"
    r"(?:\s+(?P<form>\w+))?",
    re.IGNORECASE | re.DOTALL,
)
_FROM = re.compile(r"(?:\"(?:[^\"]|\"\")+\"|\w+)\s+from\b", re.IGNORECASE)
_FORMS = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
COPIED = (*dict.fromkeys(_FORMS.values()), "parquet")


class Shell(Screen, Protocol):
    """What these commands are about (`runner.Runner`)."""

    last: str | None
    target: TextIO | None

    def complain(self, line: str) -> None: ...

    def script(self, text: str) -> bool:
        """Run a text of statements and commands; False at the first that fails."""
        ...


def output(runner: Shell, rest: list[str]) -> bool:
    """``\\o [file]``: what is shown goes to the file from now on; without one, here again."""
    if runner.target is not None:
        runner.target.close()
        runner.target = None
    if rest:
        try:
            # open until another \\o
            runner.target = open(rest[0], "w", 1, "utf-8", newline="")  # noqa: SIM115
        except OSError as problem:
            runner.complain(f"cannot write {rest[0]}: {problem}")
            return False
    return True


def run_outside(runner: Shell, text: str) -> bool:
    """``\\! [command]``: run it, or a shell, in the terminal; True if it says 0."""
    command = text or os.environ.get("SHELL", "sh")
    return subprocess.run(command, shell=True, check=False).returncode == 0


def edit(runner: Shell, rest: list[str]) -> bool:
    """``\\e [file]``: the last statement, or the file, in $VISUAL or $EDITOR; then it is run, if it
    was changed."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        if rest:
            before, text = _edited(editor, Path(rest[0]))
        else:
            with tempfile.TemporaryDirectory(prefix="dsms-") as folder:  # for its owner alone
                place = Path(folder, "statement.sql")
                place.write_text(f"{runner.last};\n" if runner.last else "", encoding="utf-8")
                before, text = _edited(editor, place)
    except (OSError, UnicodeDecodeError, subprocess.CalledProcessError) as problem:
        runner.complain(f"cannot edit: {problem}")
        return False
    if text == before:
        runner.complain("nothing was changed, and nothing is run")
        return True
    return runner.script(text)


def _edited(editor: list[str], place: Path) -> tuple[str, str]:
    """What stood in the file, and what stands there now."""
    before = place.read_text(encoding="utf-8") if place.exists() else ""
    subprocess.run([*editor, str(place)], check=True)
    return before, place.read_text(encoding="utf-8") if place.exists() else ""


def copy(runner: Shell, text: str) -> bool:
    """``\\copy (select)|name to 'file' [csv|json|parquet]``: the answer into a file here;
    ``\\copy name from 'file' ...`` is COPY."""
    if _FROM.match(text):
        return runner.script(f"COPY {text.rstrip(';')};")
    found = _COPY.fullmatch(text.strip().rstrip(";"))
    if found is None:
        runner.complain("write \\copy (SELECT ...) to 'file' [csv|json|parquet], or \\copy name to")
        return False
    path = found["file"]
    path = path[1:-1].replace("''", "'") if path.startswith("'") else path
    form = (found["form"] or Path(path).suffix.removeprefix(".")).lower()
    form = _FORMS.get(form, form)
    if form not in COPIED:
        runner.complain(f"say how to write {path}: {', '.join(COPIED)}")
        return False
    what = found["what"]
    answer = runner.client.query(what[1:-1] if what[0] == "(" else f"SELECT * FROM {what}")
    try:
        _write(answer, path, form)
    except OSError as problem:
        runner.complain(f"cannot write {path}: {problem}")
        return False
    runner.say(f"{len(answer)} row{'' if len(answer) == 1 else 's'} written to {path}")
    for line in show.notes(answer):
        runner.complain(line)
    return True


def _write(answer: RowSet, path: str, form: str) -> None:
    if form == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(answer.table(), path)
        return
    lines = show.render(answer.columns, answer.types, answer.rows, form)
    with Path(path).open("w", encoding="utf-8", newline="") as out:
        out.writelines(f"{line}\n" for line in lines)


def paged(lines: Iterable[str], out: TextIO) -> list[str]:
    """Lines that are more than the terminal has go to $PAGER; what is still to be printed."""
    found, pager = list(lines), os.environ.get("PAGER")
    if not pager or not out.isatty() or len(found) < shutil.get_terminal_size().lines:
        return found
    shown = "".join(f"{prose(line)}\n" for line in found)
    subprocess.run(pager, shell=True, input=shown, text=True, check=False)
    return []


def described(runner: Shell, kind: str, name: str) -> bool:
    """The statement that makes an object again, and how it does."""
    try:
        (made,) = runner.client.query(f"SHOW CREATE {kind.upper()} {name}").rows
    except DsmsError as problem:
        for line in show.error(problem, ""):
            runner.complain(line)
        return False
    runner.say(f"{show.shown(made[2], 'STRING')};")
    if kind in HOW:
        how(runner, HOW[kind], kind, made[1])
    return True


def connected(runner: Shell) -> list[str]:
    """SOURCES and SINKS, if there are any that one may see."""
    return [kind for kind in ("SOURCES", "SINKS") if _connectors(runner, kind)]


def connectors(runner: Shell) -> list[tuple[str, str, str, str | None]]:
    """A line of `\\d` for each: kind, name, what it brings where, and how it does."""
    lines: list[tuple[str, str, str, str | None]] = []
    for kind, arrow in (("SOURCES", "{1} -> {2}"), ("SINKS", "{2} -> {1}")):
        for row in _connectors(runner, kind):
            said = arrow.format(*row[:3])
            lines.append((kind.lower().removesuffix("s"), row[0], said, row[3]))
    return lines


def _connectors(runner: Shell, kind: str) -> list[tuple[str, ...]]:
    """Lines of SHOW, as texts; none for who may not see them, and of servers that have none."""
    try:
        return [tuple(map(str, row)) for row in runner.client.query(f"SHOW {kind}").rows]
    except DsmsError:
        return []


HOW = {"stream": "STREAMS", "table": "TABLES", "query": "QUERIES FULL"}


def how(runner: Shell, what: str, column: str, name: str) -> bool:
    """The lines of SHOW about a name, a value a line; whether there are any."""
    where = f'LOWER("{column}") = {literals.quoted(name.lower())}'
    told = runner.client.query(f"SHOW {what} WHERE {where}")
    for line in show.vertical(told.columns, told.types, told.rows):
        runner.say(line)
    return len(told) > 0
