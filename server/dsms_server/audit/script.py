"""The statements of one request, as the engine comes to them.  Belongs to the engine's thread."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from dsms.api import Result, Rows
from dsms.sql import ast
from dsms_server.account import Account
from dsms_server.audit.trail import OK, Trail

_READS = (
    ast.SelectStatement | ast.Show | ast.ShowCreate | ast.Describe | ast.Explain | ast.Lookup
)  # a list
_RIGHTS = (
    ast.CreateUser | ast.AlterUser | ast.AlterQuota | ast.DropUser | ast.CreateRole | ast.DropRole
    | ast.Grant | ast.Revoke | ast.GrantRole | ast.RevokeRole
)  # a long list  # fmt: skip


class Script:
    """`text`: of the whole request.  `wait`: done when the beginning of the statement that is next
    is on the disk, or can't be; None: it need not be."""

    def __init__(
        self, trail: Trail, account: Account, text: str, elapsed: Callable[[], float]
    ) -> None:
        self._trail, self._account, self._text, self._elapsed = trail, account, text, elapsed
        self._part: str | None = None  # the statement that is next, or at work
        self._statement: ast.Statement | None = None
        self._began = elapsed()
        self.wait: Future[bool] | None = None
        self.last: Future[bool] | None = None  # of what has been done

    def begins(self, text: str, statement: ast.Statement | None) -> bool:
        """The engine has come to a statement (None), has understood it.  Answers whether it is to
        be kept from beginning for a moment; raises DS674."""
        self._part, self._statement = text, statement
        if statement is None:
            self._began = self._elapsed()
            return False
        trail, kind = self._trail, _kind(statement)
        if not (trail.required and trail.wants(kind)):
            return False
        trail.check(kind)
        self.wait = self._put("begun", wait=True)
        return self.wait is not None

    def over(self, result: Result) -> None:
        """The statement has its result."""
        rows = result.data.num_rows if isinstance(result, Rows) else None
        self.last = self._put(OK, self._trail.required, rows=rows, seconds=self._seconds())
        self._part = self._statement = None
        self._began = self._elapsed()

    def failed(self, code: str) -> Future[bool] | None:
        """It ends with an error of that code; nothing follows."""
        return self._put(code, self._trail.required, seconds=self._seconds())

    def _seconds(self) -> float:
        return round(self._elapsed() - self._began, 6)

    def _put(self, outcome: str, wait: bool = False, **said: Any) -> Future[bool] | None:
        text = self._text if self._part is None else self._part
        command = None if self._statement is None else _command(self._statement)
        return self._trail.statement(
            _kind(self._statement),
            self._account,
            text.strip(),
            outcome,
            wait=wait,
            command=command,
            **said,
        )


def _kind(statement: ast.Statement | None) -> str:
    """Which kind of event it is; what could not be read counts as a change."""
    match statement:
        case ast.CancelSession():
            return "session"
        case _ if isinstance(statement, _RIGHTS):
            return "rights"
        case _ if isinstance(statement, _READS):
            return "select"
    return "change"


def _command(statement: ast.Statement) -> str:
    """``CREATE QUERY``"""
    if isinstance(statement, ast.CancelSession) and statement.close:
        return "CLOSE SESSION"
    if isinstance(statement, ast.RenameQuery | ast.SetQuery):
        return "ALTER QUERY"
    if isinstance(statement, ast.CreateFunction | ast.DropFunction):
        return f"{type(statement).__name__.removesuffix('Function').upper()} {statement.kind}"
    kind = getattr(statement, "kind", "")
    if type(statement).__name__.endswith("Connector"):
        return f"{type(statement).__name__.removesuffix('Connector').upper()} {kind}"
    words = re.findall("[A-Z][a-z]*", type(statement).__name__)
    return " ".join(word for word in words if word != "Statement").upper()
