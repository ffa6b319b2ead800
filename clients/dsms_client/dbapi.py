"""PEP 249, the Python database API 2.0, over the client: for programs that read whatever has it,
pandas and notebooks among them.

    from dsms_client import dbapi

    with dbapi.connect("127.0.0.1", 7654) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT k, v FROM s WHERE k = ?", ["a"])
        print(cursor.description, cursor.fetchall())

Parameters are ``?`` (or ``$1``) with a list, ``:name`` with a dict.  TIMESTAMP comes as datetime
(UTC, naive), INTERVAL as timedelta, DECIMAL as Decimal, LIST as list.  There are no transactions:
what is done is done at once."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dsms.errors import DsmsError
from dsms.errors import InternalError as OurBug
from dsms_client.protocol import DEFAULT_PORT
from dsms_client.results import RowSet
from dsms_client.sync import Client

if TYPE_CHECKING:
    from dsms_client.results import Result

apilevel = "2.0"
threadsafety = 1  # a connection is for one thread at a time
paramstyle = "qmark"
Parameters = Sequence[Any] | Mapping[str, Any]
Row = tuple[Any, ...]
Described = tuple[str, str, None, None, int | None, int | None, None]


class Warning(Exception):  # the name is PEP 249's
    """What should be known, and ends nothing."""


class Error(Exception):
    """Any error.  `code`, `line`, `column` and `hint` are those of dsms, where it has said it."""

    def __init__(self, message: str = "", cause: DsmsError | None = None) -> None:
        super().__init__(message)
        self.code = None if cause is None else cause.code
        self.line = None if cause is None else cause.line
        self.column = None if cause is None else cause.column
        self.hint = None if cause is None else cause.hint


class InterfaceError(Error):
    """A wrong use of this module."""


class DatabaseError(Error):
    """An error of the server."""


class DataError(DatabaseError):
    """A value that can't be worked out, or does not fit."""


class OperationalError(DatabaseError):
    """The server, the connection, a limit."""


class IntegrityError(DatabaseError):
    """A key that is there, a NULL that can't be."""


class InternalError(DatabaseError):
    """A bug of dsms: please report it."""


class ProgrammingError(DatabaseError):
    """The statement is wrong, or names what is not there."""


class NotSupportedError(DatabaseError):
    """There is no such thing here."""


_KINDS: tuple[tuple[str, type[DatabaseError]], ...] = (  # by the beginning of a code
    ("DS52", IntegrityError),
    ("DS50", DataError),
    ("DS7", DataError),
    ("DS618", DataError),
    ("DS617", ProgrammingError),
    ("DS1", ProgrammingError),
    ("DS2", ProgrammingError),
    ("DS3", ProgrammingError),
    ("DS4", ProgrammingError),
    ("DS67", ProgrammingError),
    ("DS9", InternalError),
)


def _raised(problem: DsmsError) -> DatabaseError:
    kind: type[DatabaseError] = InternalError if isinstance(problem, OurBug) else OperationalError
    kind = next((one for begins, one in _KINDS if problem.code.startswith(begins)), kind)
    return kind(str(problem), problem)


class _TypeCode:
    """Equal to the names of all types of its kind."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return re.split(r"\W", other, maxsplit=1)[0] in self._names
        return self is other

    def __hash__(self) -> int:
        return hash(self._names)


STRING = _TypeCode("STRING", "LIST")
BINARY = _TypeCode("BYTES")
NUMBER = _TypeCode("INT", "FLOAT", "DECIMAL", "BOOL")
DATETIME = _TypeCode("TIMESTAMP", "INTERVAL", "DATE", "TIME")
ROWID = _TypeCode()

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes


def DateFromTicks(ticks: float) -> dt.date:
    """The day, UTC, of seconds since 1970."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> dt.time:
    """The time of the day, UTC, of seconds since 1970."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """The instant, UTC and naive, of seconds since 1970."""
    return dt.datetime.fromtimestamp(ticks, dt.UTC).replace(tzinfo=None)


def connect(host: str = "127.0.0.1", port: int = DEFAULT_PORT, **options: Any) -> Connection:
    """Options, or a URL, as for `dsms_client.connect`.  Raises OperationalError."""
    try:
        return Connection(Client(host, port, **options))
    except DsmsError as problem:
        raise _raised(problem) from problem


class Connection:
    """A session.  ``with connect() as connection`` closes it."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError = InternalError, ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, client: Client) -> None:
        self._client: Client | None = client

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def client(self) -> Client:
        """The client below.  Raises InterfaceError once it is closed."""
        if self._client is None:
            raise InterfaceError("the connection is closed")
        return self._client

    def cursor(self) -> Cursor:
        self.client  # noqa: B018  # raises if it is closed
        return Cursor(self)

    def commit(self) -> None:
        """Nothing is left to be done: each statement stands at once."""
        self.client  # noqa: B018

    def rollback(self) -> None:
        """Raises NotSupportedError: nothing can be undone."""
        raise NotSupportedError("there are no transactions, so nothing can be undone")

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class Cursor:
    """Statements, and the rows of what they answer.

    description  of the columns, None: there are no rows;  rowcount: of rows that were answered
    arraysize    rows of `fetchmany`"""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[Described] | None = None
        self.rowcount = -1
        self.messages: list[tuple[type, str]] = []
        self._rows: Iterator[Row] | None = None
        self._results: list[Result] = []
        self._closed = False

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def execute(self, operation: str, parameters: Parameters | None = None) -> Cursor:
        """Run one or more statements; `nextset` goes from one answer to the next."""
        self._check()
        given = None if parameters is None or len(parameters) == 0 else parameters
        try:
            self._results = list(self.connection.client.execute(operation, given))
        except DsmsError as problem:
            self._results = []
            self._show(None)
            raise _raised(problem) from problem
        self.messages = [
            (Warning, text) for r in self._results for text in getattr(r, "warnings", ())
        ]
        self._show(self._results.pop(0) if self._results else None)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Cursor:
        """Run it once for each."""
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        self._show(None)
        return self

    def nextset(self) -> bool | None:
        """Go on to the next statement's answer; None: there is none."""
        self._check()
        if not self._results:
            return None
        self._show(self._results.pop(0))
        return True

    def fetchone(self) -> Row | None:
        return next(self._left(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        rows = self._left()
        count = self.arraysize if size is None else size
        return [row for _, row in zip(range(count), rows, strict=False)]

    def fetchall(self) -> list[Row]:
        return list(self._left())

    def __iter__(self) -> Iterator[Row]:
        return self._left()

    def close(self) -> None:
        self._closed, self._results = True, []
        self._show(None)

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing needs it."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing needs it."""

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")

    def _left(self) -> Iterator[Row]:
        self._check()
        if self._rows is None:
            raise ProgrammingError("no statement has answered with rows")
        return self._rows

    def _show(self, result: Result | None) -> None:
        if not isinstance(result, RowSet):
            self.description, self.rowcount, self._rows = None, -1, None
            return
        table = result.table()
        self.description = [
            _described(*pair) for pair in zip(result.columns, result.types, strict=True)
        ]
        self.rowcount = table.num_rows
        self._rows = zip(*(column.to_pylist() for column in table.columns), strict=True)


def _described(name: str, sql: str) -> Described:
    digits = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", sql)
    precision, scale = (int(digits[1]), int(digits[2])) if digits else (None, None)
    return name, sql, None, None, precision, scale, None
