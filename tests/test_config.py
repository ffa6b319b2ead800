"""Every option of `dsms serve` may stand in its file, by the name that it has on the command line,
and means the same there; what only a file has is told in the documentation."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path

import pytest

from dsms_client.commands import serve
from dsms_server import config
from dsms_server.config import Config

DOCS = Path(__file__).parent.parent / "docs" / "operations.md"
# what other options need
BESIDE = {
    "--quota": {"auth": True},
    "--tls-client-ca": {"auth": True, "tls_cert": "c", "tls_key": "k"},
    "--tls-cert": {"tls_key": "k"},
    "--tls-key": {"tls_cert": "c"},
    "--audit-required": {"audit_log": "a"},
}
SAID = {
    "--retain-default": "10 min",
    "--quota": "queries=5",
    "--audit": "logins",
    "--spark-memory": "2g",
    "--http-port": "8080",
    "--port": "8080",
    "--host": "::1",
    "--statement-timeout": "30 s",
    "--function-timeout": "30 s",
    "--max-clock-step": "2 min",
}


def options() -> list[argparse.Action]:
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    return [a for a in parser._actions if a.dest not in ("help", "config")]


def shown(action: argparse.Action, flag: str, folder: Path) -> tuple[list[str], object]:
    """A value of the option: on the command line, and in a file."""
    if action.nargs == 0:
        return [flag], True
    text = SAID.get(flag, "32M" if action.metavar == "SIZE" else "7")
    if action.metavar in ("FILE", "DIR"):
        (folder / "value").write_text("told\n")
        text = str(
            folder
            if flag in ("--files", "--sink-files", "--secrets", "--functions")
            else folder / "value"
        )
    found: object = int(text) if action.type is int else text
    many = isinstance(action, argparse._AppendAction) or flag == "--audit"
    return [flag, text], [found] if many else found


@pytest.mark.parametrize(
    ("action", "flag"), [(a, flag) for a in options() for flag in a.option_strings]
)
def test_an_option_means_the_same_in_a_file(action, flag, tmp_path):
    words, value = shown(action, flag, tmp_path)
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    beside = BESIDE.get(flag, {})
    said = {k: v for k, v in vars(parser.parse_args(words)).items() if k != "config"}
    by_line = config.build(beside, said)
    file = tmp_path / "dsms.toml"
    file.write_text(f"{flag.removeprefix('--')} = {json.dumps(value)}\n")
    assert config.build(beside, config.from_file(str(file))) == by_line
    assert getattr(by_line, action.dest) != getattr(Config(), action.dest)


def test_options_and_keys_stand_in_the_documentation():
    text = DOCS.read_text(encoding="utf-8")
    flags = {flag for a in options() for flag in a.option_strings}
    assert [flag for flag in flags if f"`{flag}" not in text] == []
    on_line = {a.dest for a in options()}
    only = {f.name for f in fields(Config)} - on_line
    assert [name for name in only if f"`{name}`" not in text] == []
