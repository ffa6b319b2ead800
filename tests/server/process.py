"""A real server in a process of its own, which can be killed and started again; and the shell on a
terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading

from tests import forked
from tests.waiting import WAIT, reserved

# `dsms` with so many descriptors
WITH = """
import resource, sys
from dsms_client.cli import main
few = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
sys.exit(main())
"""


class Process:
    """`dsms serve` on a port and a data folder that stay the same; `descriptors`: how many it may
    have; `options`: more of them."""

    def __init__(
        self, data: str, descriptors: int | None = None, options: tuple[str, ...] = ()
    ) -> None:
        self.data, self._options = data, options
        self._how = ["-m", "dsms_client"] if descriptors is None else ["-c", WITH, f"{descriptors}"]
        self._held = reserved()  # also while no server listens there
        self.port = self._held.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Start, and wait until it listens."""
        command = [
            sys.executable,
            *self._how,
            "serve",
            "--no-warmup",
            "--data",
            self.data,
            *self._options,
        ]
        self._process = forked.Popen(
            [*command, "--port", str(self.port)], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if "listens on" in line:
                threading.Thread(target=self._process.stderr.read, daemon=True).start()
                return
        raise AssertionError(f"the server did not start: {said}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def freeze(self) -> None:
        """It is there, and does nothing any more."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It does again what it did before `freeze`."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """In good order; the exit code."""
        self._process.terminate()
        return self._process.wait(WAIT)

    def reopen(self) -> None:
        """As logrotate asks it to."""
        self._process.send_signal(signal.SIGHUP)


class Terminal:
    """`dsms shell` on a pseudo-terminal; `expect` reads until a pattern has come."""

    def __init__(self, port, home):
        self.main, child = pty.openpty()
        env = {
            **os.environ,
            "DSMS_PORT": str(port),
            "HOME": str(home),
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self.process = forked.Popen(
            [sys.executable, "-m", "dsms_client", "shell"],
            stdin=child,
            stdout=child,
            stderr=child,
            env=env,
            start_new_session=True,
        )
        os.close(child)
        self.text = ""

    def type(self, text):
        os.write(self.main, text.encode())

    def expect(self, pattern):
        while not (found := re.search(pattern, self.text)):
            assert select.select([self.main], [], [], WAIT)[0], (
                f"waited for {pattern!r}, had {self.text!r}"
            )
            piece = os.read(self.main, 65536).decode(errors="replace")
            self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", piece)
        self.text = self.text[found.end() :]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)
