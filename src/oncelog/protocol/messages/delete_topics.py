"""DeleteTopics (20): delete topics."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i16, i32, nullable, request, response, since, struct, until, uuid


@struct
class DeleteTopicState:
    name: str | None = None
    topic_id: uuid = NO_ID


@request(key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsRequest:
    # KIP-516: each by name or by id.
    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[str], until(5)] = []
    timeout_ms: i32 = 0


@struct
class DeletableTopicResult:
    name: Annotated[str | None, nullable(since=6)] = ""
    topic_id: Annotated[uuid, since(6)] = NO_ID
    error_code: i16 = 0
    error_message: Annotated[str | None, since(5)] = None


@response(to=DeleteTopicsRequest)
class DeleteTopicsResponse:
    throttle_time_ms: i32 = 0
    responses: list[DeletableTopicResult] = []
