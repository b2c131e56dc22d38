"""Ask the questions, all or those named: `python -m benchmarks [--peer-jars DIR] [--rounds N] [produce_cpu fetch_cpu …]`."""

import argparse
import importlib
import os
import platform

from benchmarks.report import Options, add_options

QUESTIONS = (
    "produce_cpu",
    "fetch_cpu",
    "latency",
    "start",
    "throughput",
    "scale",
    "transactions",
    "transactions_cpu",
    "transactions_fetch",
    "transactions_restart",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "questions", nargs="*", metavar="question", help=f"of {', '.join(QUESTIONS)}; all if none is named"
    )
    add_options(parser)
    arguments = parser.parse_args()
    if unknown := set(arguments.questions) - set(QUESTIONS):
        parser.error(f"no such question: {', '.join(sorted(unknown))}; there are {', '.join(QUESTIONS)}")
    print(f"Python {platform.python_version()}, Linux {platform.release()}, {os.cpu_count()} cores", flush=True)
    for question in arguments.questions or QUESTIONS:
        importlib.import_module(f"benchmarks.{question}").run(Options(arguments.peer_jars, arguments.rounds))


if __name__ == "__main__":
    main()
