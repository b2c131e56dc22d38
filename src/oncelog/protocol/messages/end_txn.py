"""EndTxn (26): commit or abort the running transaction of a transactional id."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since


@request(key=26, versions=(0, 5), flexible_since=3)
class EndTxnRequest:
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: bool = False


@response(to=EndTxnRequest)
class EndTxnResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    # KIP-890: from v5 every end bumps the epoch, and the client goes on with these.
    producer_id: Annotated[i64, since(5)] = -1
    producer_epoch: Annotated[i16, since(5)] = -1
