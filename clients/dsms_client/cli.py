"""The `dsms` command.  Each sub-command lives in a module of its own, imported only when it is the
one asked for."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import NoReturn

COMMANDS = {
    "serve": "run a server",
    "shell": "type statements, watch results",
    "load": "send the rows of a file to a stream",
    "replay": "send the rows of a file at the pace of their timestamps",
    "subscribe": "write the changes of a query to stdout or a file",
    "warmup": "compile the kernels now, so that nobody waits for them later",
    "dump": "write down what is declared, as statements",
    "restore": "run what dump has written",
    "migrate": "bring a data directory of an earlier version to today's layout",
    "doctor": "check this installation",
    "rekey": "encrypt a data directory, or change its key",
    "archive": "look into archives, update, search and export them (Spark)",
}
# exit codes: fine; a statement or some rows failed; wrong usage or no connection
OK, FAILED, MISUSED = 0, 1, 2


def main(argv: list[str] | None = None) -> int:
    """Run one sub-command; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    parser = _parser(next((word for word in argv if word in COMMANDS), None))
    try:
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help()
            return MISUSED
        return import_module(f"dsms_client.commands.{args.command}").run(args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `dsms ... | head`
        sys.stderr.close()
        return OK
    except Exception as problem:
        return _explain(problem)


def _explain(problem: Exception) -> int:
    from dsms.errors import DsmsError

    if not isinstance(problem, DsmsError):
        raise problem
    from dsms_client.visible import prose

    print(prose(str(problem)), file=sys.stderr)
    return MISUSED


def _parser(wanted: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dsms",
        description="A data stream management system: persistent CQL queries over sliding windows.",
        epilog="Each command has its own --help with an example.  Start with: dsms serve",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, what in COMMANDS.items():
        sub = commands.add_parser(
            name, help=what, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == wanted:
            module = import_module(f"dsms_client.commands.{name}")
            sub.description = module.__doc__
            module.configure(sub)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> NoReturn:
        from importlib.metadata import version

        print(f"dsms {version('dsms')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
