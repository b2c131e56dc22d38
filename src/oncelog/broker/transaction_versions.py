"""What the version of a request says about its client's transactions: which rules it follows, which codes it knows."""

from oncelog.model.error_code import ErrorCode

#: Transactions v2 (KIP-890) as the finalized feature `transaction.version` names it.
TRANSACTION_VERSION = 2
#: From these request versions on a client follows v2 rules.
END_V2_SINCE = 5
PRODUCE_V2_SINCE = 12
OFFSET_COMMIT_V2_SINCE = 5


def client_version_of_end(version: int) -> int:
    return TRANSACTION_VERSION if version >= END_V2_SINCE else 0


def code_for_client(code: ErrorCode, *, fenced_since: int, version: int) -> ErrorCode:
    """PRODUCER_FENCED came late to each API; an older client knows the same thing as INVALID_PRODUCER_EPOCH (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
