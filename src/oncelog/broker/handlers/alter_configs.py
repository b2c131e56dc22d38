"""AlterConfigs (33): all configs of a resource at once; what is not named goes back to its default."""

from typing import TYPE_CHECKING

from oncelog.broker.config_changes import ResourceChange, change_configs
from oncelog.cluster.configs import ConfigChange, ConfigOperation
from oncelog.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from oncelog.waiting.later import Later

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.config_changes import Outcome
    from oncelog.broker.node import Node


def handle_alter_configs(
    node: "Node", caller: "Caller", request: AlterConfigsRequest, version: int
) -> Later[AlterConfigsResponse]:
    wanted = [
        ResourceChange(
            resource.resource_type,
            resource.resource_name,
            [ConfigChange(config.name, ConfigOperation.SET, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    return change_configs(node, caller, wanted, replace_all=True, validate_only=request.validate_only).then(
        lambda outcomes: AlterConfigsResponse(responses=list(map(_response, request.resources, outcomes)))
    )


def _response(resource: AlterConfigsResource, outcome: "Outcome") -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.code if outcome is not None else 0,
        error_message=outcome.why if outcome is not None else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
