"""Processes of Python that begin where their imports are done.

A server, a shell or a fuzzer's child works for a second or two before it begins: it imports
modules, reads the grammar, loads kernels.  `Popen` and `run` are those of `subprocess`, but what is
`python -m MODULE ...` or `python -c CODE ...` is forked from a process that has done all that
(`python -m tests.forked`; it has one thread).  It is a child of the one that asked for it, and is
waited for, killed and read as any other.  With --all everything starts as ever, and so it does on
other systems than Linux; what is about how a process starts uses `subprocess` itself.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import inspect
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.effort import effort, unsynced

ROOT = Path(__file__).resolve().parent.parent
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
MODULES = ("dsms_client.cli", "dsms_client.sync", "dsms_client.files.like", "dsms_server.serve",
           "dsms_server.server", "dsms_client.shell.runner", "dsms_client.shell.prompt",
           "tests.faults.kinds.sql",
           "tests.faults.kinds.arrow", "tests.faults.kinds.parquet", "tests.faults.kinds.csv",
           "tests.faults.kinds.json", "tests.faults.kinds.state")  # a list  # fmt: skip
# what is read once, when Python or a library starts, and what of that matters only there
STARTS = ("PYTHON", "NUMBA_", "OPENBLAS_", "OMP_", "ARROW_", "MALLOC_", "LD_", "LC_", "LANG", "TZ")

HERE = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}


class Popen(subprocess.Popen[Any]):
    def _execute_child(self, *given: Any) -> None:
        said = inspect.signature(super()._execute_child).bind(*given).arguments
        words = _words(said)
        if words is None:
            super()._execute_child(*given)
            return
        ends = {name: said[name] for name in inspect.signature(self._close_pipe_fds).parameters}
        fds = [ends[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        request = {
            "words": words,
            "cwd": os.fspath(said["cwd"] or os.getcwd()),
            "env": dict(os.environ if said["env"] is None else said["env"]),
            "session": bool(said["start_new_session"]),
        }
        self.pid = ORIGIN.fork(request, [at if fd == -1 else fd for at, fd in enumerate(fds)])
        self._child_created = True
        self._close_pipe_fds(**ends)


def run(args: Any, input: Any = None, capture_output: bool = False, check: bool = False,
        **said: Any) -> subprocess.CompletedProcess[Any]:  # an option a word  # fmt: skip
    if capture_output:
        said |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        said["stdin"] = subprocess.PIPE
    with Popen(args, **said) as process:
        out, err = process.communicate(input)
    done = subprocess.CompletedProcess(args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def _words(said: dict[str, Any]) -> list[str] | None:
    """What follows the name of Python, of a command that may be forked."""
    args, env = said["args"], said["env"]
    if effort() or sys.platform != "linux" or isinstance(args, str | bytes | os.PathLike):
        return None
    python, *words = [os.fspath(word) for word in args]
    words = words[1:] if words[:1] == ["-P"] else words
    simple = not (said["pass_fds"] or said["preexec_fn"] or said["shell"])
    alike = _starts(os.environ if env is None else env) == _starts(ORIGIN.env)
    ours = python == sys.executable and words[:1] in (["-m"], ["-c"])
    return words if ours and simple and alike else None


def _starts(env: Any) -> dict[str, str]:
    return {name: env[name] for name in env if name.startswith(STARTS) and name not in HERE}


class Origin:
    """The process that others are forked from; it begins when it is first asked, and ends with the
    one that asks."""

    def __init__(self) -> None:
        self.env = dict(os.environ)
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, request: dict[str, Any], fds: list[int]) -> int:
        """The pid of a child of this process, with these standard streams."""
        with self._lock:
            line = self._line or self._begin()
            _subreaper(True)
            try:
                socket.send_fds(line, [b"!"], fds)
                data = json.dumps(request).encode()
                line.sendall(len(data).to_bytes(4, "big") + data)
                pid = int.from_bytes(_read(line, 4), "big")
            finally:
                _subreaper(False)
        return pid

    def _begin(self) -> socket.socket:
        self._line, other = socket.socketpair()
        with other:
            words = [sys.executable, "-m", "tests.forked", str(other.fileno())]
            self._process = subprocess.Popen(
                words, cwd=ROOT, env=self.env, pass_fds=[other.fileno()]
            )
        atexit.register(self.end)
        return self._line

    def end(self) -> None:
        if self._line is not None and self._process is not None:
            self._line.close()
            self._process.wait()


def _subreaper(on: bool) -> None:
    """Whether orphans of this process's children become its own."""
    ctypes.CDLL(None).prctl(SUBREAPER, int(on), 0, 0, 0)


def _read(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            raise EOFError("the process that others are forked from has ended")
        data += piece
    return data


# -- in the process that others are forked from


def _ready() -> None:
    from dsms_server import lean

    unsynced()
    lean.load_arrow()
    for module in MODULES:
        import_module(module)
    from dsms import kernel_cache, warmup
    from dsms.sql.grammar import parser

    parser()
    if kernel_cache.kept() is not None:
        warmup.load()
    threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    gc.collect()
    gc.freeze()
    others = [name for name in threads[1:] if "jemalloc" not in name]  # which looks after its own
    assert not others, f"{threads}: of these only the first would be in a child"


def _serve(line: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork whenever asked to; what was asked for is returned in the child, None at the end."""
    while True:
        first, fds, *_ = socket.recv_fds(line, 1, 3)
        if not first:
            return None
        request = json.loads(_read(line, int.from_bytes(_read(line, 4), "big")))
        pid = _fork()
        if pid == 0:
            line.close()
            return request, fds
        for fd in fds:
            os.close(fd)
        line.sendall(pid.to_bytes(4, "big"))


def _fork() -> int:
    """As os.fork, but the child is an orphan at once, which the asking process takes."""
    read, write = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.close(write)
            return 0
        os.write(write, pid.to_bytes(4, "big"))
        os._exit(0)
    os.close(write)
    pid = int.from_bytes(os.read(read, 4), "big")
    os.close(read)
    os.waitpid(between, 0)
    return pid


def _become(request: dict[str, Any], fds: list[int]) -> None:
    """Be the process that was asked for."""
    for at, fd in enumerate(fds):
        os.dup2(fd, at)
        os.close(fd)
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _streams()
    how, what, *words = request["words"]
    sys.argv = [what if how == "-m" else how, *words]
    sys.path[0] = request["cwd"]
    try:
        if how == "-m":
            sys.modules.pop(what, None)  # it is run anew
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})
        code: Any = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    _end(code)


def _end(code: Any) -> None:
    """As Python ends, but without taking apart what was imported, one by one."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    os._exit((code or 0) & 255)


def _streams() -> None:
    """Standard streams as Python makes them at its start."""
    soon = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
    for fd, name, errors in ((1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        raw = open(fd, "wb", buffering=0 if soon else -1, closefd=False)  # noqa: SIM115
        lines = name == "stderr" or os.isatty(fd)
        stream = io.TextIOWrapper(
            raw, errors=errors, newline="\n", line_buffering=lines, write_through=soon
        )
        setattr(sys, name, stream)


ORIGIN = Origin()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which is for those who asked
    line = socket.socket(fileno=int(sys.argv[1]))
    _ready()
    found = _serve(line)
    if found is None:
        os._exit(0)
    _become(*found)


if __name__ == "__main__":
    main()
