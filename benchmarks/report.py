"""Tables as Markdown, as they stand in docs/benchmarks.md, and the options every question takes."""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Table:
    title: str
    compares: str
    """What is set beside what, in a sentence."""
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append([str(cell) for cell in cells])

    def print(self) -> None:
        widths = [max(len(row[at]) for row in [list(self.columns), *self.rows]) for at in range(len(self.columns))]

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

        print(f"\n### {self.title}\n\n{self.compares}\n")
        print(line(self.columns))
        print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
        for row in self.rows:
            print(line(row))
        print(flush=True)


@dataclass(frozen=True, slots=True)
class Options:
    peer_jars: Path | None
    rounds: int


def options(description: str | None) -> Options:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    arguments = parser.parse_args()
    return Options(arguments.peer_jars, arguments.rounds)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peer-jars", type=Path, metavar="DIR", help="Apache Kafka's jars: measure it in the same run")
    parser.add_argument("--rounds", type=int, default=7, help="turns each side takes; medians are shown (default 7)")


def verdict(measured: float, goal: float) -> str:
    """`goal` is the most that is allowed."""
    return "met" if measured <= goal else "MISSED"


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
