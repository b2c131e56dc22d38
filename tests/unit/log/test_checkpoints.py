"""The text files of logs and data directories, byte for byte as Apache Kafka 4.3 writes them."""

import pytest

from oncelog.log import checkpoints
from oncelog.log.checkpoints import CorruptCheckpoint, MetaProperties
from oncelog.log.file_names import (
    deleted_partition_directory,
    offset_of,
    partition_directory,
    partition_of_directory,
    segment_file,
)
from oncelog.model.topic_partition import TopicPartition

TOPIC_ID = bytes.fromhex("0f1e2d3c4b5a69788796a5b4c3d2e1f0")


def test_leader_epochs() -> None:
    data = checkpoints.write_leader_epochs([(0, 0), (3, 120)])

    assert data == b"0\n2\n0 0\n3 120\n"
    assert checkpoints.read_leader_epochs(data) == [(0, 0), (3, 120)]
    assert checkpoints.write_leader_epochs([]) == b"0\n0\n"


def test_offsets_of_partitions() -> None:
    offsets = {TopicPartition("orders", 0): 17, TopicPartition("a.b_c-d", 12): 0}

    data = checkpoints.write_offsets(offsets)

    assert data == b"0\n2\norders 0 17\na.b_c-d 12 0\n"
    assert checkpoints.read_offsets(data) == offsets


def test_partition_metadata() -> None:
    data = checkpoints.write_partition_metadata(TOPIC_ID)

    assert data == b"version: 0\ntopic_id: Dx4tPEtaaXiHlqW0w9Lh8A"
    assert checkpoints.read_partition_metadata(data) == TOPIC_ID
    assert checkpoints.read_partition_metadata(data + b"\n") == TOPIC_ID


def test_meta_properties() -> None:
    properties = MetaProperties("cluster", 3, "directory")

    data = checkpoints.write_meta_properties(properties)

    assert data == b"version=1\ncluster.id=cluster\nnode.id=3\ndirectory.id=directory\n"
    assert checkpoints.read_meta_properties(data) == properties
    assert checkpoints.read_meta_properties(
        b"#\n#Sat Jan 01\nnode.id=3\ndirectory.id=directory\nversion=1\ncluster.id=cluster\n"
    )


def test_clean_shutdown() -> None:
    assert checkpoints.write_clean_shutdown(12) == b'{"version":0,"brokerEpoch":12}'
    assert checkpoints.read_clean_shutdown(b'{"version":0,"brokerEpoch":12}') == 12
    for unsaid in (b"", b"{}", b"[]", b"\xff", b'{"brokerEpoch":"x"}'):
        assert checkpoints.read_clean_shutdown(unsaid) == checkpoints.NO_BROKER_EPOCH


@pytest.mark.parametrize(
    "data", [b"", b"0\n", b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na x 1\n", b"0\nx\n", b"\xff\xfe"]
)
def test_other_offset_files_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_offsets(data)


@pytest.mark.parametrize("data", [b"", b"0\n1\n1\n", b"0\n1\n1 x\n", b"0\n0\n1 1\n"])
def test_other_epoch_files_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_leader_epochs(data)


@pytest.mark.parametrize(
    "data", [b"", b"version: 0\n", b"version: 1\ntopic_id: Dx4tPEtaaXiHlqW0w9Lh8A\n", b"version: 0\ntopic_id: Dx4\n"]
)
def test_other_metadata_files_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_partition_metadata(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"version=0\ncluster.id=a\nnode.id=1\n", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=a\nnode.id=x\n"],
)
def test_other_properties_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_meta_properties(data)


def test_names_of_files_and_directories() -> None:
    assert segment_file(42, ".log") == "00000000000000000042.log"
    assert offset_of("00000000000000000042.log.swap") == 42
    assert offset_of("leader-epoch-checkpoint") is None
    assert offset_of("42.log") is None
    orders = TopicPartition("my-orders.x", 7)
    assert partition_directory(orders) == "my-orders.x-7"
    assert partition_of_directory("my-orders.x-7") == orders
    for other in ("orders", "-1", "orders-x", "orders-1.abc-delete", "", "meta.properties"):
        assert partition_of_directory(other) is None
    assert deleted_partition_directory(orders, "abc") == "my-orders.x-7.abc-delete"
    longest = deleted_partition_directory(TopicPartition("t" * 249, 100), "f" * 32)
    assert len(longest) == 255
    assert longest.endswith("t-100." + "f" * 32 + "-delete")
