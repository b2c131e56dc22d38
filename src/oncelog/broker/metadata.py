"""The cluster's metadata as the rest of the broker uses it: topics to look up, changes to ask for, producer ids to draw.

Nobody hears of a change, and no partition opens, before the store has it (see metadata_changes.py).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from oncelog.broker.config import validate_broker_config, validate_topic_configs
from oncelog.broker.config_rules import BrokerConfigRules, TopicConfigRules
from oncelog.broker.logging import get_logger
from oncelog.broker.metadata_changes import MetadataChanges
from oncelog.cluster.configs import ConfigChange, decide_broker_configs, decide_topic_configs
from oncelog.cluster.leadership import decide_lead_again
from oncelog.cluster.producer_ids import decide_reserve_producer_ids
from oncelog.cluster.records import (
    BrokerConfigsStored,
    ClusterNamed,
    Decision,
    Record,
    TopicRemoved,
    TopicStored,
    apply,
)
from oncelog.cluster.state import ALL_BROKERS, Cluster
from oncelog.cluster.topic import CONSUMER_OFFSETS, INTERNAL_TOPICS, TRANSACTION_STATE, Topic
from oncelog.cluster.topics import (
    MorePartitions,
    NewTopic,
    Results,
    TopicRules,
    decide_create_partitions,
    decide_create_topics,
    decide_delete_topics,
)
from oncelog.log.storage import StorageFailed
from oncelog.model.refused import Refused
from oncelog.model.topic_id import TopicId, topic_id_text
from oncelog.runtime.metadata_store import MetadataStore, MetadataUnusable
from oncelog.waiting.later import Later, completed

if TYPE_CHECKING:
    from oncelog.broker.node import Node

_log = get_logger(__name__)

R = TypeVar("R")


class ClusterMetadata:
    __slots__ = ("_node", "_cluster", "_changes", "_creating", "_producer_ids", "_reserving", "topics", "by_id")

    def __init__(self, node: "Node", store: MetadataStore) -> None:
        self._node = node
        self._cluster = Cluster()
        self._changes = MetadataChanges(store, self._cluster, self._make_true)
        self.topics: Mapping[str, Topic] = self._cluster.topics
        self.by_id: Mapping[TopicId, Topic] = self._cluster.by_id
        #: Topics that are being created because somebody used them.
        self._creating: dict[str, Later[Topic | Refused]] = {}
        self._producer_ids: Iterator[int] = iter(())
        self._reserving: Later[Refused | None] | None = None

    # Reading

    @property
    def cluster_id(self) -> str:
        return self._cluster.cluster_id

    @property
    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """Configs that were set at run time: by a broker's id in decimal, or for all brokers under ALL_BROKERS."""
        return self._cluster.broker_configs

    def topic(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: TopicId) -> Topic | None:
        return self.by_id.get(topic_id)

    # Starting

    def load(self) -> None:
        """Read what the store has, lead on under new epochs, open every partition. Raises MetadataUnusable."""
        self._changes.load()
        node_id = self._node.node_id
        self._cluster.brokers = (node_id,)
        led = [topic for topic in self.topics.values() if any(part.leader == node_id for part in topic.partitions)]
        if self.topics and not led:
            owner = next(iter(self.topics.values())).partitions[0].leader
            raise MetadataUnusable(
                f"this data directory belongs to broker {owner}, not {node_id}: set node.id={owner}, or use another one"
            )
        self._begin_term()
        self._take_broker_configs()
        for topic in self.topics.values():
            self._open_partitions(topic, 0)

    def _begin_term(self) -> None:
        # One transaction for all of it: a start costs one sync, however many partitions there are. The block of producer
        # ids is part of it, so that the first producer does not wait for another.
        again = decide_lead_again(self._cluster, self._node.node_id)
        reserved = decide_reserve_producer_ids(self._cluster)
        records: list[Record] = [*again.records, *reserved.records]
        if not self.cluster_id:
            records.append(ClusterNamed(topic_id_text(self.new_topic_id())))
        self._changes.commit_now(records)
        self._producer_ids = iter(reserved.reply)

    # Topics

    def new_topic_id(self) -> TopicId:
        while True:
            drawn = bytearray(self._node.random_bytes(16))
            drawn[6] = drawn[6] & 0x0F | 0x40  # a random UUID says so in these bits
            drawn[8] = drawn[8] & 0x3F | 0x80
            # As Kafka: no text that a command line would take for an option.
            if not topic_id_text(bytes(drawn)).startswith("-"):
                return bytes(drawn)

    def create_topics(self, wanted: Sequence[NewTopic], *, validate_only: bool = False) -> Later[Results]:
        rules = self._topic_rules()
        return _for_each(
            self._change(lambda cluster: decide_create_topics(cluster, wanted, rules), validate_only=validate_only),
            [new.name for new in wanted],
        )

    def auto_create(self, name: str) -> "Later[Topic | Refused]":
        """The topic, created with the broker's defaults if it is not there; for a topic that somebody just uses."""
        if name in INTERNAL_TOPICS:
            return self.ensure_internal_topic(name)
        return self._create_once(lambda: NewTopic(name, self.new_topic_id()), name)

    def ensure_internal_topic(self, name: str) -> "Later[Topic | Refused]":
        return self._create_once(lambda: self._internal_topic(name), name)

    def create_partitions(self, wanted: Sequence[MorePartitions], *, validate_only: bool = False) -> Later[Results]:
        return _for_each(
            self._change(lambda cluster: decide_create_partitions(cluster, wanted), validate_only=validate_only),
            [more.name for more in wanted],
        )

    def delete_topics(self, wanted: Sequence[Topic]) -> Later[Results]:
        return _for_each(
            self._change(lambda cluster: decide_delete_topics(cluster, wanted)), [topic.name for topic in wanted]
        )

    def _create_once(self, new: Callable[[], NewTopic], name: str) -> "Later[Topic | Refused]":
        found = self.topics.get(name)
        if found is not None:
            return completed(found)
        creating = self._creating.get(name)
        if creating is not None:
            return creating
        answer: Later[Topic | Refused] = Later()
        self._creating[name] = answer

        def finish(results: Results) -> None:
            del self._creating[name]
            # Somebody may have created it by name in between: then it is there, which is all that was wanted.
            answer.complete(self.topics.get(name) or results[name])

        self.create_topics([new()]).when_done(finish)
        return answer

    def _internal_topic(self, name: str) -> NewTopic:
        config = self._node.config
        if name == CONSUMER_OFFSETS:
            partitions = config.offsets_topic_num_partitions
            replicas = config.offsets_topic_replication_factor
            configs = {"compression.type": "producer", "segment.bytes": str(config.offsets_topic_segment_bytes)}
        elif name == TRANSACTION_STATE:
            partitions = config.transaction_state_log_num_partitions
            replicas = config.transaction_state_log_replication_factor
            configs = {
                "compression.type": "uncompressed",
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, len(self._cluster.brokers))),
                "unclean.leader.election.enable": "false",
            }
        else:
            raise ValueError(f"{name} is no internal topic")
        # A small cluster has its groups and transactions too, with as many replicas as it can hold.
        replicas = min(replicas, len(self._cluster.brokers))
        return NewTopic(
            name, self.new_topic_id(), partitions, replicas, configs={"cleanup.policy": "compact", **configs}
        )

    def _topic_rules(self) -> TopicRules:
        config = self._node.config
        return TopicRules(config.num_partitions, config.default_replication_factor, validate_topic_configs)

    # Configs

    def change_topic_configs(
        self, topic: Topic, changes: Sequence[ConfigChange], *, replace_all: bool, validate_only: bool = False
    ) -> "Later[Topic | Refused]":
        rules = TopicConfigRules(self._node.config)
        return self._change(
            lambda cluster: decide_topic_configs(cluster, topic.topic_id, changes, rules, replace_all=replace_all),
            validate_only=validate_only,
        )

    def change_broker_configs(
        self, broker: str, changes: Sequence[ConfigChange], *, replace_all: bool, validate_only: bool = False
    ) -> "Later[dict[str, str] | Refused]":
        """`broker` is this broker's id in decimal, or ALL_BROKERS."""
        rules = BrokerConfigRules(self._node.config, for_all=broker == ALL_BROKERS)
        return self._change(
            lambda cluster: decide_broker_configs(cluster, broker, changes, rules, replace_all=replace_all),
            validate_only=validate_only,
        )

    def _take_broker_configs(self) -> None:
        own = self.broker_configs.get(str(self._node.node_id), {})
        dynamic = {}
        for name, value in {**self.broker_configs.get(ALL_BROKERS, {}), **own}.items():
            refused = validate_broker_config(name, value)
            if refused is None:
                dynamic[name] = value
            else:
                # Set under another version of Oncelog. Not starting would leave no broker to set it right with.
                _log.error("a stored broker config is left out", config=name, problem=refused.why)
        if dynamic != self._node.config.dynamic:
            self._node.config = self._node.config.with_dynamic(dynamic)

    # Producer ids

    def next_producer_id(self) -> "Later[int | Refused]":
        producer_id = next(self._producer_ids, None)
        if producer_id is not None:
            return completed(producer_id)
        if self._reserving is None:
            self._reserving = self._change(decide_reserve_producer_ids).then(self._take_producer_ids)
        return self._reserving.then(lambda refused: refused or self.next_producer_id())

    def _take_producer_ids(self, block: range | Refused) -> Refused | None:
        self._reserving = None
        if isinstance(block, Refused):
            return block
        self._producer_ids = iter(block)
        return None

    # Changing

    def _change(
        self, decide: Callable[[Cluster], Decision[R] | Refused], *, validate_only: bool = False
    ) -> "Later[R | Refused]":
        if not validate_only:
            return self._changes.ask(decide)
        decision = decide(self._cluster)
        return completed(decision if isinstance(decision, Refused) else decision.reply)

    def _make_true(self, record: Record) -> None:
        before = self.topics.get(record.topic.name) if isinstance(record, TopicStored) else None
        apply(self._cluster, record)
        match record:
            case TopicStored(topic):
                self._open_partitions(topic, len(before.partitions) if before is not None else 0)
                if before is not None and before.configs != topic.configs:
                    self._node.partitions.update_config(topic)
            case TopicRemoved(name):
                self._node.partitions.remove(name)
            case BrokerConfigsStored():
                self._take_broker_configs()
                for topic in self.topics.values():
                    self._node.partitions.update_config(topic)
            case _:
                pass

    def _open_partitions(self, topic: Topic, first: int) -> None:
        for index in range(first, len(topic.partitions)):
            state = topic.partitions[index]
            if state.leader != self._node.node_id:
                continue
            try:
                self._node.partitions.create(topic, index, state)
            except StorageFailed as problem:
                # The topic stands in the metadata; the next start opens what this one could not.
                _log.error("a partition could not be opened", topic=topic.name, partition=index, problem=str(problem))


def _for_each(answer: "Later[Results | Refused]", names: Sequence[str]) -> Later[Results]:
    """Where the whole change was refused, every topic in it was."""
    return answer.then(lambda results: dict.fromkeys(names, results) if isinstance(results, Refused) else results)
