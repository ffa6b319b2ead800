"""Check this installation: Python, packages, the kernels' cache, the port, a running server.

example:
  dsms doctor
  dsms doctor --host db.example.org --token-file secret.txt
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Iterator

from dsms.errors import INSTALL_SPARK
from dsms_client.cli import FAILED, OK
from dsms_client.commands import connection

REQUIRED = ("numpy", "pyarrow", "numba", "msgpack", "lark", "aiohttp", "prometheus_client", "rich",
            "prompt_toolkit",
            "duckdb")  # a long list  # fmt: skip
OPTIONAL = {
    "cryptography": "encrypts data directories (--state-key-file)",
    "uvloop": "the server is slower without it",
    "pandas": "for DataFrames",
    "polars": "for DataFrames",
    "pyspark": f"archives are updated and read by it: {INSTALL_SPARK}",
}


def configure(parser: argparse.ArgumentParser) -> None:
    connection.add_options(parser)


def run(args: argparse.Namespace) -> int:
    worst = OK
    for good, what in _checks(args):
        mark = {True: "ok  ", False: "FAIL", None: "note"}[good]
        print(f"{mark}  {what}")
        worst = FAILED if good is False else worst
    return worst


def _checks(args: argparse.Namespace) -> Iterator[tuple[bool | None, str]]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield sys.version_info >= (3, 11), f"Python {version} (3.11 or later is needed)"
    yield from _packages()
    yield _java()
    yield _cache()
    yield _server(args)


def _packages() -> Iterator[tuple[bool | None, str]]:
    from importlib.metadata import PackageNotFoundError, version

    for name in REQUIRED:
        try:
            yield True, f"{name} {version(name)}"
        except PackageNotFoundError:
            yield False, f"{name} is missing: pip install {name}"
    for name, use in OPTIONAL.items():
        try:
            yield True, f"{name} {version(name)}"
        except PackageNotFoundError:
            yield None, f"{name} is not installed ({use})"


def _java() -> tuple[bool | None, str]:
    from dsms.errors import DsmsError
    from dsms_spark.java import find_java

    try:
        java = find_java()
    except DsmsError as problem:
        return None, f"{problem.message} (archives are updated and read by Spark)"
    return True, f"Java {java.version} for Spark, {java.found}: {java.home}"


def _cache() -> tuple[bool | None, str]:
    from dsms import kernel_folder

    problem = kernel_folder.complaint()
    return (
        (True, f"kernels are kept under {kernel_folder.place()}")
        if problem is None
        else (None, problem)
    )


def _server(args: argparse.Namespace) -> tuple[bool | None, str]:
    from dsms.errors import DsmsError

    where = f"{args.host}:{args.port}"
    try:
        with connection.open_client(args, connect_seconds=0, reconnect_seconds=0) as client:
            client.ping()
        return True, f"a dsms server answers at {where}"
    except DsmsError as problem:
        if problem.code != "DS612":
            return False, f"{where}: {problem}"
    try:
        with socket.create_server((args.host, args.port)):
            return True, f"no server runs at {where}, and the port is free for `dsms serve`"
    except OSError as problem:
        return (
            False,
            f"no server answers at {where}, and it cannot be listened on: {problem.strerror}",
        )
