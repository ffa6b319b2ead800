"""Types what a page says: commands, Python, statements; in a folder of its own, with a server if
one is started."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms_client.cli import main as dsms
from tests import forked
from tests.pages import text
from tests.pages.text import ROOT, Block, Step
from tests.waiting import WAIT, reserved

# `dsms serve` whose Spark does not start: pages that need Spark use the session of the tests, in
# this process.
SERVE = (
    "import sys, dsms_server.serve as s; from dsms_client.cli import main; "
    "s.worker_command = lambda *_: [sys.executable, '-c', 'raise SystemExit(3)']; sys.exit(main())"
)
PORT, HTTP_PORT, POSTGRES_PORT = "7654", "8654", "5433"  # as pages say; here they are others
GET = "import sys, urllib.request as u; print(u.urlopen(sys.argv[-1]).read().decode(), end='')"
FUNCTIONS = """
dsms() {{ "{python}" -m dsms_client "$@"; }}
curl() {{ "{python}" -c "{get}" "$@"; }}
"""
_SERVE = re.compile(r"^dsms serve\b(?P<options>.*?)&$", re.S)
_WORDS = r"(?:'[^']*'|\"[^\"$`]*\"|[^'\"|;&<>$])*?"
_HERE = re.compile(
    rf"^(?P<command>dsms (?!serve|warmup){_WORDS})(?:\| head -(?P<lines>\d+))?$", re.S
)


class Session:
    """folder    where commands run; examples of the repository are there too
    patience  seconds after which the lines of a subscription have no reader any more"""

    def __init__(self, folder: Path, patience: float = WAIT) -> None:
        self.folder, self.patience = folder, patience
        for name in ("examples", "docs", "grammar"):
            (folder / name).symlink_to(ROOT / name)
        self.names: dict[str, Any] = {}
        self.engine: Engine | None = None
        self._held = [reserved(), reserved(), reserved()]
        ports = (str(held.getsockname()[1]) for held in self._held)
        self.port, self.http_port, self.postgres_port = ports
        self._server: subprocess.Popen[str] | None = None
        self._said: list[str] = []  # by the server, since it listens
        self._rest: threading.Thread | None = None  # reads that

    def close(self) -> None:
        """Stop the server, if there is one."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        if self.engine is not None:
            self.engine.close()
        for held in self._held:
            held.close()

    # -- blocks ------------------------------------------------------------------------------------

    def body(self, block: Block) -> str:
        """The block with the outputs that really come, where they are others than those it has."""
        match block.kind:
            case "console":
                return "".join(
                    self._line(step, self.console(step)) for step in text.console_steps(block.body)
                )
            case "python" if block.body.startswith(">>> "):
                return "".join(
                    self._line(step, self.python(step)) for step in text.python_steps(block.body)
                )
            case "python":
                exec(compile(self._local(block.body), "page", "exec"), self.names)
            case "sql":
                self._engine().execute(block.body)
            case "sql error":
                self._wrong(block.body)
            case "toml":
                self._configuration(block.body)
        return block.body

    @staticmethod
    def _line(step: Step, came: str) -> str:
        return f"{step.typed}\n{text.same_or(step.output, came)}"

    def _engine(self) -> Engine:
        if self.engine is None:
            self.engine = Engine()
        return self.engine

    def _wrong(self, body: str) -> None:
        for line in body.splitlines():
            sql, _, code = line.partition("-- ")
            try:
                self._engine().execute(sql)
            except DsmsError as error:
                assert error.code == code.strip(), (line, error)
            else:
                raise AssertionError(f"it is no error: {line}")

    def _configuration(self, body: str) -> None:
        from dsms_server import config

        (self.folder / "page.toml").write_text(body, encoding="utf-8")
        config.build(config.from_file(str(self.folder / "page.toml")))

    # -- Python ------------------------------------------------------------------------------------

    def python(self, step: Step) -> str:
        """What the interpreter prints."""
        out, source = io.StringIO(), self._local(text.source_of(step))
        if PORT in text.source_of(step):
            self._serve("", step)
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(source, "page", "single"), self.names)
            except Exception as error:
                out.write("Traceback (most recent call last):\n  ...\n")
                out.write("".join(traceback.format_exception_only(error)))
        return out.getvalue()

    def _local(self, typed: str) -> str:
        typed = typed.replace(PORT, self.port).replace(HTTP_PORT, self.http_port)
        return typed.replace(POSTGRES_PORT, self.postgres_port)

    # -- commands ----------------------------------------------------------------------------------

    def console(self, step: Step) -> str:
        """The output of a command, errors behind it."""
        command = step.typed.removeprefix("$ ").replace("\\\n", "")
        if command.startswith("dsms warmup"):
            return ""
        if found := _SERVE.match(command):
            return self._serve(found["options"], step)
        if found := re.fullmatch(r"kill( -9)? %1", command):
            said = self._kill(signal.SIGKILL if found[1] else signal.SIGTERM)
            return said if step.output else ""
        if found := _HERE.match(command):
            return self._here(shlex.split(found["command"])[1:], int(found["lines"] or 0))
        return self._elsewhere(command)

    def _here(self, words: list[str], lines: int) -> str:
        """`dsms ...`, in this process; at most so many lines of it are read, if any number is
        said."""
        there = _environment(DSMS_PORT=self.port, DSMS_WAIT=str(WAIT))
        with _Pipe(lines, self.patience) as out, _Pipe(0, WAIT) as err, there:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                contextlib.suppress(SystemExit),
            ):
                dsms(words)
            return out.text + err.text

    def _elsewhere(self, command: str) -> str:
        command = FUNCTIONS.format(python=sys.executable, get=GET) + self._local(command)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with _environment(DSMS_PORT=self.port, NO_COLOR="1", PATH=path):
            run = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=WAIT,
            )
        if re.search(r"\|\s*tail\b", command):  # which says nothing before all has been said
            return run.stderr + run.stdout
        return run.stdout + run.stderr

    # -- the server --------------------------------------------------------------------------------

    def _serve(self, options: str, step: Step) -> str:
        """Start the server if there is none; what it says, if the page shows anything of that."""
        if self._server is None:
            words = shlex.split(self._local(options))
            command = [
                sys.executable,
                "-c",
                SERVE,
                "serve",
                "--no-warmup",
                "--port",
                self.port,
                *words,
            ]
            self._server = forked.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True)
            said = "".join(_until_it_listens(self._server))
            self._said = []
            self._rest = threading.Thread(
                target=_read, args=(self._server, self._said), daemon=True
            )
            self._rest.start()
            return (
                said.replace(self.port, PORT).replace(self.http_port, HTTP_PORT)
                if step.output
                else ""
            )
        return ""

    def _kill(self, how: signal.Signals) -> str:
        """End the server; what it says meanwhile."""
        assert self._server is not None, "no server was started"
        server, self._server = self._server, None
        server.send_signal(how)
        server.wait(timeout=WAIT)
        assert server.returncode in (0, -signal.SIGKILL), "the server did not end well"
        assert self._rest is not None
        self._rest.join(WAIT)
        return "".join(line for line in self._said if line.startswith("stop"))


def _until_it_listens(server: subprocess.Popen[str]) -> Iterator[str]:
    assert server.stderr is not None
    for line in server.stderr:
        yield line
        if "listens on" in line:
            return
    raise AssertionError("the server did not start")


def _read(server: subprocess.Popen[str], lines: list[str]) -> None:
    """What the server says from now on, to its end."""
    assert server.stderr is not None
    lines.extend(server.stderr)


class _Pipe(io.StringIO):
    """Standard output or error of a command; its reader closes it after so many lines (0: never) or
    seconds."""

    def __init__(self, lines: int, patience: float) -> None:
        super().__init__()
        self._lines = lines
        self._reader, self._writer = (
            os.fdopen(end, mode) for end, mode in zip(os.pipe(), "rw", strict=True)
        )
        self._patience = threading.Timer(patience, self._reader.close)

    def __enter__(self) -> _Pipe:
        self._patience.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._patience.cancel()
        self._reader.close()
        self._writer.close()

    @property
    def text(self) -> str:
        lines = self.getvalue().splitlines(keepends=True)
        return "".join(lines[: self._lines or None])

    def fileno(self) -> int:
        return self._writer.fileno()

    def close(self) -> None:
        """What was written is read later."""

    def write(self, piece: str) -> int:
        written = super().write(piece)
        if self._lines and self.getvalue().count("\n") >= self._lines:
            raise BrokenPipeError
        return written


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def session(folder: Path, patience: float = WAIT) -> Iterator[Session]:
    """A session in a folder, which is the current one meanwhile."""
    made, before = Session(folder, patience), Path.cwd()
    os.chdir(folder)
    try:
        yield made
    finally:
        os.chdir(before)
        made.close()


def typed_again(
    page: str, folder: Path, names: dict[str, Any] | None = None, patience: float = WAIT
) -> str:
    """The page with the outputs that really come.

    names  what Python on the page has from the beginning"""
    with session(folder, patience) as made:
        made.names.update(names or {})
        scripted = text.script_of(page) is not None
        return text.rewritten(
            page, lambda b: b.body if scripted and b.kind == "sql" else made.body(b)
        )


def programs(page: str) -> list[str]:
    """Python that is not run, which must compile."""
    return [
        ast.unparse(ast.parse(b.body))
        for b in text.blocks(page)
        if b.kind == "python" and not b.runs
    ]
