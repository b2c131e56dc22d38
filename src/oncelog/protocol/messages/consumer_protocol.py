"""What consumers tell each other through a classic group: the broker carries it and seldom looks inside."""

from typing import Annotated

from oncelog.protocol.schema import i32, since, stored, struct


@struct
class TopicPartition:
    topic: str = ""
    partitions: list[i32] = []


@stored(versions=(0, 3))
class ConsumerProtocolSubscription:
    topics: list[str] = []
    user_data: bytes | None = None
    # KIP-429: for cooperative rebalancing.
    owned_partitions: Annotated[list[TopicPartition], since(1)] = []
    # KIP-792: an old claim of ownership loses.
    generation_id: Annotated[i32, since(2)] = -1
    # KIP-881: lets an assignor prefer replicas near by.
    rack_id: Annotated[str | None, since(3)] = None


@stored(versions=(0, 3))
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartition] = []
    user_data: bytes | None = None
