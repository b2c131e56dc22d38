"""Every message in every version kafka-python knows, against kafka-python.

Ours and theirs are built from the same random values, field by field and by name. The bytes must be the same, and each side must
read the other's.
"""

import warnings
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncelog.protocol.codec import decode, encode
from oncelog.protocol.messages.api_versions import ApiVersionsResponse
from oncelog.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from oncelog.protocol.schema import Message
from tests.unit.protocol.message_strategies import ALL_MESSAGES, BUDGET, fields_of_kafka, messages, named

with warnings.catch_warnings():
    # It loads its schemas with a function that newer Pythons deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    KAFKA_PYTHON: dict[str, Any] = {
        name: message
        for module in ("admin", "consumer", "metadata", "producer", "sasl", "consumer.metadata")
        for name, message in vars(import_module("kafka.protocol." + module)).items()
        if name.endswith(("Request", "Response", "Subscription", "Assignment"))
    }


def kafka_python_knows(message: tuple[type[Any], int]) -> bool:
    cls, version = message
    theirs = KAFKA_PYTHON.get(cls.__name__)
    return theirs is not None and version <= theirs.max_version


def to_kafka_python(message: Message, version: int, their_cls: type[Any]) -> Any:
    values: dict[str, Any] = {}
    their_fields = {name.replace("_", ""): field for name, field in their_cls._struct.fields.items()}
    for field in fields_of_kafka(type(message), version):
        value = getattr(message, field.name)
        if field.tag is not None and value == field.default:
            continue
        if field.name.endswith("authorized_operations") and not field.name.startswith("include"):
            values["authorized_operations"] = bits_set(value)
            continue
        theirs = their_fields[field.name.replace("_", "")]
        if isinstance(value, Message):
            value = to_kafka_python(value, version, theirs.data_class)
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            value = [to_kafka_python(item, version, theirs.data_class) for item in value]
        elif field.type.primitive is not None and field.type.primitive.name == "uuid":
            value = None if value == bytes(16) else UUID(bytes=value)
        values[theirs.name] = value
    return their_cls(version=version, **values)


def bits_set(value: int) -> set[int] | None:
    bits = {bit for bit in range(32) if value >> bit & 1}
    return None if bits == {31} else bits


@pytest.mark.parametrize("message", [pair for pair in ALL_MESSAGES if kafka_python_knows(pair)], ids=named)
@BUDGET
@given(data=st.data())
def test_kafka_python_writes_and_reads_the_same_bytes(message: tuple[type[Any], int], data: st.DataObject) -> None:
    cls, version = message
    their_cls = KAFKA_PYTHON[cls.__name__]
    ours = data.draw(messages(cls, version))
    theirs = to_kafka_python(ours, version, their_cls)

    encoded = encode(ours, version)

    assert encoded == bytes(theirs.encode(version=version))
    assert decode(cls, version, encoded) == ours
    if cls is ApiVersionsResponse and ours.error_code:
        return  # there they take every answer with an error for one of version 0
    assert their_cls.decode(encoded, version=version) == theirs


@pytest.mark.parametrize(
    "message",
    [(cls, version) for cls in (ConsumerProtocolSubscription, ConsumerProtocolAssignment) for version in range(4)],
    ids=named,
)
@BUDGET
@given(data=st.data())
def test_consumer_protocol_is_as_kafka_python_writes_it(message: tuple[type[Any], int], data: st.DataObject) -> None:
    cls, version = message
    their_cls = KAFKA_PYTHON[cls.__name__]
    ours = data.draw(messages(cls, version))
    theirs = to_kafka_python(ours, version, their_cls)

    assert encode(ours, version) == bytes(theirs.encode(version=version))[2:]
    assert decode(cls, version, encode(ours, version)) == ours
