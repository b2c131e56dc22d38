"""Who produced a batch: an id the broker gave out, and the epoch that fences older holders of the same id."""

from typing import NamedTuple

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1


class ProducerIdentity(NamedTuple):
    producer_id: int
    producer_epoch: int
