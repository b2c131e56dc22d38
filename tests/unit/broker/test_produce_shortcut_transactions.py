"""A transactional produce that takes the short way is admitted like any other: added or verified, fenced, authorised."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oncelog
from oncelog.access.authorizer import AllowAll, Operation
from oncelog.broker.produce_shortcut import ProduceShortcuts
from oncelog.model.error_code import ErrorCode
from oncelog.model.topic_partition import TopicPartition
from oncelog.transactions.states import State
from tests.integration.raw_connection import create_topic
from tests.integration.transaction_wire import V1, V2, Generation, Wire, WireProducer, batch_of

BILLING = "billing"


class Scene:
    def __init__(self, broker: Any, taken: list[bool]) -> None:
        self.node = broker._now().broker.node
        self.wire = Wire(broker.port)
        self.orders = TopicPartition(create_topic(self.wire), 0)
        self.taken = taken

    def producer(self, generation: Generation) -> WireProducer:
        """One that has committed a transaction, so that its next produce is like an earlier one."""
        producer = WireProducer(self.wire, BILLING, generation).initialise()
        producer.send(self.orders, values=[b"first"])
        producer.commit()
        self.taken.clear()
        return producer

    def produce(self, producer: WireProducer, sequence: int = 0) -> ErrorCode:
        batches = {self.orders: batch_of([b"again"], producer.identity, sequence)}
        (answer,) = self.wire.produce(BILLING, batches, producer.generation.produce)
        return ErrorCode(answer.error_code)

    @property
    def state(self) -> State:
        # An end is answered before its markers are out; what is asked next is answered after.
        self.wire.find_coordinator(BILLING)
        return self.node.transactions.get(BILLING).state


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    taken: list[bool] = []
    take = ProduceShortcuts.take

    def noted(*arguments: Any) -> bytearray | None:
        reply = take(*arguments)
        taken.append(reply is not None)
        return reply

    monkeypatch.setattr(ProduceShortcuts, "take", noted)
    with oncelog.embedded(tmp_path) as broker:
        made = Scene(broker, taken)
        yield made
        made.wire.close()


def test_a_v2_produce_begins_the_next_transaction_the_short_way(scene: Scene) -> None:
    producer = scene.producer(V2)
    assert scene.produce(producer) is ErrorCode.NONE
    assert scene.taken == [True]
    assert scene.state is State.ONGOING
    producer.commit()
    assert scene.state is State.COMPLETE_COMMIT


def test_a_v1_produce_is_verified_on_the_short_way_too(scene: Scene) -> None:
    producer = scene.producer(V1)
    assert scene.produce(producer, 1) is ErrorCode.TRANSACTION_ABORTABLE, "the partition was not added"
    producer.add(scene.orders)
    assert scene.produce(producer, 1) is ErrorCode.NONE
    assert scene.taken == [False, True]


@pytest.mark.seed("I3")
@pytest.mark.parametrize("generation", [V1, V2], ids=["v1", "v2"])
def test_an_old_instance_is_fenced_on_the_short_way_too(scene: Scene, generation: Generation) -> None:
    producer = scene.producer(generation)
    WireProducer(scene.wire, BILLING, generation).initialise()
    assert scene.produce(producer, 1 if generation is V1 else 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert scene.state is State.EMPTY


def test_the_transactional_id_is_authorised_every_time(scene: Scene) -> None:
    producer = scene.producer(V2)

    class WithoutBilling(AllowAll):
        def may(self, principal: str, operation: Operation, resource: Any) -> bool:
            return resource.name != BILLING

    scene.node.access = WithoutBilling()
    assert scene.produce(producer) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert scene.state is State.COMPLETE_COMMIT
