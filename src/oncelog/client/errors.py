"""What can go wrong for a client, sorted by what to do about it.

Four kinds, whatever the API and whatever the code: try again, abort the transaction, stop because another instance took over, or
give up. `code` is what the broker answered, None where no broker did. `outcome_unknown` says that the request may have taken
effect all the same: the connection broke after it was sent.
"""

from oncelog.model.error_code import ErrorCode


class ClientError(Exception):
    def __init__(self, message: str, code: ErrorCode | None = None, *, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.outcome_unknown = outcome_unknown


class Retriable(ClientError):
    """The same call may succeed in a moment, here or at another broker."""


class AbortTransaction(ClientError):
    """This transaction is lost, the producer is not: abort it and begin again."""


class Fenced(ClientError):
    """Another instance has taken over the transactional id: this one must stop."""


class Fatal(ClientError):
    """Trying again does not help: something must be changed first."""


_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


def error_for(code: int, what_failed: str) -> ClientError:
    """The error for a code a broker answered; `what_failed` begins the message."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return Fatal(f"{what_failed}: error {code}, which is newer than this client")
    message = f"{what_failed}: {known.name}"
    if known in _FENCED:
        return Fenced(message, known)
    if known is ErrorCode.TRANSACTION_ABORTABLE:
        return AbortTransaction(message, known)
    if known.retriable:
        return Retriable(message, known)
    return Fatal(message, known)
