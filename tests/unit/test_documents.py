"""Documents do not point into the void: links, mentions in the code, the index of decisions."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
CODE = [path for folder in ("src", "tests", "benchmarks", "tools") for path in (ROOT / folder).rglob("*.py")]


def test_links_lead_somewhere():
    broken = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
        if not (document.parent / target).exists()
    ]

    assert broken == []


def test_documents_that_code_mentions_are_there():
    broken = {
        f"{path.relative_to(ROOT)}: {mentioned}"
        for path in CODE
        for mentioned in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text())
        if not (ROOT / mentioned).exists()
    }

    assert broken == set()


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text()))
    numbers = [path.name[:4] for path in folder.glob("0*.md")]

    assert listed == {path.name for path in folder.glob("0*.md")}
    assert len(numbers) == len(set(numbers)), "each decision has a number of its own"
