"""What every command that talks to brokers shares: where they are, how it ends, and how a problem is told.

Exit code 0: done, and nothing to worry about. 1: what was asked for is not there, or what should not be there is. 2: the command
could not do its work; one line on standard error says why and what to do.
"""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable

from oncelog.client.brokers import Brokers
from oncelog.client.errors import ClientError, Retriable, error_for
from oncelog.client.metadata import ClusterView
from oncelog.model.address import BadAddress, parse_address
from oncelog.model.error_code import ErrorCode

OK = 0
NOT_AS_WANTED = 1
FAILED = 2

DEFAULT_SERVER = "127.0.0.1:9092"
CLIENT_ID = "oncelog-cli"


class Missing(Exception):
    """What was asked for is not there: exit code 1."""


class Misused(Exception):
    """What was asked for cannot be done as it was asked: exit code 2."""


def add_broker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=DEFAULT_SERVER,
        help="a broker of the cluster, or several separated by commas (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run_against_brokers(arguments: argparse.Namespace, command: Callable[[argparse.Namespace, Brokers], int]) -> int:
    try:
        bootstrap = [parse_address(text.strip()) for text in arguments.bootstrap_server.split(",")]
        with Brokers(bootstrap, CLIENT_ID) as brokers:
            code = command(arguments, brokers)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # Whoever read the output has seen enough (`| head`). Nothing more may be written to it, also not when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Missing as problem:
        code, why = NOT_AS_WANTED, str(problem)
    except ClientError as problem:
        code, why = FAILED, str(problem)
        if problem.code is None and isinstance(problem, Retriable) and not problem.outcome_unknown:
            why += " (--bootstrap-server HOST:PORT says which one to use)"
        elif isinstance(problem, Retriable):
            why += " (look again in a moment)"
    except (BadAddress, Misused) as problem:
        code, why = FAILED, str(problem)
    except KeyboardInterrupt:
        code, why = FAILED, "interrupted"
    print(f"oncelog: {why}", file=sys.stderr)
    return code


def view_of_topic(brokers: Brokers, topic: str) -> ClusterView:
    view = brokers.view([topic])
    for name, code in view.refused.items():
        if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise Missing(f"there is no topic {name}")
        raise error_for(code, f"looking at topic {name}")
    return view


def command_line(arguments: argparse.Namespace, *words: object) -> str:
    """An `oncelog` command for the same cluster, to be run as it stands."""
    server = [] if arguments.bootstrap_server == DEFAULT_SERVER else ["--bootstrap-server", arguments.bootstrap_server]
    return shlex.join(["oncelog", *map(str, words), *server])


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def now_ms() -> int:
    return time.time_ns() // 1_000_000
