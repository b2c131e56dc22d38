"""DescribeConfigs (32): the configs of a topic or a broker, and where each value comes from."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from oncelog.access.authorizer import Operation
from oncelog.broker.config_resource import find_resource
from oncelog.broker.config_view import (
    ConfigView,
    broker_config_views,
    default_broker_config_views,
    topic_config_views,
)
from oncelog.cluster.state import ALL_BROKERS
from oncelog.cluster.topic import Topic
from oncelog.model.refused import Refused
from oncelog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from oncelog.broker.caller import Caller
    from oncelog.broker.config_resource import ConfigResource
    from oncelog.broker.node import Node


def handle_describe_configs(
    node: "Node", caller: "Caller", request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_describe(node, caller, request, asked) for asked in request.resources])


def _describe(
    node: "Node", caller: "Caller", request: DescribeConfigsRequest, asked: DescribeConfigsResource
) -> DescribeConfigsResult:
    found = find_resource(node, caller, Operation.DESCRIBE_CONFIGS, asked.resource_type, asked.resource_name)
    if isinstance(found, Refused):
        return DescribeConfigsResult(
            error_code=found.code,
            error_message=found.why,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
    return DescribeConfigsResult(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[
            _result(view, request)
            for view in _views(node, found)
            # As Kafka: no names at all means every name; names that do not exist are left out.
            if not asked.configuration_keys or view.name in asked.configuration_keys
        ],
    )


def _views(node: "Node", resource: "ConfigResource") -> Iterable[ConfigView]:
    if isinstance(resource, Topic):
        return topic_config_views(node, resource)
    if resource is None:
        return ()
    return default_broker_config_views(node) if resource == ALL_BROKERS else broker_config_views(node)


def _result(view: ConfigView, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = []
    if request.include_synonyms:
        synonyms = [
            DescribeConfigsSynonym(name=layer.name, value=layer.value, source=layer.source) for layer in view.layers
        ]
    return DescribeConfigsResourceResult(
        name=view.name,
        value=view.value,
        read_only=view.read_only,
        config_source=view.source,
        is_sensitive=view.sensitive,
        synonyms=synonyms,
        config_type=view.type,
        documentation=view.meaning if request.include_documentation else None,
    )
