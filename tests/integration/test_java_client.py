"""Apache Kafka's own Java tools against the broker, and its dump tool on the broker's files.

ONCELOG_PEER_JARS names the directory with Kafka's jars; without it, or without `java`, these tests are skipped.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.brokers import BrokerProcess
from tests.integration.clients import BY_NAME, Message
from tests.integration.topics import MakeTopic, unique

JARS = os.environ.get("ONCELOG_PEER_JARS")
pytestmark = [
    pytest.mark.skipif(not JARS, reason="ONCELOG_PEER_JARS does not name a directory with Apache Kafka's jars"),
    pytest.mark.skipif(shutil.which("java") is None, reason="java is not installed"),
    pytest.mark.timeout(180),
]


def java(tool: str, *arguments: str, stdin: str = "", ok: bool = True) -> str:
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", f"org.apache.kafka.tools.{tool}"]
    done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True, timeout=90)
    if ok:
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_topics_by_the_java_admin(bootstrap: str) -> None:
    topic = unique("java")
    at = ("--bootstrap-server", bootstrap)
    java("TopicCommand", *at, "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=12345")
    described = java("TopicCommand", *at, "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=12345" in described
    java("TopicCommand", *at, "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in java("TopicCommand", *at, "--describe", "--topic", topic)
    java("TopicCommand", *at, "--delete", "--topic", topic)
    assert topic not in java("TopicCommand", *at, "--list").split()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_java_producer_and_consumer(bootstrap: str, topic: str, codec: str) -> None:
    lines = [f"line {number}" for number in range(50)]
    java(
        "ConsoleProducer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec),
        *("--command-property", "enable.idempotence=true", "--command-property", "acks=all"),
        stdin="\n".join(lines) + "\n",
    )
    received = BY_NAME["confluent-kafka"].read(bootstrap, topic, 50)
    assert [message.value for message in received] == [line.encode() for line in lines]

    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"from confluent")], compression=codec)
    printed = java(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", "51"),
        *("--timeout-ms", "20000"),
    )
    assert [line for line in printed.splitlines() if line][:51] == [*lines, "from confluent"]


def test_groups_by_the_java_admin(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    topic = make_topic(2)
    for partition in range(2):
        BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"x")] * 5, partition=partition)
    at = ("--bootstrap-server", bootstrap)
    java(
        "consumer.ConsoleConsumer",
        *at,
        *("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "10", "--timeout-ms", "20000"),
    )
    described = java("consumer.group.ConsumerGroupCommand", *at, "--describe", "--group", group)
    offsets = {line.split()[2]: line.split()[3:6] for line in described.splitlines() if line.startswith(group)}
    assert offsets == {"0": ["5", "5", "0"], "1": ["5", "5", "0"]}

    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "2", "--execute")
    java("consumer.group.ConsumerGroupCommand", *at, *reset)
    described = java("consumer.group.ConsumerGroupCommand", *at, "--describe", "--group", group)
    offsets = {line.split()[2]: line.split()[3:6] for line in described.splitlines() if line.startswith(group)}
    assert offsets == {"0": ["2", "5", "3"], "1": ["2", "5", "3"]}
    java("consumer.group.ConsumerGroupCommand", *at, "--delete", "--group", group)
    assert group not in java("consumer.group.ConsumerGroupCommand", *at, "--list").split()


def test_the_dump_tool_reads_the_log(bootstrap: str, broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"segment.bytes": str(1 << 20), "index.interval.bytes": "4096"})
    for codec in ("none", "zstd"):
        messages = [Message(b"%d" % number + b"." * 2000, key=b"key") for number in range(1000)]
        BY_NAME["confluent-kafka"].produce(bootstrap, topic, messages, compression=codec)
    directory = broker.data_directory / f"{topic}-0"
    logs = sorted(directory.glob("*.log"))
    assert len(logs) > 1
    last = 0
    for log in logs:
        dumped = java("DumpLogSegments", "--deep-iteration", "--files", str(log))
        assert "isvalid: false" not in dumped
        offsets = [int(line.split("offset: ")[1].split()[0]) for line in dumped.splitlines() if line.startswith("| ")]
        assert offsets == list(range(last, last + len(offsets)))
        last += len(offsets)
    assert last == 2000
    check_indexes(directory)


def check_indexes(directory: Path) -> None:
    """Kafka's own sanity check of every finished segment's indexes against its log."""
    finished = sorted(directory.glob("*.log"))[:-1]
    files = [str(log.with_suffix(suffix)) for log in finished for suffix in (".index", ".timeindex")]
    dumped = java("DumpLogSegments", "--verify-index-only", "--files", ",".join(files))
    for complaint in ("ismatch", "Non-consecutive", "out of order", "not found"):
        assert complaint not in dumped, dumped


def test_cluster_and_offsets_by_java_tools(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    BY_NAME["confluent-kafka"].produce(bootstrap, topic, [Message(b"x")] * 7, partition=1)
    at = ("--bootstrap-server", bootstrap)
    found = java("GetOffsetShell", *at, "--topic", topic)
    assert {line for line in found.splitlines() if line.startswith(topic)} == {f"{topic}:0:0", f"{topic}:1:7"}
    assert "Cluster ID" in java("ClusterTool", "cluster-id", *at)
    assert "ApiVersions" in java("BrokerApiVersionsCommand", *at)
    assert topic in java("LogDirsCommand", *at, "--describe", "--topic-list", topic)
