"""Fixtures for tests that need a broker. Installed with Oncelog: a test only names the fixture.

    def test_orders_arrive(oncelog_broker):
        producer = Producer({"bootstrap.servers": oncelog_broker.bootstrap_servers})

`oncelog_broker` is new and empty for every test (it starts in milliseconds); `oncelog_session_broker` is one for the whole run.
To configure either, override `oncelog_config` with Kafka's names.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from oncelog.broker.embedded import EmbeddedBroker


@pytest.fixture(scope="session")
def oncelog_config() -> Mapping[str, object]:
    """Configs of the brokers below; override it in a conftest.py."""
    return {}


@pytest.fixture
def oncelog_broker(oncelog_config: Mapping[str, object]) -> "Iterator[EmbeddedBroker]":
    """A broker of this test's own, empty at its start and gone at its end."""
    yield from _broker(oncelog_config)


@pytest.fixture(scope="session")
def oncelog_session_broker(oncelog_config: Mapping[str, object]) -> "Iterator[EmbeddedBroker]":
    """A broker that all tests of the run share; give topics and groups names of their own."""
    yield from _broker(oncelog_config)


def _broker(config: Mapping[str, object]) -> "Iterator[EmbeddedBroker]":
    # Here, not above: pytest loads this file in every run, with or without a test that needs a broker.
    import oncelog

    with oncelog.embedded(config=config) as broker:
        yield broker
