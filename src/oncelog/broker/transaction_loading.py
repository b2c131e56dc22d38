"""A partition of `__transaction_state` read from its beginning: the transactional ids it tells of, as they were when it ended."""

from typing import TYPE_CHECKING

from oncelog.broker.logging import get_logger
from oncelog.model.refused import Refused
from oncelog.protocol.malformed import Malformed
from oncelog.records.batch import batches
from oncelog.records.record import read_records
from oncelog.transactions.transaction import Transaction
from oncelog.transactions.transaction_records import decode_key, decode_value

if TYPE_CHECKING:
    from oncelog.log.partition_log import PartitionLog

_log = get_logger(__name__)

_READ_BYTES = 1 << 20


def load_transactions(log: "PartitionLog") -> dict[str, Transaction]:
    #: By key as it is written. Only the last value of each is decoded: what it was before has no effect on what it is.
    values: dict[bytes, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, _READ_BYTES, log.log_end_offset, True)
        if isinstance(read, Refused) or not read.records:
            break
        for position, header in batches(read.records):
            if not header.is_control:
                for record in read_records(read.records, position):
                    key = record.key or b""
                    if record.value is None:
                        values.pop(key, None)
                    else:
                        values[key] = record.value
            offset = header.next_offset
    transactions = {}
    for key, value in values.items():
        transactional_id = decode_key(key)
        if transactional_id is None:
            _log.warning("a record of an unknown kind is passed over", partition=str(log.topic_partition))
        else:
            transactions[transactional_id] = _decoded(transactional_id, value)
    return transactions


def _decoded(transactional_id: str, value: bytes) -> Transaction:
    try:
        return decode_value(transactional_id, value)
    except (Malformed, ValueError) as problem:
        # To go on without it could tell a client that a transaction never was: better not to start.
        raise ValueError(f'the state of transactional id "{transactional_id}" cannot be read: {problem}') from problem
