"""Write the changes of a persistent query to stdout or a file, as they come.

Each row has `$seq` (its number, for --from), `$sign` (1 enters, -1 leaves, 0 is part of a periodic
answer) and `$at` (its instant), then the columns of the query.  Without --from the answer as it is
now comes first, without numbers, if the query has one.  With --conflate rows have no numbers: they
are the net change since the last ones, however much has happened.

It ends with the query, after --count rows, when nobody reads stdout any more (exit code 0), or with
Ctrl-C (130) or SIGTERM (143); what is written ends with a whole row then, and is a whole file.
Killed it leaves what it had written, and --from goes on behind it; but for Parquet, which needs its
end.

examples:
  dsms subscribe late --from 0 | jq -c 'select(."$sign" == 1)'
  dsms subscribe late --from 0 --count 1000 --output late.parquet
  dsms subscribe by_carrier --conflate
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms_client.cli import FAILED, OK
from dsms_client.commands import connection

if TYPE_CHECKING:
    from dsms_client.changes import Changes
    from dsms_client.files.written import Writer
    from dsms_client.sync import ChangesReader

FORMATS = ("json", "csv", "arrow", "parquet")
SUFFIXES = {".csv": "csv", ".arrow": "arrow", ".arrows": "arrow", ".parquet": "parquet"}
LOOK = 0.5  # seconds between two looks whether anybody reads
GOODBYE = 1.0  # seconds that a server may take to say it has stopped sending
PATIENCE = 30.0  # seconds to look for a server that was lost


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("query", metavar="QUERY", help="the name of a persistent query")
    add("--format", choices=FORMATS, help="default: by the name of the output, else json (lines)")
    add("--output", type=Path, metavar="FILE", help="written anew; default stdout")
    add(
        "--from",
        dest="start",
        type=_number,
        metavar="SEQ",
        help="the number of the first row; 0 is the very first, if the server still has it",
    )
    add(
        "--conflate",
        action="store_true",
        help="the present is enough: net changes instead of all that happened (of an Rstream)",
    )
    add("--count", type=_number, metavar="N", help="end after so many rows")
    connection.add_options(parser)


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args, _form(args))
    except Stopped as stop:
        if stop.number == signal.SIGINT:
            raise
        return 128 + stop.number


def _run(args: argparse.Namespace, form: str) -> int:
    from dsms.errors import DsmsError

    line = _line()
    options = {"reconnect_seconds": max(args.wait, PATIENCE), "on_link": line.changed}
    with Signals() as signals, connection.open_client(args, **options) as client:
        reader = client.changes(args.query, args.start, conflate=args.conflate)
        try:
            with line.waiting():
                return _write(reader, args, form, signals)
        finally:
            with contextlib.suppress(TimeoutError, DsmsError):
                reader.close(GOODBYE)


def _form(args: argparse.Namespace) -> str:
    """The format that is asked for.  Raises DS640 where it would garble a terminal."""
    suffix = args.output.suffix.lower() if args.output else ""
    form: str = args.format or SUFFIXES.get(suffix, "json")
    if form in ("arrow", "parquet") and args.output is None and sys.stdout.isatty():
        raise _misused(f"{form} is not for a terminal")
    return form


def _write(reader: ChangesReader, args: argparse.Namespace, form: str, signals: Signals) -> int:
    from dsms.errors import DsmsError
    from dsms_client.files.written import writer
    from dsms_client.visible import prose

    try:
        with signals.later():
            out = writer(form, args.output, reader.columns, reader.types)
    except OSError as problem:
        raise _misused(f"cannot write {args.output}: {problem.strerror}") from None
    try:
        with contextlib.closing(_Whole(out, signals)):
            signals.look()
            _copy(reader, out, signals, args.count)
    except DsmsError as problem:
        print(prose(str(problem)), file=sys.stderr)
        return FAILED
    return OK


def _copy(reader: ChangesReader, out: Writer, signals: Signals, count: int | None) -> None:
    left = count
    for changes in _read(reader):
        if left is not None:
            changes = changes.head(left)
            left -= len(changes)
        if len(changes):
            with signals.later():
                out.write(changes)
            signals.look()
        if left == 0:
            return


def _read(reader: ChangesReader) -> Iterator[Changes]:
    """What comes, until the query ends.  Raises BrokenPipeError where nobody reads stdout."""
    from dsms_client.shell.live import is_read

    while True:
        try:
            changes = reader.next(timeout=LOOK)
        except TimeoutError:
            if not is_read(sys.stdout):
                raise BrokenPipeError from None
            continue
        if changes is None:
            return
        yield changes


class Stopped(KeyboardInterrupt):
    """A signal asks for the end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Signals:
    """SIGINT and SIGTERM raise `Stopped`, but not between two halves of a row: then after it.  The
    second one does not wait."""

    def __init__(self) -> None:
        self._writing = False
        self._came: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """What comes meanwhile waits for `look`."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False

    def look(self) -> None:
        """Raise what has come."""
        if self._came is not None:
            raise Stopped(self._came)

    def _take(self, number: int, frame: object) -> None:
        if self._came is not None or not self._writing:
            raise Stopped(number)
        self._came = number


class _Whole:
    """Closes a writer in one go."""

    def __init__(self, out: Writer, signals: Signals) -> None:
        self._out, self._signals = out, signals

    def close(self) -> None:
        with self._signals.later():
            self._out.close()
        self._signals.look()


def _line() -> Any:
    from dsms_client.line import Line

    return Line(lambda text: print(text, file=sys.stderr))


def _misused(why: str) -> Exception:
    from dsms.errors import UsageError

    return UsageError("DS640", why, hint="say where to with --output FILE")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)
