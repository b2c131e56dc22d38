"""A node with real files and no network: handlers are called as the connection calls them."""

from pathlib import Path
from typing import Any

from oncelog.access.authorizer import Operation, Resource
from oncelog.broker.caller import Caller
from oncelog.broker.config import load_config
from oncelog.broker.dispatch import route
from oncelog.broker.metadata import ClusterMetadata
from oncelog.broker.node import Node
from oncelog.broker.partitions import Partitions
from oncelog.cluster.topic import Topic
from oncelog.model.refused import Refused
from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.codec import decode, encode
from oncelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from oncelog.records.builder import build_batch
from oncelog.runtime.clock import SystemClock
from oncelog.runtime.disk import RealDisk
from oncelog.runtime.metadata_store import Outcome, SqliteMetadataStore, Transaction
from oncelog.waiting.later import Later


class NoTimers:
    """Nothing happens later: these tests have no waiting operations."""

    def call_at(self, monotonic_ms: int, run: Any) -> Any:
        raise AssertionError("nothing here waits")

    def call_soon(self, run: Any) -> None:
        run()

    def in_thread(self, work: Any) -> Any:
        raise AssertionError("nothing here needs a thread")


class HeldStore(SqliteMetadataStore):
    """A store whose commits wait for `release`, so that a test can look at what happens meanwhile."""

    __slots__ = ("held", "holding")

    def __init__(self, path: Path) -> None:
        super().__init__(path, lambda run: run())
        self.holding = False
        self.held: list[tuple[Transaction, Later[Outcome]]] = []

    def commit(self, transaction: Transaction) -> Later[Outcome]:
        answer: Later[Outcome] = Later()
        if self.holding:
            self.held.append((transaction, answer))
        else:
            answer.complete(self.commit_now(transaction))
        return answer

    def release(self, outcome: Outcome | None = None) -> None:
        transaction, answer = self.held.pop(0)
        answer.complete(outcome if outcome is not None else self.commit_now(transaction))


class Denied:
    """Allows all but what it is told not to."""

    def __init__(self) -> None:
        self.forbidden: set[tuple[Operation, str]] = set()

    def may(self, principal: str, operation: Operation, resource: Resource) -> bool:
        return (operation, resource.name) not in self.forbidden


class ForgettingGroups:
    """Stands where the group coordinator does, and remembers which topics it was told to forget."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def forget_topic(self, topic: str) -> None:
        self.forgotten.append(topic)


class AdminNode:
    def __init__(self, data_dir: Path, **configs: str) -> None:
        config = load_config({name.replace("_", "."): value for name, value in configs.items()})
        self.node = Node(config, data_dir, SystemClock(), NoTimers())
        self.node.advertised = ("broker.example", 9092)
        self.access = self.node.access = Denied()
        self.node.groups = self.groups = ForgettingGroups()
        self.store = HeldStore(data_dir / "metadata.sqlite")
        self.node.partitions = Partitions(self.node, RealDisk(data_dir), None, clean_shutdown=True)
        self.node.cluster = ClusterMetadata(self.node, self.store)
        self.node.cluster.load()
        self.node.partitions.serving()
        self.caller = Caller("127.0.0.1", 1, "PLAINTEXT")

    def ask(self, api: ApiKey, version: int, **fields: Any) -> Any:
        """The reply, having gone over the wire both ways: fields that a version does not have are lost as they would be."""
        later = self.ask_later(api, version, **fields)
        assert later.done, "the answer has not come"
        return later.value

    def ask_later(self, api: ApiKey, version: int, **fields: Any) -> Later[Any]:
        found = route(api, version)
        assert found is not None
        request_class = APIS[api].request
        request = decode(request_class, version, encode(request_class(**fields), version))
        reply = found.handle(self.node, self.caller, request, version)
        answer: Later[Any] = Later()
        if not isinstance(reply, Later):
            done: Later[Any] = Later()
            done.complete(reply)
            reply = done
        reply.when_done(lambda message: answer.complete(decode(APIS[api].response, version, encode(message, version))))
        return answer

    def create(self, name: str, partitions: int = 1, **configs: str) -> Topic:
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        result = self.ask(ApiKey.CREATE_TOPICS, 7, topics=[wanted]).topics[0]
        assert result.error_code == 0, result.error_message
        return self.node.cluster.topics[name]

    def produce(self, topic: str, partition: int, count: int) -> None:
        found = self.node.partitions.get(topic, partition)
        assert not isinstance(found, Refused)
        batch = build_batch([(b"key", b"value")] * count)
        assert not isinstance(found.append(bytearray(batch), self.node.clock.now_ms()), Refused)

    def close(self) -> None:
        self.node.partitions.close()
        self.store.close()
