"""Every partition this node leads, by name: the metadata says which there are, this opens, keeps and closes their logs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from oncelog.broker.group_commit import run_flush
from oncelog.broker.log_checkpoints import NOTHING_CHECKPOINTED, LogCheckpoints
from oncelog.broker.logging import get_logger
from oncelog.broker.partition import Partition
from oncelog.log.checkpoints import CorruptCheckpoint, read_partition_metadata, write_partition_metadata
from oncelog.log.file_names import deleted_partition_directory
from oncelog.log.partition_log import PartitionLog
from oncelog.log.storage import Disk, StorageFailed
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.model.topic_id import TopicId
from oncelog.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from oncelog.broker.group_commit import GroupCommit
    from oncelog.broker.node import Node
    from oncelog.cluster.topic import PartitionState, Topic

_log = get_logger(__name__)

PARTITION_METADATA = "partition.metadata"
_UNKNOWN = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this broker does not host that topic or partition")


class Partitions:
    __slots__ = ("_node", "_disk", "_group_commit", "_by_topic", "_clean_shutdown", "_checkpoints")

    def __init__(self, node: "Node", disk: Disk, group_commit: "GroupCommit | None", *, clean_shutdown: bool) -> None:
        self._node = node
        self._disk = disk
        self._group_commit = group_commit
        self._by_topic: dict[str, dict[int, Partition]] = {}
        #: What is opened before the broker serves was left by an earlier run; what comes later is new.
        self._clean_shutdown = clean_shutdown
        self._checkpoints = LogCheckpoints(disk)

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_topic.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_topic.values()))

    def get(self, topic: str, partition: int) -> Partition | Refused:
        partitions = self._by_topic.get(topic)
        if partitions is None:
            return _UNKNOWN
        return partitions.get(partition) or _UNKNOWN

    def of_topic(self, topic: str) -> dict[int, Partition]:
        return self._by_topic.get(topic, {})

    def create(self, topic: "Topic", index: int, state: "PartitionState") -> Partition:
        """Open the partition's log, made if it is not there yet."""
        node = self._node
        topic_partition = TopicPartition(topic.name, index)
        directory = str(topic_partition)
        self._remove_other_topics_files(directory, topic.topic_id)
        checkpointed = self._checkpoints.of(topic_partition)
        if not self._disk.exists(directory):
            self._disk.make_directory(directory)
            self._disk.write_file(f"{directory}/{PARTITION_METADATA}", write_partition_metadata(topic.topic_id))
            if checkpointed != NOTHING_CHECKPOINTED:
                # A deleted topic of this name left them. After a crash they would be taken for this one's.
                checkpointed = NOTHING_CHECKPOINTED
                self.checkpoint()
        log = PartitionLog.open(
            self._disk,
            directory,
            topic_partition,
            node.config.log_config(topic.configs),
            node.clock.now_ms(),
            clean_shutdown=self._clean_shutdown,
            **checkpointed._asdict(),
        )
        if self._group_commit is not None:
            # After a crash the page cache still has what no fdatasync covered; nobody may read it before one does.
            _flush(log)
        partition = Partition(
            log, state.leader_epoch, node.node_id, state.isr, node.clock, node.room, self._group_commit
        )
        self._by_topic.setdefault(topic.name, {})[index] = partition
        return partition

    def _remove_other_topics_files(self, directory: str, topic_id: TopicId) -> None:
        """A deleted topic's files may have outlived it by a crash: a new topic of the same name must not inherit them."""
        path = f"{directory}/{PARTITION_METADATA}"
        if not self._disk.exists(path):
            return
        try:
            stays = read_partition_metadata(self._disk.read_file(path)) == topic_id
        except CorruptCheckpoint as problem:
            _log.warning("a partition does not say whose it is; it is taken as it is", file=path, problem=str(problem))
            return
        if not stays:
            _log.notice("files of a deleted topic are removed", directory=directory)
            self._disk.remove_tree(directory)

    def remove(self, topic: str) -> None:
        """Forget a deleted topic's partitions: readers and writers that wait hear of it, its files go."""
        doomed_partitions = self._by_topic.pop(topic, {})
        if self._node.has_groups:
            self._node.groups.forget_topic(topic)
        for partition in doomed_partitions.values():
            partition.close(Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic} was deleted"))
            partition.log.close()
            doomed = deleted_partition_directory(partition.topic_partition, self._node.random_bytes(16).hex())
            try:
                # Renamed first: a crash in the middle of the removal must not leave half a log under a name that may come back.
                self._disk.rename(str(partition.topic_partition), doomed)
                self._disk.remove_tree(doomed)
            except StorageFailed as problem:
                _log.error("files of a deleted topic stay on disk", directory=doomed, problem=str(problem))
        self.checkpoint()

    def update_config(self, topic: "Topic") -> None:
        config = self._node.config.log_config(topic.configs)
        for partition in self._by_topic.get(topic.name, {}).values():
            partition.log.update_config(config)

    def serving(self) -> None:
        """Everything that was on disk is loaded: logs opened from now on are new."""
        self._clean_shutdown = True

    def checkpoint(self) -> None:
        """Let the next start know how far every log is flushed, acknowledged and deleted."""
        try:
            self._checkpoints.write(self)
        except StorageFailed as problem:
            _log.error("checkpoints were not written; what stood there still holds", problem=str(problem))

    def flush_rolled_segments(self) -> None:
        """Put on disk what will not be written to any more, so that recovery after a crash need not read it again."""
        tasks = [
            task
            for partition in self
            if partition.log.flushed_offset < partition.log.segments.active.base_offset
            and (task := partition.log.unflushed()) is not None
        ]

        def flushed(results: "list[Exception | None] | BaseException") -> None:
            if not isinstance(results, BaseException):
                for task, problem in zip(tasks, results, strict=True):
                    if problem is None:
                        task.done()
                    else:
                        _log.error("a flush failed; it is tried again", problem=str(problem))
            self.checkpoint()

        if tasks:
            self._node.timers.in_thread(lambda: [run_flush(task) for task in tasks]).when_done(flushed)
        else:
            self.checkpoint()

    def close(self) -> None:
        """Put everything on disk. StorageFailed: it was no clean stop, and the next start looks at everything."""
        for partition in self:
            _flush(partition.log)
            partition.log.close()
        self._checkpoints.write(self)


def _flush(log: PartitionLog) -> None:
    flush = log.unflushed()
    if flush is not None:
        flush.run()
        flush.done()
