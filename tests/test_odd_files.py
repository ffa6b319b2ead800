"""`dsms load` of files that are damaged, or odd: a code each time, whatever form they have, and
whichever way the stream is found; never a traceback."""

from __future__ import annotations

import bz2
import encodings.aliases
import gzip
import io
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.errors import DsmsError, UsageError
from dsms_client import cli
from dsms_client.files.infer import infer
from dsms_client.files.open import read
from dsms_client.files.options import Options, encoding_of
from dsms_client.files.source import FileSource
from dsms_client.shell import copying
from tests.effort import effort
from tests.test_file_forms import APACHE, ZEEK

SURROGATE = '{"k":1,"v":"\\ud800","t":"1970-01-01"}'
KEY = '{"\\ud800":1,"t":"1970-01-01"}'
GOOD = '{"k":2,"v":"x","t":"1970-01-01"}'


def parquet(*columns: tuple[str, pa.Array]) -> bytes:
    out = io.BytesIO()
    names = [name for name, _ in columns]
    pa.parquet.write_table(pa.Table.from_arrays([array for _, array in columns], names), out)
    return out.getvalue()


def arrow(*columns: tuple[str, pa.Array], is_file: bool = True) -> bytes:
    """In batches of two rows."""
    names = [name for name, _ in columns]
    out, table = io.BytesIO(), pa.Table.from_arrays([array for _, array in columns], names)
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(out, table.schema) as sink:
        sink.write_table(table, 2)
    return out.getvalue()


OF_ALL_TYPES = (
    ("k", pa.array([1, 2, None])),
    ("v", pa.array(["a", "é", None]).dictionary_encode()),
    ("t", pa.array([0, 1, 2], pa.timestamp("us"))),
    ("d", pa.array([5, 6, 7], pa.duration("us"))),
    ("b", pa.array([b"\xff", b"", None])),
    ("l", pa.array([[1], [], None])),
)
SOME = parquet(*OF_ALL_TYPES)


SOUND = {
    "x.arrow": arrow(*OF_ALL_TYPES),
    "x.arrows": arrow(*OF_ALL_TYPES, is_file=False),
    "x.parquet": SOME,
    "x.csv": b"k,v,t\n1,a,1970-01-01\n2,\xc3\xa9,1970-01-02\n",
    "x.tsv": b"k\tv\tt\n1\ta\t1970-01-01\n",
    "x.json": json.dumps([{"k": 1, "v": "a", "t": "1970-01-01"}] * 3).encode(),
    "x.jsonl": f"{GOOD}\n{GOOD}\n".encode(),
    "conn.log": (ZEEK + "1\tC\t::1\t5\tT\n").encode(),
    "access.log": APACHE.encode(),
    "x.csv.gz": gzip.compress(b"k,t\n1,1970-01-01\n"),
    "x.jsonl.bz2": bz2.compress(GOOD.encode()),
}
BROKEN = {
    "magic.parquet": b"PAR1",
    "magic.arrow": b"ARROW1",
    "magic.arrow.gz": gzip.compress(b"ARROW1"),
    "cut.arrow": arrow(*OF_ALL_TYPES)[:-9],
    "cut.arrows": arrow(*OF_ALL_TYPES, is_file=False)[:300],
    "ends.arrow": b"ARROW1" + b"\xff" * 40 + b"ARROW1",
    "text.arrow": b"k,t\n1,2\n",
    "feather.feather": b"FEA1" * 9,
    "cut.parquet": SOME[:300],
    "ends.parquet": b"PAR1" + b"\xff" * 40 + b"PAR1",
    "text.parquet": b"k,t\n1,2\n",
    "magic.parquet.gz": gzip.compress(b"PAR1"),
    "surrogate.json": SURROGATE.encode(),
    "surrogate.jsonl": SURROGATE.encode(),
    "key.jsonl": KEY.encode(),
    "cut.csv.gz": SOUND["x.csv.gz"][:-9],
    "cut.jsonl.bz2": SOUND["x.jsonl.bz2"][:-9],
    "not.csv.gz": b"k,t\n1,2\n",
    **{f"empty{Path(name).suffix}": b"" for name in SOUND},
    **{f"nothing{Path(name).suffix}": b"\0" * 100 for name in SOUND},
}
ODD = {
    "without.parquet": parquet(("k", pa.array([], pa.int64()))),
    "lists.parquet": parquet(("l", pa.array([[1]]))),
    "twice.parquet": parquet(("k", pa.array([1])), ("k", pa.array([2]))),
    "spelled.parquet": parquet(("k", pa.array([1])), ("K", pa.array([2]))),
    "nulls.parquet": parquet(("k", pa.nulls(3))),
    "twice.arrow": arrow(("k", pa.array([1])), ("k", pa.array([2]))),
    "nulls.arrow": arrow(("k", pa.nulls(3))),
    "some.jsonl": f"{GOOD}\n{SURROGATE}\n{KEY}\n".encode(),
    "kinds.json": b'[1, "a", null, [], {"k": [1]}, {"k": {"k": 1}}]',
    "deep.json": b"[" * 100_000,
    "bom.csv": b"\xef\xbb\xbfk,t\n1,1970-01-01\n",
    "latin.csv": b"k,v\n1,\xff\n",
    "wide.csv": b"k,k,K\n1,2,3\n",
    "long.csv": b"k" * 3_000_000,
}
ENCODINGS = (
    *sorted({*encodings.aliases.aliases.values(), "unicode_escape", "raw_unicode_escape"}),
    *("idna", "punycode", "undefined", "foo", "", "\0", "é"),
)
NO_TEXT = {
    *("base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec"),
    *("idna", "punycode", "undefined", "foo", "", "\0", "é"),
}
NONE = Options()


def made(name: str, data: bytes, folder: Path) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def inferred(path: str, options: Options = NONE) -> str:
    """The code of what is wrong, if anything is."""
    try:
        infer(FileSource(path, options))
    except DsmsError as problem:
        return problem.code
    return ""


def loaded(path: str, columns: tuple[tuple[str, str], ...], options: Options = NONE) -> str:
    """As `--stream` and `replay` read it."""
    try:
        _, pieces = read(FileSource(path, options), columns, {}, options)
        for _ in pieces:
            pass
    except DsmsError as problem:
        return problem.code
    return ""


COLUMNS = (("k", "INT"), ("v", "STRING"), ("t", "TIMESTAMP"))


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_read(name: str, tmp_path: Path) -> None:
    assert inferred(made(name, SOUND[name], tmp_path)) == ""


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_has_a_code(name: str, tmp_path: Path) -> None:
    path = made(name, BROKEN[name], tmp_path)
    assert inferred(path) == "DS530"
    assert loaded(path, COLUMNS) in ("", "DS530", "DS532")  # "": its rows are rejects


@pytest.mark.parametrize("name", BROKEN | ODD)
@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["create", "dry run"])
def test_no_file_makes_a_traceback(
    name: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a server: what is sound comes as far as connecting."""
    path = made(name, (BROKEN | ODD)[name], tmp_path)
    code = cli.main(["load", path, "--create", "s", "--port", "1", "--wait", "0", *more])
    said = capsys.readouterr()
    assert code in (0, 1, 2) and "Traceback" not in said.err
    assert bool(said.err.strip()) or not code


def test_rows_that_no_stream_takes_are_no_sample(tmp_path: Path) -> None:
    found = infer(FileSource(made("some.jsonl", ODD["some.jsonl"], tmp_path), Options()))
    assert found.columns == (("k", "INT"), ("v", "STRING"), ("t", "TIMESTAMP"))


@pytest.mark.parametrize("name", SOUND)
def test_damage_anywhere_is_an_error_or_rows(name: str, tmp_path: Path) -> None:
    draw, data = random.Random(name), SOUND[name]
    for case in range(12 * effort()):
        damaged = bytearray(data)
        for _ in range(draw.choice((0, 1, 3))):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path = made(f"{case}-{name}", bytes(damaged[: draw.randrange(len(damaged) + 1)]), tmp_path)
        for found in (inferred(path), loaded(path, COLUMNS)):
            assert not found or found[:4] in ("DS50", "DS53"), (case, found)


@pytest.mark.parametrize("name", ["twice.parquet", "twice.arrow", "wide.csv"])
def test_columns_of_one_name_are_named(name: str, tmp_path: Path) -> None:
    path = made(name, ODD[name], tmp_path)
    assert inferred(path) == loaded(path, (("k", "INT"),)) == "DS532"


def test_the_file_is_named(tmp_path: Path) -> None:
    path = made("magic.parquet", b"PAR1", tmp_path)
    with pytest.raises(UsageError, match=r"cannot read .*magic.parquet as Parquet"):
        infer(FileSource(path, Options()))


@pytest.mark.parametrize(
    "text",
    ['{"k":1} {"k":2}', '{"k":1},{"k":2}\n', '{"k":1}{\n"k":2}', '{"k":\n1}\n{"k":2}'],
    ids=["a blank", "a comma", "over lines", "first over lines"],
)
def test_objects_one_after_another_are_taken(text: str, tmp_path: Path) -> None:
    """The first line had to be one object, or a brace; the hint said otherwise."""
    source = FileSource(made("x.json", text.encode(), tmp_path), Options())
    _, pieces = read(source, (("k", "INT"),), {})
    assert [row["k"] for piece in pieces for row in piece.batch.to_pylist()] == [1, 2]
    assert [name for name, _ in infer(source).columns] == ["k"]


def test_a_file_that_begins_with_no_object_says_so(tmp_path: Path) -> None:
    for name, data, said in (
        ("x.jsonl", b'{"k":1} {"k":2}\n', "the first line of {} is not one JSON object"),
        ("x.json", b"k,v\n", "{} does not begin with a JSON object"),
        ("y.json", b'{"k":"' + b"x" * 70_000, "{} does not begin with a JSON object that ends"),
    ):
        path = made(name, data, tmp_path)
        with pytest.raises(UsageError) as told:
            read(FileSource(path, Options()), (("k", "INT"),), {})
        assert told.value.code == "DS530" and said.format(path) in told.value.message


SAID = {
    "not.csv.gz": (b"k,v\n1", "cannot read {path}: it is not compressed with gzip"),
    "not.csv.zst": (b"k,v\n1", "cannot read {path}: it is not compressed with zstd"),
    "not.csv.bz2": (b"k,v\n1", "cannot read {path}: it is not compressed with bz2"),
    "cut.csv.gz": (SOUND["x.csv.gz"][:-9], "cannot read {path}: it is cut short"),
    "cut.csv.bz2": (SOUND["x.jsonl.bz2"][:-9], "cannot read {path}: it is cut short"),
    "bad.csv.gz": (SOUND["x.csv.gz"][:-8] + bytes(8), "cannot read {path}: it is damaged"),
    "bad.csv.zst": (
        pa.compress(b"abc" * 1000, "zstd", asbytes=True)[:8] + b"\xff" * 8,
        "cannot read {path}: it is damaged",
    ),
    "text.parquet": (b"k,t\n1,2\n" * 9, "{path} as Parquet: it does not begin as Parquet does"),
    "empty.parquet": (b"", "{path} as Parquet: it is empty"),
    "cut.parquet": (SOME[:300], "{path} as Parquet: it is cut short, or damaged"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_wrong_is_said_in_plain_words(name: str, tmp_path: Path) -> None:
    """What libraries say was passed on: "Not a gzipped file (b'k,')"."""
    data, said = SAID[name]
    path = made(name, data, tmp_path)
    for job in (infer, lambda source: [*read(source, (("k", "INT"),), {})[1]]):
        with pytest.raises(UsageError) as told:
            job(FileSource(path, Options()))
        assert said.format(path=path) in told.value.message and told.value.code == "DS530"


@pytest.mark.parametrize("name", ENCODINGS)
def test_an_encoding_is_one_of_text_and_what_it_cannot_read_has_a_code(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = []
    path = made("x.csv", SOUND["x.csv"], tmp_path)
    try:
        options.append(Options(encoding=encoding_of(name)))
    except UsageError as problem:
        assert problem.code == "DS215" and name in NO_TEXT | {"mbcs", "oem"}
        with pytest.raises(SystemExit):
            cli.main(["load", path, "--create", "s", "--dry-run", "--encoding", name])
    for option in options:
        assert name not in NO_TEXT
        for data in (
            SOUND["x.csv"],
            b"k,t\n1,2\n3,4,\n",
            b"k\n\xff\xfe\x80\n",
            b"",
            b"k,v\n\\ud800",
        ):
            path = made("x.csv", data, tmp_path)
            for found in (inferred(path, option), loaded(path, COLUMNS, option)):
                assert not found or found[:4] in ("DS50", "DS53"), (data, found)


def test_utf_16_without_its_mark_is_the_files_error(tmp_path: Path) -> None:
    path = made("x.csv", b"a,b\n1,2\n", tmp_path)
    assert inferred(path, Options(encoding="utf-16")) == "DS530"
    assert loaded(path, COLUMNS, Options(encoding="utf-16")) == "DS530"


@pytest.mark.parametrize(
    "option",
    [
        *("delimiter = 'ab'", "delimiter = 'é'", "delimiter = ''", "delimiter = '\"'"),
        *("encoding = 'foo'", "encoding = 'base64'", "encoding = 'idna'", "max_rejects = ²"),
    ],
)
def test_copy_takes_no_option_that_load_does_not(option: str) -> None:
    with pytest.raises(UsageError) as problem:
        copying.read(f"COPY t FROM 'x.csv' WITH ({option})")
    assert problem.value.code == "DS215"


def test_pages_of_parquet_are_what_their_checksums_say(tmp_path: Path) -> None:
    """Where a file has any: of a text that became another nothing else tells."""
    path, out = tmp_path / "x.parquet", io.BytesIO()
    table = pa.table({"v": ["unmistakable"] * 3})
    pa.parquet.write_table(
        table, out, write_page_checksum=True, compression="none", use_dictionary=False
    )
    path.write_bytes(out.getvalue().replace(b"unmistakable", b"mistakenable"))
    with pytest.raises(DsmsError, match="DS530"):
        list(read(FileSource(str(path)), [("v", "STRING")], {}, Options())[1])
