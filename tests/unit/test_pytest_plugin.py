"""The examples of docs/embedding.md, run as a reader would run them."""

import re
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "embedding.md"


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None, f"docs/embedding.md has no example {name}"
    return found[1]


def pytest_run(directory: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(directory)]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=100)
    return result.stdout + result.stderr


def test_the_documented_test_passes(tmp_path: Path):
    (tmp_path / "test_example.py").write_text(example("test"))

    assert "1 passed" in pytest_run(tmp_path)


def test_the_documented_configuration_reaches_both_fixtures(tmp_path: Path):
    (tmp_path / "conftest.py").write_text(example("conftest"))
    (tmp_path / "test_configured.py").write_text(
        "from confluent_kafka import Producer\n"
        "def partitions(broker):\n"
        "    producer = Producer({'bootstrap.servers': broker.bootstrap_servers})\n"
        "    producer.produce('orders', b'x')\n"
        "    assert producer.flush(10) == 0\n"
        "    return len(producer.list_topics('orders', 10).topics['orders'].partitions)\n"
        "def test_own(oncelog_broker): assert partitions(oncelog_broker) == 4\n"
        "def test_shared(oncelog_session_broker): assert partitions(oncelog_session_broker) == 4\n"
        "def test_apart(oncelog_broker, oncelog_session_broker):\n"
        "    assert oncelog_broker.port != oncelog_session_broker.port\n"
    )

    assert "3 passed" in pytest_run(tmp_path)


def test_the_documented_embedding_works():
    result = subprocess.run([sys.executable, "-c", example("embedded")], capture_output=True, text=True, timeout=60)

    assert re.fullmatch(r"127\.0\.0\.1:(\d+) \1 \S+\n", result.stdout), result.stderr
