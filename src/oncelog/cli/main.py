"""`oncelog COMMAND`: finds the command and runs it. A command's own module is loaded only when it is asked for."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import oncelog

COMMANDS = {
    "serve": "run a broker until it is told to stop",
    "demo": "three exactly-once workers, one of them and the broker killed, and a count of what arrived",
    "transactions": "list, describe and abort transactions, and find hanging ones",
    "explain-lag": "what holds back the last stable offset of a topic, and what to do about it",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="oncelog",
        description="The exactly-once log: a broker that speaks the Kafka protocol.",
        epilog="`oncelog help COMMAND` says more about one command.",
        formatter_class=_layout,
    )
    parser.add_argument("--version", action="version", version=f"oncelog {oncelog.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    # Only the command that is called describes its arguments: starting `serve` must not pay for the others.
    for name, purpose in COMMANDS.items():
        description = purpose[:1].upper() + purpose[1:] + "."
        command = commands.add_parser(name, help=purpose, description=description, formatter_class=_layout)
        if given[:1] == [name]:
            _module(name).add_arguments(command)
    if not given:
        parser.print_help()
        return 0
    parsed = parser.parse_args(given)
    return int(_module(parsed.command).run(parsed))


def _layout(prog: str) -> argparse.HelpFormatter:
    # Left to find out the width itself, argparse loads half a dozen modules for each argument it is told of.
    return argparse.HelpFormatter(prog, width=100)


def _module(command: str) -> ModuleType:
    return import_module(f"oncelog.cli.{command.replace('-', '_')}")
