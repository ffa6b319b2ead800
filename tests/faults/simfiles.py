"""Files in memory, with a model of what survives a crash, and operations that fail when they are
told to.

A killed process loses nothing that was written.  A power failure leaves of each file what was
synced, and of what was written since: all, a part, zeros, nothing, or some pages and not others; a
rename or a new name that was not synced may be undone.  A file that is mapped shows what is written
to it later.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from dsms.storage.files import explained


class Crashed(BaseException):
    """The process ends here."""


@dataclass(slots=True)
class Node:
    """A file: what it holds, and what of it is on the disk."""

    data: bytearray = field(default_factory=bytearray)
    disk: bytes = b""
    mapped: list[bytearray] = field(default_factory=list)  # as the mappings of it show it

    def write(self, at: int, data: bytes) -> None:
        self.data[at : at + len(data)] = data
        for seen in self.mapped:
            upto = max(at, min(len(seen), at + len(data)))
            seen[at:upto] = data[: upto - at]

    def truncate(self, size: int) -> None:
        del self.data[size:]
        for seen in self.mapped:
            # the system would end the process that reads there
            seen[size:] = b"\xff" * len(seen[size:])


@dataclass(slots=True)
class Plan:
    """at        the operation (counted from 0) that fails; None: none
    error     errno of its OSError; None: the process ends
    after     it is done before it fails
    room      bytes that may still be written; None: any
    """

    at: int | None = None
    error: int | None = None
    after: bool = False
    room: int | None = None


class SimFiles:
    """See `dsms.storage.files.Files`."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}  # names as they are on the disk
        self.folders: set[str] = {"", "/"}
        self.count = 0
        self.dead = False  # the process has ended: what still runs of it can't do anything

    # -- faults ------------------------------------------------------------------------------------

    @contextmanager
    def _operation(self, path: str):
        number, plan = self.count, self.plan
        self.count += 1
        hit = plan.at == number
        if self.dead:
            raise Crashed(path)
        with explained(path):
            if hit and not plan.after:
                self._fail(path)
            yield
            if hit and plan.after:
                self._fail(path)

    def _fail(self, path: str) -> None:
        if self.plan.error is None:
            self.dead = True
            raise Crashed(path)
        raise OSError(self.plan.error, os.strerror(self.plan.error))

    def _take_room(self, size: int) -> int:
        """How many of so many bytes find room."""
        if self.plan.room is None:
            return size
        got = min(size, self.plan.room)
        self.plan.room -= got
        return got

    def crash(self, kind: str, random: Random) -> SimFiles:
        """What is there in the next life."""
        out = SimFiles()
        out.folders = set(self.folders)
        if kind == "kill":  # the disk does not notice
            out.names, out.durable = dict(self.names), dict(self.durable)
            for node in out.names.values():
                node.mapped = []
            return out
        for path, node in sorted(self._after_power(random).items()):
            data = _torn(node, random)
            out.names[path] = Node(data, bytes(data))
        out.durable = dict(out.names)
        return out

    def _after_power(self, random: Random) -> dict[str, Node]:
        out = dict(self.durable)
        for path in sorted({*self.names, *self.durable}):  # the same in every process
            if self.names.get(path) is not self.durable.get(path) and random.random() < 0.5:
                out.pop(path, None)
                if path in self.names:
                    out[path] = self.names[path]
        return out

    # -- operations --------------------------------------------------------------------------------

    def append(self, path: str) -> SimAppender:
        with self._operation(path):
            if path not in self.names:
                if os.path.dirname(path) not in self.folders:
                    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
                self.names[path] = Node()
            return SimAppender(self, path, self.names[path], len(self.names[path].data))

    def recycle(self, old: str, path: str) -> SimAppender:
        self.rename(old, path)
        return SimAppender(self, path, self.names[path], 0)

    def read(self, path: str) -> bytes:
        with self._operation(path):
            return bytes(self._node(path).data)

    def map(self, path: str) -> pa.Buffer:
        with self._operation(path):
            node = self._node(path)
            node.mapped.append(bytearray(node.data))
            return pa.py_buffer(node.mapped[-1])

    def write_atomic(self, path: str, buffers: Sequence[Any], sync: bool = True) -> None:
        part = f"{path}.part"
        self.names.pop(part, None)
        out = self.append(part)
        out.write(buffers)
        if sync:
            out.sync()
        self.rename(part, path)
        if sync:
            self.sync_folder(os.path.dirname(path))

    def remove(self, path: str) -> None:
        with self._operation(path):
            self._node(path)
            del self.names[path]

    def rename(self, old: str, new: str) -> None:
        with self._operation(new):
            self.names[new] = self._node(old)
            del self.names[old]

    def list(self, folder: str) -> list[str]:
        with self._operation(folder):
            start = f"{folder}/"
            inside = [p[len(start) :] for p in (*self.names, *self.folders) if p.startswith(start)]
            return sorted({p.split("/")[0] for p in inside})

    def exists(self, path: str) -> bool:
        return path in self.names or path in self.folders

    def size(self, path: str) -> int:
        with self._operation(path):
            return len(self._node(path).data)

    def make_folder(self, folder: str) -> None:
        with self._operation(folder):
            while folder and folder not in self.folders:
                self.folders.add(folder)
                folder = os.path.dirname(folder)

    def remove_folder(self, folder: str) -> None:
        with self._operation(folder):
            self.folders.discard(folder)

    def sync(self, path: str) -> None:
        self.sync_contents(path)
        self.sync_folder(os.path.dirname(path))

    def sync_contents(self, path: str) -> None:
        with self._operation(path):
            self._node(path).disk = bytes(self._node(path).data)

    def sync_folder(self, folder: str) -> None:
        with self._operation(folder):
            for path in {*self.names, *self.durable}:
                if os.path.dirname(path) == folder:
                    self.durable.pop(path, None)
                    if path in self.names:
                        self.durable[path] = self.names[path]

    def _node(self, path: str) -> Node:
        if path not in self.names:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.names[path]

    def damage(self, path: str, change: Callable[[bytearray], None]) -> None:
        """Change what a file holds from outside."""
        change(self.names[path].data)


@dataclass(slots=True)
class SimAppender:
    """An open file."""

    files: SimFiles
    path: str
    node: Node
    size: int
    broken: bool = False  # it can't be synced any more

    def write(self, buffers: Sequence[Any]) -> None:
        data = b"".join(bytes(memoryview(b).cast("B")) for b in buffers)
        with self.files._operation(self.path):
            got = self.files._take_room(len(data))
            self.node.write(self.size, data[:got])
            self.size += got
            if got < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self, size: int) -> None:
        self.size = size
        with self.files._operation(self.path):
            self.node.truncate(size)

    def sync(self) -> None:
        with self.files._operation(self.path):
            if self.broken:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.node.disk = bytes(self.node.data)

    def close(self) -> None:
        pass


def _torn(node: Node, random: Random) -> bytearray:
    """What a power failure leaves of a file."""
    new, old = bytes(node.data), node.disk
    at = next(
        (i for i, (a, b) in enumerate(zip(new, old, strict=False)) if a != b),
        min(len(new), len(old)),
    )
    cut = random.randint(at, len(new)) if len(new) > at else len(new)
    match random.randrange(5) if new != old else 3:
        case 0:
            return bytearray(old)
        case 1:
            return bytearray(new[:cut] + old[cut:])
        case 2:
            return bytearray(new[:cut] + bytes(random.randint(0, 40)) + old[cut + 40 :])
        case 4:
            return _pages(new, old, random, random.choice((64, 1024, 4096)))
    return bytearray(new)


def _pages(new: bytes, old: bytes, random: Random, size: int) -> bytearray:
    """Some pages of a file as they are, others as they were."""
    old += bytes(max(0, len(new) - len(old)))
    return bytearray().join(
        random.choice((new, old))[at : at + size] for at in range(0, len(new), size)
    )
