"""A data folder from a stranger runs no code: whatever a state says, it is a state or an error with
a code."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from dsms import Engine
from dsms.errors import DsmsError, UsageError
from dsms.storage import frozen, packed
from dsms.storage.frozen import thaw
from dsms.storage.packed import LEGACY, VERSION
from tests.effort import effort
from tests.folders import story
from tests.folders.play import play

OUTSIDE: dict[str, Any] = {"settings": None}


def forged(body: bytes, version: int, buffers: tuple[bytes, ...] = ()) -> bytes:
    """A file that says what it likes, with checksums that fit."""
    known, packed.VERSION = packed.VERSION, version
    try:
        return b"".join(packed.written((body, *buffers), 1 + len(buffers)))
    finally:
        packed.VERSION = known


class Call:
    """Pickled, it is a call."""

    def __init__(self, what: Any, *arguments: Any) -> None:
        self.call = (what, arguments)

    def __reduce__(self) -> Any:
        return self.call


def _global(module: str, name: str, tail: bytes = b"") -> bytes:
    return b"\x80\x05c" + f"{module}\n{name}\n".encode() + tail


TOUCH = "touch {}"
ATTACKS = {
    "system": lambda path: pickle.dumps(Call(os.system, TOUCH.format(path))),
    "eval": lambda path: pickle.dumps(Call(eval, f"open({str(path)!r}, 'w')")),
    "open": lambda path: pickle.dumps(Call(open, str(path), "w")),
    "getattr": lambda path: (
        _global("builtins", "getattr")
        + _global("dsms.storage.forms", "array")[2:]
        + b"\x8c\x0b__globals__\x86R."
    ),
    "partial": lambda path: (
        _global("functools", "partial")
        + _global("os", "system")[2:]
        + b"\x85R."
        + TOUCH.format(path).encode()
    ),
    "import": lambda path: _global("dsms.storage.forms", "import_module", b"\x8c\x02os\x85R."),
    "dotted": lambda path: b"\x80\x05\x8c\x12dsms.storage.forms\x8c\x0fpa.lib.get_file\x93.",
    "class": lambda path: _global("dsms.storage.files", "RealFiles", b")\x81."),
    "method": lambda path: _global(
        "dsms.storage.forms", "method", b"\x8c\x03abc\x8c\x07__class\x86R."
    ),
    "kernel": lambda path: _global(
        "dsms.storage.frozen", "_named", b"\x8c\x02os\x8c\x06system\x86R."
    ),
    "extension": lambda path: b"\x80\x05\x82\x01.",
}


@pytest.mark.parametrize("version", [LEGACY, VERSION])
@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_run(attack: str, version: int, tmp_path: Path) -> None:
    target = tmp_path / "made"
    body = ATTACKS[attack](target)
    with pytest.raises(UsageError, match="DS546"):
        thaw(forged(body, version), OUTSIDE, lambda r: None, "a file")
    assert not target.exists()


@pytest.mark.parametrize("version", [LEGACY, VERSION])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x80\x05.",
        b"\x80\x05" + b"]" * 10 + b"a" * 10 + b".",
        b"\x80\x05" + b"(" * 50_000 + b"l" * 50_000 + b".",  # deep
        b"\x80\x05\x8d" + struct.pack("<Q", 1 << 60) + b"abc.",  # a text of an exabyte
        b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b"abc.",  # bytes of an exabyte
        b"\x80\x05\x97.",  # a buffer that is not there
        b"\x80\x05K\x01Q.",  # a name that is no pair
        b"\x80\x05" + b"h\x07.",  # a place that was never taken
        _global("dsms.storage.layout", "new", b"\x8c\x05world\x85R."),
        _global("dsms.storage.layout", "new", b"(\x8c\x05worldK\x01)t\x85RK\x05b."),
        _global("dsms.storage.forms", "array", b"(C\x04abcd\x8c\x01OK\x01\x85\x88tR."),
        _global(
            "dsms.storage.forms", "array", b"(C\x04abcd\x8c\x03<i8J\xff\xff\xff\x7f\x85\x88tR."
        ),
    ],
)
def test_nonsense_is_told(body: bytes, version: int) -> None:
    try:
        thaw(forged(body or b"", version), OUTSIDE, lambda r: None, "a file")
    except UsageError as error:
        assert error.code in ("DS545", "DS546")


def test_more_than_can_be_packed_is_not_unpacked() -> None:
    data = bytearray(pa.compress(b"x" * 1000, codec="lz4", asbytes=True))
    check = xxhash.xxh3_64_intdigest(data)
    with pytest.raises(ValueError, match="can't hold"):
        packed._blobs(memoryview(data), [(len(data), 1 << 40, check)])


def test_a_part_is_no_longer_than_its_pieces() -> None:
    pieces = packed.pack(b"x" * 1000).pieces
    for size in (0, 999, 1001, packed.PIECE, packed.PIECE + 1000, 1 << 60):
        data = b"".join((size.to_bytes(8, "little"), *pieces[1:]))
        if size:
            with pytest.raises(ValueError, match="not what was written"):
                packed._parts(memoryview(data), 1)
    assert packed._parts(memoryview(b"".join(pieces)), 1) == [b"x" * 1000]


def test_arrow_arrays_of_a_file_are_checked() -> None:
    from dsms.storage import forms

    offsets = np.array([0, 2, 1 << 30], np.int32).tobytes()
    with pytest.raises(pa.ArrowInvalid):
        forms.arrow_array(pa.string(), 2, 0, 0, None, offsets, b"ab")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, tuple[bytes, ...]]:
    """A real one: (what is encoded, the buffers beside it)."""
    engine = Engine(str(tmp_path_factory.mktemp("data")))
    engine.execute(story.DECLARED)
    for query in ("c_sums", "j_time", "d_time", "p_sum1", "w_part", "p_sketch", "o_istream"):
        engine.execute(f"CREATE QUERY {query} AS {story.QUERIES[query]}")
    play(engine, story.BEFORE[:40])
    assert engine.saver is not None
    data = b"".join(map(bytes, engine.saver.checkpointer.copy()()))
    _, blobs = packed.unpacked(memoryview(data), "here")
    engine.close()
    return bytes(blobs[0]), tuple(map(bytes, blobs[1:]))


def test_any_change_of_a_state_is_a_state_or_an_error(state: Any) -> None:
    body, buffers = state
    d = random.Random(7)
    outside = dict.fromkeys(("settings", "adhoc", "adhocs", "saver", "engine", "durable"))
    told = 0
    for _ in range(2000 * effort() if effort() > 1 else 150):
        changed = bytearray(body)
        for _ in range(d.choice((1, 1, 2, 5))):
            at = d.randrange(len(changed))
            match d.randrange(3):
                case 0:
                    changed[at] ^= 1 << d.randrange(8)
                case 1:
                    del changed[at : at + d.randrange(1, 9)]
                case _:
                    changed[at:at] = body[
                        (low := d.randrange(len(body))) : low + d.randrange(1, 30)
                    ]
        try:
            reader = frozen._Reader(io.BytesIO(changed), outside, lambda r: None, buffers)
            reader.load()
        except (DsmsError, *frozen.WRONG):
            told += 1
    assert told
