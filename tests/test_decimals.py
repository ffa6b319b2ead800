"""DECIMALs from texts and from other DECIMALs: right or refused, of any size, by every way in."""

from __future__ import annotations

import json
import random
from decimal import Decimal, localcontext
from pathlib import Path

import pyarrow as pa
import pytest

from dsms.decimals import decimals, resized, whole
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.source import FileSource

SIZES = [(38, 0), (18, 3), (38, 38), (6, 2), (38, 9), (38, 20)]
LONG = "1" + "0" * 126 + "200000"  # which in 128 bits is 200000
TEXTS = [
    ("9001", 38, 38),
    ("1" + "0" * 39, 38, 0),
    (LONG, 18, 3),
    ("9" * 128, 18, 3),
    ("1910111100010190000019000991910011109", 38, 9),
    ("19e-39", 38, 0),
    ("109.0e-77", 38, 9),
    ("1e999999999999999999999", 38, 0),
    ("1_0", 6, 2),
    ("nan", 6, 2),
]


def _drawn(rng: random.Random) -> str:
    digits = "".join(
        rng.choice("00129") for _ in range(rng.choice((1, 5, 19, 37, 38, 39, 77, 140)))
    )
    point = rng.randrange(len(digits) + 1)
    text = rng.choice(("", "-")) + digits[:point] + rng.choice(("", ".")) + digits[point:]
    if rng.random() < 0.3:
        text += f"e{rng.choice(('', '-', '+'))}{rng.choice((0, 2, 20, 38, 77, 127, 300))}"
    return text


def _fits(number: Decimal, precision: int, scale: int) -> bool:
    with localcontext() as context:
        context.prec = 1000
        scaled = number.scaleb(scale)
        return scaled == scaled.to_integral_value() and abs(scaled) < Decimal(10) ** precision


def test_what_arrow_would_take_wrongly_is_refused() -> None:
    for text, precision, scale in TEXTS:
        with pytest.raises(pa.ArrowInvalid):
            decimals(pa.array(["0", text]), pa.decimal128(precision, scale))


def test_texts_are_what_they_say_or_refused() -> None:
    rng = random.Random(7)
    for _ in range(2000):
        text, (precision, scale) = _drawn(rng), rng.choice(SIZES)
        to = pa.decimal128(precision, scale)
        if _fits(Decimal(text), precision, scale):
            assert decimals(pa.array([None, text, "0"]), to).to_pylist() == [None, Decimal(text), 0]
        else:
            with pytest.raises(pa.ArrowInvalid):
                decimals(pa.array([text]), to)


def test_decimals_of_another_size_are_the_same_or_refused() -> None:
    rng = random.Random(8)
    for _ in range(2000):
        (precision, scale), (digits, behind) = rng.choice(SIZES), rng.choice(SIZES)
        wide = pa.decimal256(76, behind) if rng.random() < 0.2 else pa.decimal128(digits, behind)
        most = 10 ** rng.choice((1, wide.precision // 2, wide.precision))
        number = Decimal(rng.choice((1, -1)) * rng.randrange(most)).scaleb(-behind)
        values, to = pa.array([number], wide), pa.decimal128(precision, scale)
        if _fits(number, precision, scale):
            assert resized(values, to).to_pylist() == [number]
        else:
            with pytest.raises(pa.ArrowInvalid):
                resized(values, to)


@pytest.mark.parametrize(("text", "precision", "scale"), TEXTS[:6])
def test_no_way_in_takes_them(tmp_path: Path, text: str, precision: int, scale: int) -> None:
    kind = f"DECIMAL({precision},{scale})"
    for ending, content in (("csv", f"d\n{text}\n"), ("json", f'{{"d": {text}}}\n')):
        path = tmp_path / f"x.{ending}"
        path.write_text(content, encoding="utf-8")
        _, pieces = read(FileSource(str(path)), [("d", kind)], {}, Options(), 100)
        found = list(pieces)
        assert [len(piece.rejects) for piece in found] == [1]
    engine = Engine()
    engine.execute(f"CREATE STREAM s (d {kind}, t TIMESTAMP) TIMESTAMP BY t")
    assert engine.ingest("s", [(text, 1)]).refused == 1
    with pytest.raises(DsmsError, match="DS503"):
        engine.ingest("s", {"d": pa.array([text]), "t": [1]})
    if not text.endswith(("e-39", "e-77")):  # CAST rounds
        with pytest.raises(DsmsError, match="DS703"):
            engine.execute(f"SELECT CAST('{text}' AS {kind}) AS x")


def test_large_decimals_of_frames_are_refused() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (d DECIMAL(38,38), t TIMESTAMP) TIMESTAMP BY t")
    column = pa.array([Decimal(9001)], pa.decimal128(4, 0))
    with pytest.raises(DsmsError, match="DS503"):
        engine.ingest("s", pa.table({"d": column, "t": [1]}))


def test_instants_of_many_digits_are_too_far(tmp_path: Path) -> None:
    for ending, lines in (("csv", ["t", LONG]), ("json", [json.dumps({"t": int(LONG)})])):
        path = tmp_path / f"x.{ending}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        _, pieces = read(FileSource(str(path)), [("t", "TIMESTAMP")], {}, Options(unit="ms"), 100)
        (reject,) = [reject for piece in pieces for reject in piece.rejects]
        assert "too far away" in reject.reason


WIDTHS = {9: pa.decimal32, 18: pa.decimal64, 38: pa.decimal128, 76: pa.decimal256}


def _hundreds(rng: random.Random) -> tuple[pa.Array, list[Decimal | None]]:
    """Counts of 10^k in an array of any width, and what they are; some of a slice."""
    digits = rng.choice(list(WIDTHS))
    precision, zeros = rng.randint(1, digits), rng.randint(1, 38)
    counts = [
        rng.choice((0, 1, -1, rng.randint(-(10 ** rng.randint(1, precision)) + 1, 0)))
        for _ in range(3)
    ]
    array = pa.array([Decimal(c) for c in counts] + [None], WIDTHS[digits](precision, 0))
    array = array.view(WIDTHS[digits](precision, -zeros))
    found = [Decimal(c).scaleb(zeros) for c in counts] + [None]
    return (array.slice(1), found[1:]) if rng.random() < 0.3 else (array, found)


def test_decimals_of_a_negative_scale_are_whole_numbers() -> None:
    rng = random.Random(7)
    with localcontext() as context:
        context.prec = 200
        for _ in range(2000):
            array, found = _hundreds(rng)
            if all(v is None or abs(v) < 10**38 for v in found):
                assert whole(array).to_pylist() == found
            else:
                with pytest.raises(pa.ArrowInvalid, match="too large"):
                    whole(array)


@pytest.mark.parametrize("type_", ["DECIMAL(10,2)", "DECIMAL(5,0)", "INT"])
def test_they_are_taken_where_they_fit(type_: str) -> None:
    column = pa.array([Decimal("1E+2"), None, Decimal("-12E+3")], pa.decimal128(5, -2))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), column)
    forms = [pa.table({"c": one}) for one in (column, column.dictionary_encode(), runs)]
    forms += [[[value] for value in column], {"c": column}, {"c": column.to_pylist()}]
    for data in forms:
        engine = Engine()
        engine.execute(f"CREATE TABLE t (c {type_})")
        engine.ingest("t", data)
        rows = engine.execute("SELECT c FROM t")[-1].data.column(0).to_pylist()  # type: ignore[union-attr]
        assert rows == [100, None, -12000]
    large = pa.array([Decimal("1E+5")], pa.decimal128(5, -2))
    engine = Engine()
    engine.execute("CREATE STREAM s (c DECIMAL(5,0))")
    engine.advance(0)
    with pytest.raises(DsmsError, match=r"DS503.*1.*E\+5.*more than 5 digits"):
        engine.ingest("s", {"c": large})
    with pytest.raises(DsmsError, match=r"DS503: column 'c'.*ends with 39 zeros"):
        engine.ingest("s", {"c": large.view(pa.decimal128(5, -39))})
