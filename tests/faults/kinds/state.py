"""Files of a data folder: a state, what it or a piece of it says behind its checksums, a log, the
manifests of checkpoints and of archives, the catalog.  Most changed manifests get a checksum that
fits, so that what is behind it is reached."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import MagicMock

from dsms import Engine
from dsms.errors import DsmsError
from dsms.storage import checkpoints, packed
from dsms.storage import log as logs
from dsms.storage.archive.manifest import read_manifest
from dsms.storage.catalog import CatalogStore
from dsms.storage.frozen import freeze, thaw
from tests.faults.cases import judge
from tests.faults.formats import pickles, values
from tests.faults.mutate import mutated
from tests.faults.simfiles import SimFiles
from tests.folders import story

LIFE = 100_000
DECLARED = """
CREATE STREAM s (k STRING, v INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t
    ARCHIVE FOR 1 DAY UPDATE EVERY 1 h WITH (durability = sync);
CREATE TABLE r (k STRING PRIMARY KEY, n INT);
INSERT INTO r VALUES ('a', 1), ('b', 2)
"""
QUERIES = (
    "SELECT k, SUM(v), MAX(f) FROM s [RANGE 20 s] GROUP BY k",
    "SELECT s.k, v, n FROM s [RANGE 10 s], r WHERE s.k = r.k",
    "SELECT k, MEDIAN(f), TOPK(v, 2) FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k",
)
WORDS = (
    b"null",
    b"-1",
    b"9" * 25,
    b"1e999",
    b"[]",
    b"{}",
    b'""',
    b"[" * 3000,
    b"\x80\x05",
    b"s",
    b"../x",
)
PARTS = ("definition", "phys", "log", "pipeline", "sink", "evaluator", "arrivals", "slide")
BODY, PIECE = 1, 6
KINDS = ("state", "body", "log", "checkpoints", "manifest", "catalog", "piece")


@cache
def outside() -> dict[str, Any]:
    """What is kept out of states, by the names that it is called by there."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder)
        assert engine.saver is not None
        names = engine.saver.checkpointer.outside()
        engine.close()
    return {name: MagicMock() for name in names}


@cache
def seeds() -> dict[str, list[bytes]]:
    """By kind the files of a small folder."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder)
        engine.execute(DECLARED)
        for k, query in enumerate(QUERIES):
            engine.execute(f"CREATE QUERY q{k} AS {query}")
        for at in range(1, 20):
            row = {
                "k": ["a", "b"],
                "v": [at, None],
                "f": [at / 2, 1.5],
                "t": [at * story.SECOND] * 2,
            }
            engine.ingest("s", row, client="w", seq=at)
        engine.heartbeat("s", 40 * story.SECOND)
        assert engine.saver is not None
        engine.saver.checkpoint()
        found = _of(Path(folder))
        engine.close()
        with sqlite3.connect(f"{folder}/catalog.sqlite") as db:
            db.execute("PRAGMA journal_mode = DELETE")
        db.close()
        return {**found, "catalog": [Path(folder, "catalog.sqlite").read_bytes()]}


def _of(folder: Path) -> dict[str, list[bytes]]:
    ends = {
        "state": "*.state",
        "log": "*.log",
        "checkpoints": checkpoints.MANIFEST,
        "manifest": "manifest-*.json",
    }
    return {kind: [p.read_bytes() for p in sorted(folder.rglob(end))] for kind, end in ends.items()}


class Victim:
    """Reads what it is given, as opening a data folder does."""

    judged = 1

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)

    def suffer(self, data: bytes) -> str:
        """The first byte says which file it is."""
        kind = KINDS[(data[0] if data else 0) % len(KINDS)]
        try:
            end = getattr(self, f"_{kind}")(data[1:]) or "read"
        except DsmsError as problem:
            end = judge(problem.code, problem.message)
        return f"{kind} {end}"

    def _state(self, data: bytes) -> None:
        thaw(data, outside(), lambda reference: None, "a file")

    def _body(self, data: bytes) -> None:
        """What a state says, behind checksums that fit."""
        _thawed(data, _packed_buffers())

    def _piece(self, data: bytes) -> None:
        """The same of a piece of a state; the first byte says of which."""
        _thawed(data[1:], pieces()[data[0] % len(pieces())][1])

    def _log(self, data: bytes) -> str | None:
        files = SimFiles()
        files.append("/log").write([data])
        scan = logs.read_log(files, "/log")
        return "foreign" if scan.foreign else "torn" if scan.torn else None

    def _checkpoints(self, data: bytes) -> None:
        files = SimFiles()
        files.append(f"/{checkpoints.MANIFEST}").write([data])
        checkpoints.Checkpoints(files, "").load()

    def _manifest(self, data: bytes) -> None:
        read_manifest(data.decode(errors="replace"), "a file")

    def _catalog(self, data: bytes) -> None:
        path = Path(self._folder, "catalog.sqlite")
        for left in Path(self._folder).glob("catalog*"):
            left.unlink()
        path.write_bytes(data)
        with CatalogStore(path) as store:
            for found in store.objects():
                if found.kind == "table":
                    store.table(found.name)
            store.noted(0)

    def close(self) -> None:
        shutil.rmtree(self._folder)


make = Victim


def draw(rng: Random) -> bytes:
    """Two thirds are pieces of states: of the others most of what is changed is beyond a
    checksum."""
    which = rng.choice((PIECE,) * 13 + tuple(range(len(KINDS))))
    kind = KINDS[which]
    if kind in ("body", "piece"):
        place = rng.randrange(len(pieces()))
        body = _parts()[0] if kind == "body" else pieces()[place][0]
        changed = mutated(rng, body, (body,), WORDS) if rng.random() < 0.1 else None
        head = bytes([which]) if kind == "body" else bytes([which, place])
        return head + (changed or pickles.changed(rng, body))
    known = seeds()[kind]
    if kind in ("checkpoints", "manifest") and rng.random() < 0.7:
        tree = json.loads(rng.choice(known))
        values.changed(rng, tree, _another)
        return bytes([which]) + _fitting(json.dumps(tree).encode(), kind)
    return bytes([which]) + mutated(rng, rng.choice(known), known, WORDS)


def _another(rng: Random, value: Any) -> Any:
    match value:
        case bool() | None:
            return rng.choice((True, False, None, 0, "", [], {}))
        case int():
            return rng.choice((values.integer(rng, value), 0.5, str(value), None))
        case str():
            return rng.choice(("", "../x", "\x00", "é" * 300, value + "x", value[:-1], 5, None))
    return rng.choice((None, 0, "x", [], {}, [[]], rng.choice(values.FLOATS)))


@cache
def _parts() -> list[bytes]:
    """What a state says, and its buffers."""
    _, blobs = packed.unpacked(memoryview(seeds()["state"][0]), "here")
    return list(map(bytes, blobs))


@cache
def _packed_buffers() -> list[packed.Packed]:
    return list(map(packed.pack, _parts()[1:]))


@cache
def pieces() -> list[tuple[bytes, list[packed.Packed]]]:
    """What pieces of a state say, and their buffers: of a stream, a table, a window, a query."""
    world = thaw(seeds()["state"][0], outside(), lambda reference: None, "here")["world"]
    kept = (world.inputs, world.tables, world.rings, world.figures, world.archivings)
    found = [each for group in kept for each in group.values()]
    for query in world.queries.values():
        found += [getattr(query, name) for name in PARTS if hasattr(query, name)]
    written = [list(map(bytes, freeze(each, outside()))) for each in found]
    unpacked = [packed.unpacked(memoryview(b"".join(each)), "here")[1] for each in written]
    return [(bytes(body), list(map(packed.pack, buffers))) for body, *buffers in unpacked]


def _thawed(body: bytes, buffers: list[packed.Packed]) -> None:
    written = packed.written((packed.pack(body), *buffers), 1 + len(buffers))
    thaw(b"".join(map(bytes, written)), outside(), lambda reference: None, "a file")


def _fitting(data: bytes, kind: str) -> bytes:
    """With a checksum that fits, if it is JSON at all."""
    try:
        told = json.loads(data)
        if kind == "manifest":
            told.pop("check", None)
            told["check"] = zlib.crc32(json.dumps(told, sort_keys=True).encode())
        else:
            told["crc"] = checkpoints._crc(told["checkpoints"])
        return json.dumps(told).encode()
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return data
