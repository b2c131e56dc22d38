"""CreateTopics (19): create topics."""

from typing import Annotated

from oncelog.protocol.schema import NO_ID, i8, i16, i32, request, response, since, struct, tagged, uuid


@struct
class CreatableReplicaAssignment:
    partition_index: i32 = 0
    broker_ids: list[i32] = []


@struct
class CreatableTopicConfig:
    name: str = ""
    value: str | None = ""


@struct
class CreatableTopic:
    name: str = ""
    # -1, here and below: the broker's default (KIP-464), or as the assignments say.
    num_partitions: i32 = 0
    replication_factor: i16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


@request(key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsRequest:
    topics: list[CreatableTopic] = []
    timeout_ms: i32 = 60000
    validate_only: bool = False


@struct
class CreatableTopicConfigs:
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: i8 = -1
    is_sensitive: bool = False


@struct
class CreatableTopicResult:
    name: str = ""
    topic_id: Annotated[uuid, since(7)] = NO_ID
    error_code: i16 = 0
    error_message: str | None = ""
    # KIP-525: why the configs are null.
    topic_config_error_code: Annotated[i16, tagged(0, since=5)] = 0
    num_partitions: Annotated[i32, since(5)] = -1
    replication_factor: Annotated[i16, since(5)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5)] = []


@response(to=CreateTopicsRequest)
class CreateTopicsResponse:
    throttle_time_ms: i32 = 0
    topics: list[CreatableTopicResult] = []
