"""What a rule may conclude: a refusal, a wait, the need of a new producer id, or a step with its reply.

A step is `Decision(transaction, reply)`: the transaction is what is to be stored (None when nothing changes), the reply is
what the client hears once it is stored. If the stored transaction is prepared, markers follow; nobody needs to say so twice.
"""

from typing import NamedTuple, final

from oncelog.model.producer_identity import ProducerIdentity
from oncelog.model.refused import Refused
from oncelog.transactions.transaction import Transaction


class Decision(NamedTuple):
    reply: ProducerIdentity
    transaction: Transaction | None = None


@final
class Wait:
    """Ask again when the markers of the last transaction are out. That takes less than sending the client away and back."""


class AbortFirst(NamedTuple):
    """An open transaction stands in the way: store this Prepare, let its markers go out, then ask again."""

    transaction: Transaction


@final
class NeedProducerId:
    """Ask again with a producer id nobody has had."""


Conclusion = Decision | Refused | Wait | AbortFirst | NeedProducerId

WAIT = Wait()
NEED_PRODUCER_ID = NeedProducerId()
