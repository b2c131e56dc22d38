"""IncrementalAlterConfigs (44): single configs are set, removed, and, where they are lists, added to or taken from."""

from typing import TYPE_CHECKING

from oncelog.broker.config_changes import ResourceChange, change_configs
from oncelog.cluster.configs import ConfigChange, ConfigOperation
from oncelog.model.error_code import ErrorCode
from oncelog.model.refused import Refused
from oncelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.config_changes import Outcome
    from oncelog.broker.node import Node

_OPERATIONS = {operation.value: operation for operation in ConfigOperation}


def handle_incremental_alter_configs(
    node: "Node", caller: "Caller", request: IncrementalAlterConfigsRequest, version: int
) -> Later[IncrementalAlterConfigsResponse]:
    wanted = [
        ResourceChange(resource.resource_type, resource.resource_name, _changes(resource.configs))
        for resource in request.resources
    ]
    return change_configs(node, caller, wanted, replace_all=False, validate_only=request.validate_only).then(
        lambda outcomes: IncrementalAlterConfigsResponse(responses=list(map(_response, request.resources, outcomes)))
    )


def _changes(configs: list[AlterableConfig]) -> list[ConfigChange] | Refused:
    changes = []
    for config in configs:
        operation = _OPERATIONS.get(config.config_operation)
        if operation is None:
            return Refused(
                ErrorCode.INVALID_REQUEST, f"Unknown operation type {config.config_operation} for {config.name}"
            )
        changes.append(ConfigChange(config.name, operation, config.value))
    return changes


def _response(resource: AlterConfigsResource, outcome: "Outcome") -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.code if outcome is not None else 0,
        error_message=outcome.why if outcome is not None else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
