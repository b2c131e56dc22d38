"""Fixtures of the integration tests: one broker process for all tests that leave it alone, an own one for the others.

Tests run in any order and side by side, so every topic and group has a name of its own.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.brokers import BrokerProcess, StartBroker
from tests.integration.topics import MakeTopic, create_topic, unique

with warnings.catch_warnings():
    # kafka-python loads its schemas with a call that newer Pythons warn of, and a warning is an error here.
    warnings.simplefilter("ignore")
    import kafka  # noqa: F401

TEST_TIMEOUT_S = 90


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Shared: a test that stops, kills or reconfigures the broker starts its own with `start_broker`."""
    with BrokerProcess(tmp_path_factory.mktemp("shared") / "data") as process:
        yield process
        assert process.running, f"the shared broker died:\n{process.output()[-4000:]}"


@pytest.fixture
def bootstrap(broker: BrokerProcess) -> str:
    assert broker.running, f"the shared broker died:\n{broker.output()[-4000:]}"
    return broker.bootstrap_servers


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def make_topic(bootstrap: str) -> MakeTopic:
    def make(partitions: int = 1, configs: dict[str, str] | None = None, prefix: str = "topic") -> str:
        return create_topic(bootstrap, partitions, configs, prefix)

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """A topic of one partition."""
    return make_topic()


@pytest.fixture
def group() -> str:
    return unique("group")


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    started: list[BrokerProcess] = []

    def start(settings: dict[str, str] | None = None) -> BrokerProcess:
        process = BrokerProcess(tmp_path / f"data{len(started)}", settings)
        started.append(process)
        return process.start()

    yield start
    for process in started:
        if process.running:
            process.kill()
