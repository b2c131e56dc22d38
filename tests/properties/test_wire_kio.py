"""Every message in every version, against kio, which is generated from Kafka's schemas.

Ours and theirs are built from the same random values, field by field and by name. The bytes must be the same, and each side must
read the other's.
"""

import dataclasses
import datetime
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import UnknownEntity, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from oncelog.protocol.codec import decode, encode
from oncelog.protocol.schema import Message, schema_of
from tests.unit.protocol.message_strategies import ALL_MESSAGES, BUDGET, fields_of_kafka, messages, named

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def same_name(ours: str, theirs: str) -> bool:
    """kio spells a few names its own way: `timeout` for `timeout_ms`, `enable2_pc` for `enable_2pc`."""
    plain, other = ours.replace("_", ""), theirs.replace("_", "")
    return other in (plain, plain.removesuffix("ms"))


def kio_class(cls: type, version: int) -> type[Any] | None:
    key = schema_of(cls).key
    assert key is not None
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    try:
        return load(key, version)
    except UnknownEntity:
        return None


def to_kio(message: Message, version: int, kio_cls: type[Any]) -> Any:
    ours = [field.name for field in fields_of_kafka(type(message), version)]
    theirs = dataclasses.fields(kio_cls)
    assert len(ours) == len(theirs)
    values = {}
    for name, field in zip(ours, theirs, strict=True):
        assert same_name(name, field.name)
        values[field.name] = kio_value(getattr(message, name), version, field)
    return kio_cls(**values)


def kio_value(value: Any, version: int, field: "dataclasses.Field[Any]") -> Any:
    kind = field.metadata.get("kafka_type")
    if kind is None:
        nested: Any = next(part for part in kio_type_parts(field.type) if dataclasses.is_dataclass(part))
        if value is None:
            # Ours says None where a tagged struct was not sent; theirs then holds the default struct.
            return nested() if "tag" in field.metadata else None
        if isinstance(value, list):
            return tuple(to_kio(item, version, nested) for item in value)
        return to_kio(value, version, nested)
    if isinstance(value, list):
        return tuple(value)
    if value is None:
        return None
    match kind:
        case "error_code":
            return KioErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else _EPOCH + datetime.timedelta(milliseconds=value)
        case "uuid":
            return None if value == bytes(16) else UUID(bytes=value)
        case _:
            return value


def kio_type_parts(type_: Any) -> list[Any]:
    arguments = [argument for argument in getattr(type_, "__args__", ()) if argument is not Ellipsis]
    return [part for argument in arguments for part in kio_type_parts(argument)] or [type_]


@pytest.mark.parametrize("message", ALL_MESSAGES, ids=named)
@BUDGET
@given(data=st.data())
def test_kio_writes_and_reads_the_same_bytes(message: tuple[type[Any], int], data: st.DataObject) -> None:
    cls, version = message
    kio_cls = kio_class(cls, version)
    if kio_cls is None:
        pytest.skip("kio does not know this version")
    ours = data.draw(messages(cls, version))
    theirs = to_kio(ours, version, kio_cls)
    out = BytesIO()
    entity_writer(kio_cls)(out, theirs)

    encoded = encode(ours, version)

    assert encoded == out.getvalue()
    assert decode(cls, version, encoded) == ours
    read, size = entity_reader(kio_cls)(encoded, 0)
    assert (read, size) == (theirs, len(encoded))
