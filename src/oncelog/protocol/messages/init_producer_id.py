"""InitProducerId (22): an id and epoch for an idempotent or transactional producer."""

from typing import Annotated

from oncelog.protocol.schema import i16, i32, i64, request, response, since


@request(key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdRequest:
    transactional_id: str | None = ""
    transaction_timeout_ms: i32 = 0
    # KIP-360: a producer that goes on after an error gives what it has, and gets the next epoch.
    producer_id: Annotated[i64, since(3)] = -1
    producer_epoch: Annotated[i16, since(3)] = -1
    # KIP-939: transactions that outlive their timeout, ended by somebody who also commits elsewhere.
    enable_2pc: Annotated[bool, since(6)] = False
    keep_prepared_txn: Annotated[bool, since(6)] = False


@response(to=InitProducerIdRequest)
class InitProducerIdResponse:
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    # KIP-939: the transaction that was kept, if one was.
    ongoing_txn_producer_id: Annotated[i64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[i16, since(6)] = -1
