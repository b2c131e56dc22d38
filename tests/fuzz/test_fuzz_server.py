"""Mutated frames against a live broker: it answers or closes, stays up, stays small, and no handler meets a surprise.

Every API the broker advertises is asked in every version with a request of the right shape, of which a few bytes are then
changed, cut, doubled or replaced by numbers that overflow things. What a frame asks for may be legal by chance (a topic made, a
group joined), so the answer is not looked at: the broker's log is, where a handler that failed on a request says so.

ONCELOG_FUZZ_SECONDS and ONCELOG_FUZZ_SEED change how long and with which chance.
"""

import contextlib
import os
import random
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from oncelog.protocol.apis import APIS, ApiKey
from oncelog.protocol.frames import encode_request
from oncelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from oncelog.protocol.schema import Field, WireType, schema_of
from oncelog.records.builder import build_batch
from tests.brokers import BrokerProcess
from tests.integration.raw_connection import HealthyProducer, RawConnection, create_topic, resident_bytes

SECONDS = float(os.environ.get("ONCELOG_FUZZ_SECONDS", "12"))
SEED = int(os.environ.get("ONCELOG_FUZZ_SEED", "20"))

FRAMES_PER_CONNECTION = 8
#: Numbers at the edges of what fields hold, and lengths that a careless reader would believe.
EDGES = [b"\xff", b"\x00", b"\x7f", b"\x80", b"\xff\xff\xff\xff\x0f", b"\x80" * 5]
EDGES += [struct.pack(">i", number) for number in (-1, -2, 2**31 - 1, -(2**31), 1 << 20)]
EDGES += [struct.pack(">q", number) for number in (-1, -3, 2**63 - 1, -(2**63))]
EDGES += [struct.pack(">h", number) for number in (-1, 2**15 - 1, -(2**15))]


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    # Small, so that a frame that by chance asks for a topic with the default number of partitions makes few.
    with BrokerProcess(tmp_path_factory.mktemp("fuzz") / "data", {"num.partitions": "1"}) as process:
        yield process


def plausible(cls: type[Any], version: int, chance: random.Random, topic: str) -> Any:
    """A request that a handler takes seriously: existing names, small numbers, a real batch."""
    schema = schema_of(cls)
    fields = schema.fields_in(version) + schema.tagged_in(version)
    return cls(**{field.name: plausible_field(field, version, chance, topic) for field in fields})


def plausible_field(field: Field, version: int, chance: random.Random, topic: str) -> Any:
    if field.tag is not None or (version >= field.nullable_since and chance.random() < 0.2):
        return field.default
    match field.name:
        case "validate_only":
            return True
        case "num_partitions" | "count" | "replication_factor":
            return chance.choice((1, -1))
        case "assignments":
            return []
        case _:
            return plausible_value(field.type, version, chance, topic)


def plausible_value(kind: WireType, version: int, chance: random.Random, topic: str) -> Any:
    if kind.struct is not None:
        return plausible(kind.struct, version, chance, topic)
    if kind.element is not None:
        return [plausible_value(kind.element, version, chance, topic) for _ in range(chance.choice((0, 1, 1, 1, 2)))]
    assert kind.primitive is not None
    match kind.primitive.name:
        case "bool":
            return chance.random() < 0.5
        case "f64":
            return 0.5
        case "uuid":
            return chance.choice((bytes(16), chance.randbytes(16)))
        case "string":
            return chance.choice((topic, topic, "group", "", "range", "consumer", "cleanup.policy", "127.0.0.1"))
        case "bytes":
            return chance.randbytes(chance.choice((0, 4, 16)))
        case "records":
            return build_batch([(b"key", b"value")], timestamp_ms=chance.choice((0, 1_700_000_000_000)))
        case _:
            return chance.choice((0, 0, 0, 1, -1, 2, 100))


def served(broker: BrokerProcess) -> list[tuple[ApiKey, int]]:
    with RawConnection(broker.port) as connection:
        answer = connection.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
    return [
        (ApiKey(api.api_key), version)
        for api in answer.api_keys
        for version in range(max(api.min_version, APIS[ApiKey(api.api_key)].versions[0]), api.max_version + 1)
    ]


def mutate(frame: bytes, chance: random.Random) -> bytes:
    """Change what follows the size; the size is made right again, mostly."""
    payload = bytearray(frame[4:])
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 8))):
        # The API key and version stay mostly: a frame nobody serves finds no bug behind the door.
        at = chance.randrange(0 if chance.random() < 0.05 else min(4, len(payload)), len(payload) + 1)
        match chance.randrange(6):
            case 0 if at < len(payload):
                payload[at] ^= 1 << chance.randrange(8)
            case 1:
                edge = chance.choice(EDGES)
                payload[at : at + len(edge)] = edge
            case 2:
                payload[at:at] = chance.choice(EDGES)
            case 3:
                del payload[at : at + chance.choice((1, 2, 4, 20))]
            case 4:
                del payload[at:]
            case _:
                start = chance.randrange(len(payload) + 1)
                payload[at:at] = payload[start : start + chance.randrange(64)]
        if not payload:
            payload += b"\0"
    size = len(payload) if chance.random() < 0.98 else chance.choice((-1, 0, 3, len(payload) + 1, 2**31 - 1))
    return struct.pack(">i", size) + payload


def one_client(broker: BrokerProcess, frames: list[bytes], chance: random.Random) -> None:
    with RawConnection(broker.port) as connection, contextlib.suppress(ConnectionError):
        for frame in frames:
            connection.send(frame)
        if chance.random() < 0.3:
            # Some wait a little for answers, some are gone before the broker has read what they sent.
            connection.socket.settimeout(0.02)
            with contextlib.suppress(TimeoutError):
                while connection.socket.recv(65_536):
                    pass


@pytest.mark.timeout(60 + 2 * SECONDS)
def test_a_broker_survives_mutated_requests(broker: BrokerProcess) -> None:
    chance = random.Random(SEED)
    healthy = HealthyProducer(broker.port)
    with RawConnection(broker.port) as connection:
        topic = create_topic(connection)
    apis = served(broker)
    assert {api for api, _ in apis} >= {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.CREATE_TOPICS}
    before = resident_bytes(broker.pid)
    end = time.monotonic() + SECONDS
    sent = 0
    while time.monotonic() < end:
        frames = []
        for _ in range(FRAMES_PER_CONNECTION):
            api, version = chance.choice(apis)
            request = plausible(APIS[api].request, version, chance, topic)
            frames.append(mutate(encode_request(sent, "fuzz", request, version), chance))
            sent += 1
        one_client(broker, frames, chance)
        assert broker.running, f"seed {SEED}: the broker died after {sent} frames:\n{broker.output()[-4000:]}"
        if sent % (50 * FRAMES_PER_CONNECTION) == 0:
            healthy.must_be_well()
    healthy.must_be_well()
    healthy.stop()
    assert sent > 200, "the machine is too slow for this test to mean anything"
    failures = [line for line in broker.output().splitlines() if "handler failed" in line or "Traceback" in line]
    assert not failures, f"seed {SEED}: {len(failures)} requests met a bug:\n{broker.output()[-6000:]}"
    assert (resident_bytes(broker.pid) - before) / 1e6 < 150
    assert broker.stop() == 0
