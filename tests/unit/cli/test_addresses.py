"""Addresses: from the command line and from Kafka's listener settings."""

import pytest

from oncelog.broker.config import load_config
from oncelog.cli.addresses import advertised_address, listen_address
from oncelog.model.address import Address, BadAddress, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9092", Address("127.0.0.1", 9092)),
        ("localhost:0", Address("localhost", 0)),
        (":9092", Address("", 9092)),
        ("[::1]:9092", Address("::1", 9092)),
    ],
)
def test_an_address_is_host_and_port(text: str, address: Address):
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["9092", "localhost", "localhost:", "localhost:http", "localhost:65536", "::1:9092", ""]
)
def test_what_is_no_address_is_named(text: str):
    with pytest.raises(BadAddress, match="is no HOST:PORT"):
        parse_address(text)


def test_an_address_prints_as_it_is_written():
    assert str(Address("127.0.0.1", 1)) == "127.0.0.1:1"
    assert str(Address("::1", 1)) == "[::1]:1"


def test_the_listener_for_clients_is_taken_from_a_kraft_configuration():
    config = load_config(
        {
            "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "advertised.listeners": "PLAINTEXT://kafka.example:19092,CONTROLLER://kafka.example:19093",
        }
    )

    assert listen_address(config) == Address("localhost", 9092)
    assert advertised_address(config, Address("localhost", 9092)) == Address("kafka.example", 19092)


def test_a_listener_may_have_a_name_of_its_own():
    config = load_config({"listeners": "INSIDE://localhost:1", "listener.security.protocol.map": "INSIDE:PLAINTEXT"})

    assert listen_address(config) == Address("localhost", 1)


@pytest.mark.parametrize(
    ("listeners", "says"),
    [
        ("SSL://localhost:9092", "SSL is not served yet"),
        ("PLAINTEXT://localhost:1,PLAINTEXT://localhost:2", "one listener for clients"),
        ("localhost:9092", r"is no NAME://HOST:PORT"),
    ],
)
def test_listeners_that_cannot_be_served_say_why(listeners: str, says: str):
    with pytest.raises(BadAddress, match=says):
        listen_address(load_config({"listeners": listeners}))


def test_clients_are_told_where_the_broker_listens():
    assert advertised_address(load_config({}), Address("localhost", 9092)) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_listening_everywhere_needs_an_address_for_clients(host: str):
    with pytest.raises(BadAddress, match="--advertised HOST:PORT"):
        advertised_address(load_config({}), Address(host, 9092))
