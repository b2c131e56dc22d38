"""ListGroups (16): the groups a broker coordinates."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, request, response, since, struct


@request(key=16, versions=(0, 5), flexible_since=3)
class ListGroupsRequest:
    # KIP-518; empty: any state.
    states_filter: Annotated[list[str], since(4)] = []
    # KIP-848: classic, consumer, and so on; empty: any.
    types_filter: Annotated[list[str], since(5)] = []


@struct
class ListedGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, since(4)] = ""
    group_type: Annotated[str, since(5)] = ""


@response(to=ListGroupsRequest)
class ListGroupsResponse:
    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    groups: list[ListedGroup] = []
