"""AddOffsetsToTxn (25): take a group's offsets partition into a transaction."""

from oncelog.protocol.schema import i16, i32, i64, request, response


@request(key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnRequest:
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    group_id: str = ""


@response(to=AddOffsetsToTxnRequest)
class AddOffsetsToTxnResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
