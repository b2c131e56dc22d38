"""The small text files of a log directory and of a data directory, as Kafka writes and reads them. Text in, values out.

    leader-epoch-checkpoint                          0 / number of entries / "epoch start-offset" each
    *-offset-checkpoint (recovery-point, replication, log-start, cleaner)   0 / number of entries / "topic partition offset" each
    partition.metadata                               version: 0 / topic_id: <base64>
    meta.properties                                  version=1, cluster.id, node.id, directory.id
    .kafka_cleanshutdown                             {"version":0,"brokerEpoch":<number>}

A reader raises `CorruptCheckpoint` for anything else: a file half understood is worse than none.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from oncelog.model.topic_id import TopicId, topic_id_from_text, topic_id_text
from oncelog.model.topic_partition import TopicPartition

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
VERSION = "0"
NO_BROKER_EPOCH = -1


class CorruptCheckpoint(Exception):
    """The file is not what its name says."""


class MetaProperties(NamedTuple):
    """Whose data directory this is."""

    cluster_id: str
    node_id: int
    directory_id: str


def write_entries(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "\n".join([VERSION, str(len(lines)), *lines, ""]).encode()


def read_entries(data: bytes) -> list[list[str]]:
    lines = _text(data).splitlines()
    if len(lines) < 2 or lines[0] != VERSION or not lines[1].isdecimal():
        raise CorruptCheckpoint("it does not start with version 0 and the number of entries")
    entries = [line.split() for line in lines[2:] if line]
    if len(entries) != int(lines[1]):
        raise CorruptCheckpoint(f"{lines[1]} entries are announced, {len(entries)} are there")
    return entries


def write_leader_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    return write_entries(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def read_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    try:
        return [(int(epoch), int(start_offset)) for epoch, start_offset in read_entries(data)]
    except ValueError as error:
        raise CorruptCheckpoint(f"an entry is not an epoch and an offset: {error}") from error


def write_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return write_entries(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def read_offsets(data: bytes) -> dict[TopicPartition, int]:
    try:
        return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in read_entries(data)}
    except ValueError as error:
        raise CorruptCheckpoint(f"an entry is not a topic, a partition and an offset: {error}") from error


def write_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: 0\ntopic_id: {topic_id_text(topic_id)}".encode()


def read_partition_metadata(data: bytes) -> TopicId:
    fields = dict(line.split(": ", 1) for line in _text(data).splitlines() if ": " in line)
    if fields.get("version") != VERSION or "topic_id" not in fields:
        raise CorruptCheckpoint("it does not say version 0 and a topic id")
    try:
        topic_id = topic_id_from_text(fields["topic_id"])
    except ValueError as error:
        raise CorruptCheckpoint(f"the topic id {fields['topic_id']!r} is not base64") from error
    if len(topic_id) != 16:
        raise CorruptCheckpoint(f"the topic id {fields['topic_id']!r} does not have sixteen bytes")
    return topic_id


def write_meta_properties(properties: MetaProperties) -> bytes:
    return (
        f"version=1\ncluster.id={properties.cluster_id}\n"
        f"node.id={properties.node_id}\ndirectory.id={properties.directory_id}\n"
    ).encode()


def read_meta_properties(data: bytes) -> MetaProperties:
    fields = {}
    for line in _text(data).splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            fields[name.strip()] = value.strip()
    if fields.get("version") != "1":
        raise CorruptCheckpoint(f"version {fields.get('version')} instead of 1")
    try:
        return MetaProperties(fields["cluster.id"], int(fields["node.id"]), fields.get("directory.id", ""))
    except (KeyError, ValueError) as error:
        raise CorruptCheckpoint(f"cluster.id or node.id is missing or wrong: {error}") from error


def write_clean_shutdown(broker_epoch: int) -> bytes:
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def read_clean_shutdown(data: bytes) -> int:
    """The broker epoch of the node that stopped cleanly; NO_BROKER_EPOCH if it did not say (Kafka before 3.7 never did)."""
    import json  # read once, at a start after a clean stop

    try:
        broker_epoch = json.loads(_text(data))["brokerEpoch"]
    except (ValueError, KeyError, TypeError, CorruptCheckpoint):
        return NO_BROKER_EPOCH
    return broker_epoch if isinstance(broker_epoch, int) else NO_BROKER_EPOCH


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint("it is not text") from error
