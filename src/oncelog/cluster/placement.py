"""Which brokers hold which partition: round robin, so that leaders and replicas spread evenly over the known brokers."""

from collections.abc import Sequence

from oncelog.cluster.topic import PartitionState
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused


def place(
    brokers: Sequence[int], count: int, replication_factor: int, *, first: int = 0
) -> "list[PartitionState] | Refused":
    """`count` new partitions; `first` turns the wheel, so that not every topic begins on the same broker."""
    if replication_factor > len(brokers):
        return Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(brokers)} broker(s) are registered.",
        )
    placed = []
    for index in range(first, first + count):
        # One leader's partitions get different followers in turn: if a broker dies, all others share its load.
        shift = 1 + (index // len(brokers)) % max(1, len(brokers) - 1)
        others = [brokers[(index + shift + step) % len(brokers)] for step in range(len(brokers))]
        leader = brokers[index % len(brokers)]
        replicas = [leader, *(broker for broker in others if broker != leader)][:replication_factor]
        placed.append(led_by_first(replicas))
    return placed


def place_as_asked(brokers: Sequence[int], replicas: Sequence[int]) -> PartitionState | Refused:
    """A partition on the brokers an administrator named, the first of which leads."""
    problem = None
    if not replicas:
        problem = "The manual partition assignment includes an empty replica list."
    for position, broker in enumerate(replicas):
        if problem is None and broker not in brokers:
            problem = f"The manual partition assignment includes broker {broker}, but no such broker is registered."
        if problem is None and broker in replicas[:position]:
            problem = f"The manual partition assignment includes the broker {broker} more than once."
    if problem is not None:
        return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    return led_by_first(replicas)


def led_by_first(replicas: Sequence[int]) -> PartitionState:
    return PartitionState(leader=replicas[0], leader_epoch=0, isr=tuple(replicas), replicas=tuple(replicas))
