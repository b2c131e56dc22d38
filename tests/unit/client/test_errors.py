"""Errors by what to do about them."""

import pytest

from oncelog.client.errors import AbortTransaction, ClientError, Fatal, Fenced, Retriable, error_for
from oncelog.model.error_code import ErrorCode


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Retriable),
        (ErrorCode.CONCURRENT_TRANSACTIONS, Retriable),
        (ErrorCode.TRANSACTION_ABORTABLE, AbortTransaction),
        (ErrorCode.PRODUCER_FENCED, Fenced),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Fenced),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, Fatal),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Fatal),
    ],
)
def test_a_code_becomes_the_kind_of_error_that_says_what_to_do(code: ErrorCode, kind: type[ClientError]):
    error = error_for(int(code), "ending it")

    assert type(error) is kind
    assert error.code is code
    assert str(error) == f"ending it: {code.name}"


def test_a_code_nobody_knows_yet_is_fatal_and_named():
    error = error_for(9999, "ending it")

    assert isinstance(error, Fatal)
    assert error.code is None
    assert "9999" in str(error)
