"""Options and steps that all commands with a server share."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from dsms_client import tokens
from dsms_client.protocol import DEFAULT_PORT

if TYPE_CHECKING:
    from dsms_client.sync import Client


def add_options(parser: argparse.ArgumentParser) -> None:
    """--host, --port, --user, --password-file, --token, --token-file, --tls, --tls-ca, --tls-cert,
    --tls-key."""
    said = (
        "what is not said is taken from DSMS_HOST, DSMS_PORT, DSMS_USER, DSMS_PASSWORD, "
        "DSMS_TOKEN and DSMS_WAIT where these are set"
    )
    group = parser.add_argument_group("connection", said)
    group.add_argument(
        "--host", default=os.environ.get("DSMS_HOST", "127.0.0.1"), help="default %(default)s"
    )
    group.add_argument(
        "--port",
        type=_port,
        default=os.environ.get("DSMS_PORT", str(DEFAULT_PORT)),
        help="default %(default)s",
    )
    group.add_argument(
        "--user",
        default=os.environ.get("DSMS_USER") or None,
        help="who you are, on a server with users",
    )
    group.add_argument(
        "--password-file",
        dest="password",
        action=tokens.ReadLine,
        metavar="FILE",
        help="your password: the line in this file",
    )
    tokens.add_options(group, "what the server asks for")
    parser.set_defaults(
        token=tokens.from_environment(), password=os.environ.get("DSMS_PASSWORD") or None
    )
    group.add_argument(
        "--wait",
        type=_seconds,
        metavar="SECONDS",
        default=os.environ.get("DSMS_WAIT", "5"),
        help="for a server that is starting; default %(default)s",
    )
    group.add_argument(
        "--tls", action="store_true", help="encrypt; the server's certificate is checked"
    )
    group.add_argument(
        "--tls-ca", metavar="FILE", help="trust certificates signed by this one (implies --tls)"
    )
    group.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="your certificate, which shows who you are (implies --tls)",
    )
    group.add_argument("--tls-key", metavar="FILE", help="its key")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 1 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def open_client(args: argparse.Namespace, **options: Any) -> Client:
    """A client connected as the options say.  Raises DS605, DS612, ..."""
    from dsms_client.sync import connect

    return connect(args.host, args.port, **(session_options(args) | options))


def session_options(args: argparse.Namespace) -> dict[str, Any]:
    """What the options say of a session, for `connect` and AsyncClient."""
    shown = {"token": args.token, "user": args.user, "password": args.password}
    return {**shown, "tls": tls_of(args), "connect_seconds": args.wait}


def tls_of(args: argparse.Namespace) -> Any:
    """False, True or an SSL context."""
    if args.tls_ca is None and args.tls_cert is None:
        return args.tls
    import ssl

    from dsms.errors import UsageError

    try:
        context = ssl.create_default_context(cafile=args.tls_ca)
        if args.tls_cert is not None:
            context.load_cert_chain(args.tls_cert, args.tls_key)
    except (OSError, ssl.SSLError) as problem:
        raise UsageError("DS640", f"cannot use {args.tls_ca or args.tls_cert}: {problem}") from None
    return context
