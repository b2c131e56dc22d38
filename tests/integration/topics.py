"""Topics and groups with names of their own, made before a test uses them."""

import uuid
from typing import Protocol

from confluent_kafka.admin import AdminClient, NewTopic


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def create_topic(
    bootstrap_servers: str, partitions: int = 1, configs: dict[str, str] | None = None, prefix: str = "topic"
) -> str:
    name = unique(prefix)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=configs or {})
    admin.create_topics([new], operation_timeout=20)[name].result(20)
    return name


class MakeTopic(Protocol):
    def __call__(self, partitions: int = 1, configs: dict[str, str] | None = None, prefix: str = "topic") -> str: ...
