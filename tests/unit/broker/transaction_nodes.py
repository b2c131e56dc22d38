"""A node with both coordinators on real files, no network: time passes, and appends are acknowledged, when a test says so."""

from pathlib import Path
from typing import Any

from oncelog.broker.caller import Caller
from oncelog.broker.config import load_config
from oncelog.broker.group_coordinator import GroupCoordinator
from oncelog.broker.metadata import ClusterMetadata
from oncelog.broker.node import Node
from oncelog.broker.partition import Partition
from oncelog.broker.partitions import Partitions
from oncelog.broker.transaction_coordinator import TransactionCoordinator
from oncelog.model.error_code import ErrorCode
from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.model.topic_partition import TopicPartition
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from oncelog.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from oncelog.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from oncelog.protocol.messages.produce import PartitionProduceData, TopicProduceData
from oncelog.protocol.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from oncelog.records.batch import batches
from oncelog.records.builder import build_batch
from oncelog.records.control import ControlType, read_control_record
from oncelog.runtime.disk import RealDisk
from oncelog.waiting.later import Later
from tests.unit.broker.admin_nodes import AdminNode, Denied, HeldStore
from tests.unit.groups.stage import StageTime

BILLING = "billing"
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 0)


class HeldFlushes:
    """Stands where group commit does: while it holds, what is appended is not acknowledged."""

    def __init__(self) -> None:
        self.holding = False
        self._asked: dict[Partition, None] = {}

    def request(self, partition: Partition) -> None:
        self._asked[partition] = None
        if not self.holding:
            self.flush()

    def flush(self, only: TopicPartition | None = None) -> None:
        """Acknowledge what was appended by now, and nothing that this leads to."""
        asked = [partition for partition in self._asked if only in (None, partition.topic_partition)]
        for partition in asked:
            del self._asked[partition]
            task = partition.log.unflushed()
            if task is not None:
                task.run()
                task.done()
                partition.safe_up_to(partition.log.flushed_offset)


class TransactionNode(AdminNode):
    def __init__(self, data_dir: Path, **configs: str) -> None:
        self.data_dir = data_dir
        self.configs = configs
        self.time = StageTime()
        config = load_config(
            {
                "transaction.state.log.num.partitions": "1",
                "offsets.topic.num.partitions": "1",
                **{name.replace("_", "."): value for name, value in configs.items()},
            }
        )
        self.node = Node(config, data_dir, self.time, self.time)  # type: ignore[arg-type]
        self.node.advertised = ("broker.example", 9092)
        self.access = self.node.access = Denied()
        self.store = HeldStore(data_dir / "metadata.sqlite")
        self.flushes = HeldFlushes()
        self.node.partitions = Partitions(self.node, RealDisk(data_dir), self.flushes, clean_shutdown=False)  # type: ignore[arg-type]
        self.node.cluster = ClusterMetadata(self.node, self.store)
        self.node.cluster.load()
        self.node.partitions.serving()
        self.node.groups = GroupCoordinator(self.node)
        self.node.groups.load()
        self.node.transactions = TransactionCoordinator(self.node)
        self.node.transactions.load()
        self.caller = Caller("127.0.0.1", 1, "PLAINTEXT")
        self._sequences: dict[tuple[TopicPartition, ProducerIdentity], int] = {}

    def killed(self) -> "TransactionNode":
        """What is there after a SIGKILL and a start."""
        self.store.close()
        again = TransactionNode(self.data_dir, **self.configs)
        again.time.ms = self.time.ms
        return again

    def flush(self, only: TopicPartition | None = None) -> None:
        self.flushes.flush(only)
        self.settle()

    def settle(self) -> None:
        """Let happen what is due at once."""
        self.time.pass_time(0)
        while self.time.soon:
            self.time.soon.pop(0)()

    def partition(self, topic_partition: TopicPartition) -> Partition:
        found = self.node.partitions.get(*topic_partition)
        assert not isinstance(found, Refused)
        return found

    def markers(self, topic_partition: TopicPartition) -> list[ControlType]:
        log = self.partition(topic_partition).log
        read = log.read(0, 1 << 20, log.log_end_offset, True)
        assert not isinstance(read, Refused)
        return [
            read_control_record(read.records, position).type
            for position, header in batches(read.records)
            if header.is_control
        ]

    # Requests

    def initialise(self, transactional_id: str = BILLING, timeout_ms: int = 60_000) -> ProducerIdentity:
        answer = self.ask(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def add_later(
        self, producer: ProducerIdentity, *partitions: TopicPartition, transactional_id: str = BILLING
    ) -> Later[Any]:
        return self.ask_later(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[at]) for topic, at in partitions],
        ).then(
            lambda answer: ErrorCode(
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            )
        )

    def add(
        self, producer: ProducerIdentity, *partitions: TopicPartition, transactional_id: str = BILLING
    ) -> ErrorCode:
        answer = self.add_later(producer, *partitions, transactional_id=transactional_id)
        assert answer.done
        return ErrorCode(answer.value)

    def send_later(
        self, producer: ProducerIdentity, topic_partition: TopicPartition, value: bytes = b"v", version: int = 11
    ) -> Later[ErrorCode]:
        key = (topic_partition, producer)
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + 1
        batch = build_batch(
            [(None, value)],
            timestamp_ms=self.time.ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = PartitionProduceData(index=topic_partition.partition, records=batch)
        return self.ask_later(
            ApiKey.PRODUCE,
            version,
            transactional_id=BILLING,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic_partition.topic, partition_data=[data])],
        ).then(lambda answer: ErrorCode(answer.responses[0].partition_responses[0].error_code))

    def send(self, producer: ProducerIdentity, topic_partition: TopicPartition, value: bytes = b"v") -> ErrorCode:
        answer = self.send_later(producer, topic_partition, value)
        assert answer.done
        return answer.value

    def end_answer(self, producer: ProducerIdentity, version: int = 5) -> Any:
        return self.ask(
            ApiKey.END_TXN,
            version,
            transactional_id=BILLING,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=True,
        )

    def end_later(self, producer: ProducerIdentity, committed: bool = True, version: int = 4) -> Later[ErrorCode]:
        return self.ask_later(
            ApiKey.END_TXN,
            version,
            transactional_id=BILLING,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=committed,
        ).then(lambda answer: ErrorCode(answer.error_code))

    def end(self, producer: ProducerIdentity, committed: bool = True, version: int = 4) -> ErrorCode:
        answer = self.end_later(producer, committed, version)
        assert answer.done
        return answer.value

    def add_offsets(self, producer: ProducerIdentity, group: str) -> ErrorCode:
        answer = self.ask(
            ApiKey.ADD_OFFSETS_TO_TXN,
            3,
            transactional_id=BILLING,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group,
        )
        return ErrorCode(answer.error_code)

    def commit_offset_later(
        self, producer: ProducerIdentity, group: str, position: TopicPartition, offset: int, version: int = 4
    ) -> Later[ErrorCode]:
        partition = TxnOffsetCommitRequestPartition(partition_index=position.partition, committed_offset=offset)
        return self.ask_later(
            ApiKey.TXN_OFFSET_COMMIT,
            version,
            transactional_id=BILLING,
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=position.topic, partitions=[partition])],
        ).then(lambda answer: ErrorCode(answer.topics[0].partitions[0].error_code))

    def commit_plain_offset_later(self, group: str, position: TopicPartition, offset: int) -> Later[ErrorCode]:
        partition = OffsetCommitRequestPartition(partition_index=position.partition, committed_offset=offset)
        return self.ask_later(
            ApiKey.OFFSET_COMMIT,
            8,
            group_id=group,
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name=position.topic, partitions=[partition])],
        ).then(lambda answer: ErrorCode(answer.topics[0].partitions[0].error_code))

    def committed_offset(self, group: str, position: TopicPartition) -> int | ErrorCode:
        asked = OffsetFetchRequestGroup(
            group_id=group,
            topics=[OffsetFetchRequestTopics(name=position.topic, partition_indexes=[position.partition])],
        )
        answer = self.ask(ApiKey.OFFSET_FETCH, 8, groups=[asked], require_stable=True)
        found = answer.groups[0].topics[0].partitions[0]
        return ErrorCode(found.error_code) if found.error_code else int(found.committed_offset)

    def open_transaction(self, *partitions: TopicPartition) -> ProducerIdentity:
        """A producer with a record in each of the partitions."""
        producer = self.initialise()
        assert self.add(producer, *partitions) is ErrorCode.NONE
        for topic_partition in partitions:
            assert self.send(producer, topic_partition) is ErrorCode.NONE
        return producer
