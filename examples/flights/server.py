"""The real server in a process of its own, on a free port, over a directory that goes away with
it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

STOP_SECONDS = 60


@contextmanager
def server(say: Callable[[str], None], *options: str, keep: Path | None = None) -> Iterator[int]:
    """Start `dsms serve`, give its port, and stop it gracefully at the end.  `say` hears what it
    prints meanwhile.

    keep  the directory for its data, unless that goes away with it"""
    with (
        nullcontext(keep)
        if keep is not None
        else tempfile.TemporaryDirectory(prefix="dsms-demo-") as data
    ):
        command = [
            sys.executable,
            "-m",
            "dsms_client",
            "serve",
            "--port",
            "0",
            "--data",
            str(data),
            *options,
        ]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            yield _port(process, say)
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=STOP_SECONDS)
            if process.returncode != 0:
                raise RuntimeError(f"the server ended with exit code {process.returncode}:\n{rest}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _port(process: subprocess.Popen[str], say: Callable[[str], None]) -> int:
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        if found := re.search(r"listens on [^ ]*:(\d+)", line):
            return int(found[1])
        say(line.rstrip())
    raise RuntimeError("the server did not start:\n" + "".join(heard))
