"""`make seeds`: every row of docs/seeds.md with the tests that prove it.

Fails on a row that has no test and is not planned, on a test that names a row that does not exist, and on a planned row that
does not exist. What is planned stands at the end of docs/seeds.md, with the reason.
"""

import contextlib
import io
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+) \|$", re.MULTILINE)
PLANNED = re.compile(r"^\| ((?:[A-Z]\d+ ?)+) \| (.+) \|$", re.MULTILINE)


class Proofs:
    """A pytest plugin that notes which tests carry which row."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("seed"):
                for row in mark.args:
                    # One line per test, however many parameters it has.
                    self.tests[row].add(item.nodeid.split("[")[0])


def main() -> int:
    rows, planned = read_document((ROOT / "docs" / "seeds.md").read_text())
    proofs = Proofs()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = pytest.main(["--collect-only", "-q", "--rootdir", str(ROOT), str(ROOT / "tests")], plugins=[proofs])
    if status != pytest.ExitCode.OK:
        print(said.getvalue(), "seeds: the tests cannot be collected", sep="\n", file=sys.stderr)
        return 1
    return report(rows, planned, proofs.tests)


def read_document(text: str) -> tuple[dict[str, str], dict[str, str]]:
    promised, _, planned = text.partition("\n## Planned\n")
    reasons = {row: why for names, why in PLANNED.findall(planned) for row in names.split()}
    return dict(ROW.findall(promised)), reasons


def report(rows: dict[str, str], planned: dict[str, str], tests: dict[str, set[str]]) -> int:
    for row, behaviour in rows.items():
        print(f"{row:4} {shortened(behaviour)}")
        for test in sorted(tests.get(row, ())):
            print(f"       {test}")
        if row in planned:
            print(f"       planned: {planned[row]}")
    proven = [row for row in rows if row in tests and row not in planned]
    print(
        f"\n{len(rows)} rows: {len(proven)} proven by {sum(len(tests[row]) for row in proven)} tests, {len(planned)} planned"
    )

    problems = [f"{row} has no test and is not planned" for row in rows if row not in tests and row not in planned]
    problems += [
        f"{row} is no row, but tests name it: {', '.join(sorted(tests[row]))}" for row in tests if row not in rows
    ]
    problems += [f"{row} is planned, but is no row" for row in planned if row not in rows]
    for problem in problems:
        print(f"seeds: {problem}", file=sys.stderr)
    return 1 if problems else 0


def shortened(text: str, limit: int = 110) -> str:
    plain = text.replace("`", "")
    return plain if len(plain) <= limit else plain[: plain.rfind(" ", 0, limit)] + " …"


if __name__ == "__main__":
    sys.exit(main())
