"""Topics and groups with names of their own, made before a test uses them."""

import time
import uuid
from collections.abc import Callable
from typing import Protocol, TypeVar

from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import target_is_kafka

Found = TypeVar("Found")


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def create_topic(
    bootstrap_servers: str, partitions: int = 1, configs: dict[str, str] | None = None, prefix: str = "topic"
) -> str:
    name = unique(prefix)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=configs or {})
    admin.create_topics([new], operation_timeout=20)[name].result(20)
    soon(lambda: admin.list_topics(name, timeout=20).topics[name].error, lambda error: error is None)
    return name


def soon(read: Callable[[], Found], wanted: Callable[[Found], bool]) -> Found:
    """Kafka answers a change before its brokers show it, so there it is read again for a while; Oncelog has one chance."""
    found = read()
    deadline = time.monotonic() + 10
    while target_is_kafka() and not wanted(found) and time.monotonic() < deadline:
        time.sleep(0.02)
        found = read()
    assert wanted(found), found
    return found


class MakeTopic(Protocol):
    def __call__(self, partitions: int = 1, configs: dict[str, str] | None = None, prefix: str = "topic") -> str: ...
