"""Changing configs of several resources in one request, each on its own: what AlterConfigs and IncrementalAlterConfigs share."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from oncelog.access.authorizer import Operation
from oncelog.broker.config_resource import find_resource
from oncelog.cluster.configs import ConfigChange
from oncelog.cluster.topic import Topic
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.waiting.later import Later, all_of, completed

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.node import Node


class ResourceChange(NamedTuple):
    resource_type: int
    resource_name: str
    changes: Sequence[ConfigChange] | Refused


Outcome: TypeAlias = Refused | None


def change_configs(
    node: "Node", caller: "Caller", wanted: Sequence[ResourceChange], *, replace_all: bool, validate_only: bool
) -> Later[list[Outcome]]:
    """One outcome for each resource, in order; None where all is well."""
    times = Counter((resource_type, name) for resource_type, name, _ in wanted)
    outcomes: list[Later[Outcome]] = []
    for change in wanted:
        if times[change.resource_type, change.resource_name] > 1:
            twice = Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            outcomes.append(completed(twice))
        else:
            outcomes.append(_change(node, caller, change, replace_all=replace_all, validate_only=validate_only))
    return all_of(outcomes)


def _change(
    node: "Node", caller: "Caller", wanted: ResourceChange, *, replace_all: bool, validate_only: bool
) -> Later[Outcome]:
    resource_type, name, changes = wanted
    resource = find_resource(node, caller, Operation.ALTER_CONFIGS, resource_type, name)
    if isinstance(resource, Refused):
        return completed(resource)
    if isinstance(changes, Refused):
        return completed(changes)
    cluster = node.cluster
    if isinstance(resource, Topic):
        return cluster.change_topic_configs(
            resource, changes, replace_all=replace_all, validate_only=validate_only
        ).then(_outcome)
    if isinstance(resource, str):
        return cluster.change_broker_configs(
            resource, changes, replace_all=replace_all, validate_only=validate_only
        ).then(_outcome)
    nothing = Refused(ErrorCode.INVALID_CONFIG, f"configs of this kind ({name}) have no effect on this broker yet")
    return completed(nothing if changes else None)


def _outcome(result: object) -> Outcome:
    return result if isinstance(result, Refused) else None
