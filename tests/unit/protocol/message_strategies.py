"""Random messages of any class in any version, made from the class's own schema.

hypothesis draws a seed and the message follows from it: drawing a message field by field takes longer than all the rest of a test.
Values stay within what the oracles can represent: kio turns error codes into an enum, and times into datetime and timedelta.
"""

from random import Random
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import APIS
from oncelog.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from oncelog.protocol.messages.internal.group_metadata import GroupMetadataKey, GroupMetadataValue
from oncelog.protocol.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue
from oncelog.protocol.messages.internal.producer_snapshot import ProducerSnapshot
from oncelog.protocol.messages.internal.transaction_log import TransactionLogKey, TransactionLogValue
from oncelog.protocol.schema import OWN_TAGS_FROM, Field, WireType, schema_of

ALL_MESSAGES: list[tuple[type[Any], int]] = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in range(api.versions[0], api.versions[1] + 1)
]

_STORED: list[type[Any]] = [
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    ProducerSnapshot,
    TransactionLogKey,
    TransactionLogValue,
]
STORED_MESSAGES: list[tuple[type[Any], int]] = [
    (cls, version) for cls in _STORED for version in range(schema_of(cls).versions[0], schema_of(cls).versions[1] + 1)
]

#: A few examples each: there are hundreds of (class, version) pairs. A seed says nothing by being small, so none is shrunk.
BUDGET = settings(max_examples=6, phases=[Phase.generate], deadline=None, database=None)

_ERROR_CODES = [int(code) for code in ErrorCode]
_LIMITS = {
    "i8": (-(2**7), 2**7 - 1),
    "i16": (-(2**15), 2**15 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "i64": (-(2**63), 2**63 - 1),
    "u32": (0, 2**32 - 1),
}
_ALPHABET = "abcxyz-._0189 äß€日本\U0001f600"


def named(message: tuple[type, int]) -> str:
    return f"{message[0].__name__}-{message[1]}"


def messages(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Instances with a random value in every field of this version; other versions' fields, and our own, keep their default."""
    return st.integers(0, 2**64 - 1).map(lambda seed: random_message(Random(seed), cls, version))


def random_message(random: Random, cls: type[Any], version: int) -> Any:
    return cls(**{field.name: _field_value(random, field, version) for field in fields_of_kafka(cls, version)})


def fields_of_kafka(cls: type[Any], version: int) -> list[Field]:
    """The fields of this version that Kafka's schema has too, as they stand in the class."""
    return [
        field
        for field in schema_of(cls).fields
        if field.since <= version <= field.until and (field.tag is None or field.tag < OWN_TAGS_FROM)
    ]


def _field_value(random: Random, field: Field, version: int) -> Any:
    if random.random() < 0.2:
        return field.default if field.type.struct is None or field.tag is not None else field.type.struct()
    if field.tag is None and version >= field.nullable_since and random.random() < 0.3:
        return None
    kind = field.type.primitive.name if field.type.primitive is not None else ""
    if field.name.endswith("error_code"):
        return random.choice(_ERROR_CODES)
    if kind == "i64" and ("time" in field.name or field.name == "duration_filter"):
        # Whole seconds, up to the year 5000.
        return random.randrange(95_000_000_000) * 1000
    value = _value(random, field.type, version)
    if field.tag is not None and field.type.struct is not None and value == field.type.struct():
        return None  # a default is not sent, and a tagged struct that was not sent is None
    return value


def _value(random: Random, type_: WireType, version: int) -> Any:
    if type_.struct is not None:
        return random_message(random, type_.struct, version)
    if type_.element is not None:
        return [_value(random, type_.element, version) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    assert type_.primitive is not None
    # Some lengths need a second byte as varint.
    size = random.choice((0, 1, 5, 12, 126, 127, 128, 140))
    match type_.primitive.name:
        case "bool":
            return random.random() < 0.5
        case "f64":
            return random.choice((0.0, -1.5, 1e300, random.random()))
        case "uuid":
            return random.randbytes(16)
        case "string":
            return "".join(random.choices(_ALPHABET, k=size))
        case "bytes" | "records":
            return random.randbytes(size)
        case integer:
            low, high = _LIMITS[integer]
            return random.choice((low, max(low, -1), 0, 1, high, random.randint(low, high)))
