"""The records of cluster metadata: what a decision writes, and the only thing that changes a `Cluster`.

A record is one key in the metadata store. Live: decide, commit the records, apply them. On start: read all keys, apply
them. One key per topic, so that changing one topic does not write the others again. Values are JSON: a person with the
store's own shell can read what the cluster believes.
"""

import json
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, assert_never

from oncelog.cluster.state import ALL_BROKERS, Cluster
from oncelog.cluster.topic import PartitionState, Topic
from oncelog.model.topic_id import topic_id_from_text, topic_id_text

R = TypeVar("R")

_TOPIC = "topics/"
_BROKER_CONFIGS = "broker-configs/"
_PRODUCER_IDS = "producer-ids/next"
_CLUSTER_ID = "cluster-id"
# A broker's id is a number, so this name can be nobody's.
_ALL_BROKERS = "default"


@dataclass(frozen=True, slots=True)
class ClusterNamed:
    cluster_id: str


@dataclass(frozen=True, slots=True)
class TopicStored:
    topic: Topic


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    name: str


@dataclass(frozen=True, slots=True)
class BrokerConfigsStored:
    #: A broker's id in decimal, or ALL_BROKERS.
    broker: str
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """Every producer id below this one belongs to somebody."""

    next_producer_id: int


Record: TypeAlias = ClusterNamed | TopicStored | TopicRemoved | BrokerConfigsStored | ProducerIdsReserved


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """What must become true, and what the asker hears once it is."""

    records: list[Record]
    reply: R


def apply(cluster: Cluster, record: Record) -> None:
    match record:
        case TopicStored(topic):
            cluster.put_topic(topic)
        case TopicRemoved(name):
            cluster.remove_topic(name)
        case BrokerConfigsStored(broker, configs):
            cluster.broker_configs[broker] = configs
        case ProducerIdsReserved(next_producer_id):
            cluster.next_producer_id = next_producer_id
        case ClusterNamed(cluster_id):
            cluster.cluster_id = cluster_id
        case _:
            assert_never(record)


def encode(record: Record) -> tuple[str, bytes | None]:
    """The record's key and value; no value means that the key goes."""
    match record:
        case TopicStored(topic):
            return _TOPIC + topic.name, _topic_value(topic)
        case TopicRemoved(name):
            return _TOPIC + name, None
        case BrokerConfigsStored(broker, configs):
            return _BROKER_CONFIGS + (broker if broker != ALL_BROKERS else _ALL_BROKERS), _json(configs)
        case ProducerIdsReserved(next_producer_id):
            return _PRODUCER_IDS, _json(next_producer_id)
        case ClusterNamed(cluster_id):
            return _CLUSTER_ID, _json(cluster_id)
        case _:
            assert_never(record)


def decode(key: str, value: bytes) -> Record | None:
    """The record a key stands for; None for a key of a kind this version does not know."""
    if key.startswith(_TOPIC):
        return TopicStored(_topic_of(key.removeprefix(_TOPIC), value))
    if key.startswith(_BROKER_CONFIGS):
        broker = key.removeprefix(_BROKER_CONFIGS)
        return BrokerConfigsStored(broker if broker != _ALL_BROKERS else ALL_BROKERS, json.loads(value))
    if key == _PRODUCER_IDS:
        return ProducerIdsReserved(json.loads(value))
    if key == _CLUSTER_ID:
        return ClusterNamed(json.loads(value))
    return None


def _topic_value(topic: Topic) -> bytes:
    return _json(
        {
            "topic_id": topic_id_text(topic.topic_id),
            "partitions": [
                {"leader": leader, "leader_epoch": leader_epoch, "isr": isr, "replicas": replicas}
                for leader, leader_epoch, isr, replicas in topic.partitions
            ],
            "configs": topic.configs,
        }
    )


def _topic_of(name: str, value: bytes) -> Topic:
    stored = json.loads(value.decode())
    return Topic(
        name=name,
        topic_id=topic_id_from_text(stored["topic_id"]),
        partitions=tuple(
            PartitionState(part["leader"], part["leader_epoch"], tuple(part["isr"]), tuple(part["replicas"]))
            for part in stored["partitions"]
        ),
        configs=stored["configs"],
    )


# One encoder for all: json.dumps would build a new one for every value that is not written with its default separators.
_to_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def _json(value: object) -> bytes:
    return _to_text(value).encode()
