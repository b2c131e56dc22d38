"""The question every handler asks before it does anything.

`AllowAll` is what a broker without security runs with. Rules with principals and ACLs take its place behind the same call,
so that no handler changes when they come.
"""

from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, Protocol


class Operation(IntEnum):
    """Kafka's AclOperation, with its numbers (they go out in authorized_operations bit fields)."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Resource(NamedTuple):
    type: ResourceType
    name: str


CLUSTER = Resource(ResourceType.CLUSTER, "kafka-cluster")


@lru_cache(maxsize=4096)  # asked for every produce and fetch, mostly of the same topics
def topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def group(name: str) -> Resource:
    return Resource(ResourceType.GROUP, name)


def transactional_id(name: str) -> Resource:
    return Resource(ResourceType.TRANSACTIONAL_ID, name)


class Authorizer(Protocol):
    def may(self, principal: str, operation: Operation, resource: Resource) -> bool: ...


class AllowAll:
    def may(self, principal: str, operation: Operation, resource: Resource) -> bool:
        return True


#: What a caller may do with a resource, as the bit field of `*_authorized_operations`, when everything is allowed.
_OPERATIONS_OF = {
    ResourceType.TOPIC: (3, 4, 5, 6, 7, 8, 10, 11),
    ResourceType.GROUP: (3, 6, 8, 10, 11),
    ResourceType.CLUSTER: (5, 7, 8, 9, 10, 11, 12),
}
NOT_ASKED = -(2**31)


def authorized_operations(authorizer: Authorizer, principal: str, resource: Resource) -> int:
    allowed = 0
    for number in _OPERATIONS_OF[resource.type]:
        if authorizer.may(principal, Operation(number), resource):
            allowed |= 1 << number
    return allowed
