"""AlterClientQuotas (49): set or remove quotas."""

from oncelog.protocol.schema import f64, i16, i32, request, response, struct


@struct
class EntityData:
    entity_type: str = ""
    # Null: the default of this type.
    entity_name: str | None = ""


@struct
class OpData:
    key: str = ""
    value: f64 = 0.0
    remove: bool = False


@struct
class EntryData:
    entity: list[EntityData] = []
    ops: list[OpData] = []


@request(key=49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasRequest:
    entries: list[EntryData] = []
    validate_only: bool = False


@struct
class EntryResult:
    error_code: i16 = 0
    error_message: str | None = ""
    entity: list[EntityData] = []


@response(to=AlterClientQuotasRequest)
class AlterClientQuotasResponse:
    throttle_time_ms: i32 = 0
    entries: list[EntryResult] = []
