"""What the files and directories of a log are called: Kafka's names.

A segment's files share its base offset in twenty digits. A suffix behind that tells where a file is in its life: `.cleaned` while
compaction writes it, `.swap` from the moment it counts instead of the originals, `.deleted` when only its removal is left.
"""

from oncelog.model.topic_partition import TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
PRODUCER_SNAPSHOT = ".snapshot"
INDEXES = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
SEGMENT_FILES = (LOG, *INDEXES)

CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"
TEMPORARY = ".tmp"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

DELETED_DIRECTORY = "-delete"


def segment_file(base_offset: int, kind: str, suffix: str = "") -> str:
    return f"{base_offset:020d}{kind}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset a segment's or snapshot's file name starts with; None for every other file."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isascii() and digits.isdigit() else None


def partition_directory(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def partition_of_directory(name: str) -> TopicPartition | None:
    """Which partition's log a directory holds; None for a deleted one and for what is no log at all."""
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        return None
    return TopicPartition(topic, int(number))


def deleted_partition_directory(topic_partition: TopicPartition, unique: str) -> str:
    """What a deleted partition's directory is renamed to before its files go. Names longer than a file name may be are cut."""
    ending = f"-{topic_partition.partition}.{unique}{DELETED_DIRECTORY}"
    return topic_partition.topic[: 255 - len(ending)] + ending
