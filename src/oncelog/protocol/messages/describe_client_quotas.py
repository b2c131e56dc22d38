"""DescribeClientQuotas (48): read quotas."""

from oncelog.protocol.schema import f64, i8, i16, i32, request, response, struct


@struct
class ComponentData:
    entity_type: str = ""
    # 0 this name, 1 the default, 2 anything.
    match_type: i8 = 0
    match: str | None = ""


@request(key=48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasRequest:
    components: list[ComponentData] = []
    strict: bool = False


@struct
class EntityData:
    entity_type: str = ""
    # Null: the default of this type.
    entity_name: str | None = ""


@struct
class ValueData:
    key: str = ""
    value: f64 = 0.0


@struct
class EntryData:
    entity: list[EntityData] = []
    values: list[ValueData] = []


@response(to=DescribeClientQuotasRequest)
class DescribeClientQuotasResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []
