"""One connection: what it says to a broker, and what it makes of one that is none."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from oncelog.client.connection import Connection
from oncelog.client.errors import Fatal, Retriable
from oncelog.model.address import Address
from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import ApiKey
from oncelog.protocol.frames import encode_response
from oncelog.protocol.messages.api_versions import ApiVersionsRequest
from oncelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions

LIST = ApiKey.LIST_TRANSACTIONS


@contextmanager
def connected(broker: ScriptedBroker) -> Iterator[Connection]:
    connection = Connection(broker.address, "test")
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def something_that_sends(data: bytes) -> Iterator[Address]:
    """A server that answers whatever comes with these bytes, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Address(*listener.getsockname())
        thread.join(10)


def test_requests_go_out_in_the_newest_version_both_know():
    answer = ListTransactionsResponse(unknown_state_filters=["Napping"])
    ranges = {ApiKey.API_VERSIONS: (0, 4), LIST: (0, 1)}
    with (
        ScriptedBroker({ApiKey.API_VERSIONS: api_versions(ranges), LIST: answer}) as broker,
        connected(broker) as connection,
    ):
        assert connection.call(ListTransactionsRequest(duration_filter=5), ListTransactionsResponse) == answer

    assert broker.asked[1:] == [(LIST, 1, ListTransactionsRequest(duration_filter=5))]


def test_the_broker_is_told_what_software_this_is():
    with ScriptedBroker({}) as broker, connected(broker):
        pass

    (request,) = broker.requests(ApiKey.API_VERSIONS)
    assert request.client_software_name == "oncelog"
    assert request.client_software_version


def test_an_older_broker_is_asked_again_in_a_version_it_knows():
    older = api_versions({ApiKey.API_VERSIONS: (0, 2), LIST: (0, 0)})

    def answer(request: ApiVersionsRequest) -> object:
        if len(broker.asked) > 1:
            return older
        refusal = api_versions({ApiKey.API_VERSIONS: (0, 2)})
        refusal.error_code = ErrorCode.UNSUPPORTED_VERSION
        return b"".join(encode_response(1, refusal, 0))

    with (
        ScriptedBroker({ApiKey.API_VERSIONS: answer, LIST: ListTransactionsResponse()}) as broker,
        connected(broker) as connection,
    ):
        connection.call(ListTransactionsRequest(), ListTransactionsResponse)

    assert [(key, version) for key, version, _ in broker.asked] == [
        (ApiKey.API_VERSIONS, 4),
        (ApiKey.API_VERSIONS, 2),
        (LIST, 0),
    ]


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname())

    with pytest.raises(Retriable, match=f"cannot reach a broker at {address}: Connection refused") as caught:
        Connection(address, "test")

    assert not caught.value.outcome_unknown


def test_a_broker_that_hangs_up_at_once_cannot_be_reached():
    with (
        ScriptedBroker({ApiKey.API_VERSIONS: None}) as broker,
        pytest.raises(Retriable, match=f"cannot reach a broker at {broker.address}: .*ApiVersions") as caught,
    ):
        Connection(broker.address, "test")

    assert not caught.value.outcome_unknown


def test_an_http_server_is_no_broker():
    with (
        something_that_sends(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address,
        pytest.raises(Fatal, match="does not speak the Kafka protocol"),
    ):
        Connection(address, "test")


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x05\x00\x00\x00\x01\x00", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"])
def test_bytes_that_are_no_answer(data: bytes):
    with something_that_sends(data) as address, pytest.raises(Fatal, match="does not speak the Kafka protocol"):
        Connection(address, "test")


def test_a_connection_that_breaks_leaves_the_outcome_unknown():
    with (
        ScriptedBroker({LIST: None}) as broker,
        connected(broker) as connection,
        pytest.raises(Retriable, match="before it answered ListTransactions") as caught,
    ):
        connection.call(ListTransactionsRequest(), ListTransactionsResponse)

    assert caught.value.outcome_unknown


def test_an_answer_to_something_else_breaks_the_connection():
    stale = b"".join(encode_response(77, ListTransactionsResponse(), 2))
    with (
        ScriptedBroker({LIST: stale}) as broker,
        connected(broker) as connection,
        pytest.raises(Fatal, match="answered request 77"),
    ):
        connection.call(ListTransactionsRequest(), ListTransactionsResponse)


def test_an_answer_that_cannot_be_read_breaks_the_connection():
    with (
        ScriptedBroker({LIST: b"\x00\x00\x00\x06\x00\x00\x00\x02\x00\x01"}) as broker,
        connected(broker) as connection,
        pytest.raises(Fatal, match="no ListTransactionsResponse"),
    ):
        connection.call(ListTransactionsRequest(), ListTransactionsResponse)


def test_an_answer_in_many_pieces_is_put_together():
    answer = ListTransactionsResponse(unknown_state_filters=["x" * 100_000, "y" * 300_000])
    with ScriptedBroker({LIST: answer}) as broker, connected(broker) as connection:
        assert connection.call(ListTransactionsRequest(), ListTransactionsResponse) == answer
