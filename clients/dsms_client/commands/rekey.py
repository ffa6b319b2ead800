"""Make a state key; encrypt a data directory with a key, with another one, or not any more.

The server must be stopped.  A copy of the state takes its place in one step, so a command that is
interrupted has changed nothing, or ends with the next start.  Archives are left as they are.

example:
  dsms rekey --new state.key                                # a new key, in a file of its owner's
  dsms serve --data dsms-data --state-key-file state.key    # a new data directory is encrypted
  dsms rekey dsms-data --to state.key                       # ... and one that is there already
  dsms rekey dsms-data --from state.key --to next.key       # another key
  dsms rekey dsms-data --from state.key --decrypt           # no key any more
"""

from __future__ import annotations

import argparse

from dsms.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DIR", nargs="?", help="a data directory")
    parser.add_argument("--new", metavar="FILE", help="make a key, in a file that is not there")
    parser.add_argument("--from", dest="old", metavar="FILE", help="the key that it has")
    parser.add_argument("--to", metavar="FILE", help="the key that it gets")
    parser.add_argument("--decrypt", action="store_true", help="it gets none")


def run(args: argparse.Namespace) -> int:
    # the command line is where client and engine meet
    from dsms import state_key

    if args.new is not None:
        state_key.write_new(args.new)
        print(f"{args.new} holds a new key: without it what it encrypts can't be read")
    if args.data is None and args.new is not None:
        return 0
    _check(args)
    from dsms.storage.rekeying import rekey

    old, new = (state_key.read(f) if f else None for f in (args.old, args.to))
    rekey(args.data, old, new)
    print(f"{args.data} is {'not encrypted any more' if new is None else 'encrypted'}")
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.data is None:
        raise UsageError("DS640", "say which data directory, or --new FILE")
    if (args.to is None) != args.decrypt:
        raise UsageError("DS640", "say either --to FILE or --decrypt")
