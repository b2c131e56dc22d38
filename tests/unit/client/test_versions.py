"""The version a request goes out in."""

import pytest

from oncelog.client.errors import Fatal
from oncelog.client.versions import choose_version
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import ApiKey


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ((0, 2), 2),
        ((0, 1), 1),
        ((0, 99), 2),  # a broker from the future: our newest
    ],
)
def test_the_newest_version_both_know(offered: tuple[int, int], chosen: int):
    assert choose_version(ApiKey.LIST_TRANSACTIONS, {ApiKey.LIST_TRANSACTIONS: offered}) == chosen


def test_an_api_the_broker_does_not_have():
    with pytest.raises(Fatal, match="does not support DescribeProducers") as caught:
        choose_version(ApiKey.DESCRIBE_PRODUCERS, {ApiKey.LIST_TRANSACTIONS: (0, 2)})

    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_version_too_old_for_what_is_asked():
    with pytest.raises(Fatal, match="version 2 or later of ListTransactions: it has versions 0 to 1"):
        choose_version(ApiKey.LIST_TRANSACTIONS, {ApiKey.LIST_TRANSACTIONS: (0, 1)}, at_least=2)


def test_a_broker_that_has_given_up_all_our_versions():
    with pytest.raises(Fatal, match="it has versions 7 to 9"):
        choose_version(ApiKey.LIST_TRANSACTIONS, {ApiKey.LIST_TRANSACTIONS: (7, 9)})
