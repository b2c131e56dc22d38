"""Fields that only Oncelog has: tagged, so that every other client steps over them."""

import warnings

from oncelog.protocol.codec import decode, encode
from oncelog.protocol.messages.describe_transactions import DescribeTransactionsResponse, TransactionState


def described() -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id="billing", producer_id=7, client_id="worker-3", client_host="10.0.0.9")
        ]
    )


def test_our_own_clients_read_who_was_last():
    assert decode(DescribeTransactionsResponse, 0, encode(described(), 0)) == described()


def test_a_client_that_does_not_know_them_reads_the_rest():
    with warnings.catch_warnings():
        # It loads its schemas with a function that newer Pythons deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka.protocol.admin import DescribeTransactionsResponse as KafkaPythonResponse

    (state,) = KafkaPythonResponse.decode(encode(described(), 0), version=0).transaction_states

    assert (state.transactional_id, state.producer_id) == ("billing", 7)


def test_nothing_is_sent_when_nobody_is_known():
    with_nobody = encode(DescribeTransactionsResponse(transaction_states=[TransactionState()]), 0)

    assert with_nobody.endswith(b"\x01\x00\x00")  # no topics, no tagged fields of the state, none of the response
