"""How much does a core of the broker carry, with the client most people have?

confluent-kafka (librdkafka) produces 1 KB records with acks=all and idempotence, and reads them back, in a process of
its own. The client costs more than the broker, so what counts is not the rate but MB per second of the broker's CPU
time.
"""

import itertools
import multiprocessing
import tempfile
import time
from pathlib import Path

from benchmarks.load import KILOBYTE_RECORD
from benchmarks.peer import start_kafka
from benchmarks.report import Options, Table, median, options
from benchmarks.servers import Server, start_oncelog, touch_memory
from benchmarks.wire import Connection

RECORDS = 200_000
WARM_UP_TURNS = 4
"""A Java broker is at its best only when its hot code is compiled."""


def produce(port: int, topic: str) -> None:
    from confluent_kafka import KafkaError, Message, Producer

    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "acks": "all",
            "enable.idempotence": True,
            "queue.buffering.max.messages": 20_000,
        }
    )
    for _ in range(RECORDS):
        while True:
            try:
                producer.produce(topic, KILOBYTE_RECORD, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()
    if failures:
        raise RuntimeError(f"{len(failures)} records were not acknowledged; the first: {failures[0]}")


def consume(port: int, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "benchmark", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    missing = RECORDS
    while missing > 0:
        missing -= len(consumer.consume(10_000, timeout=1.0))
    consumer.close()


def megabytes_per_core_second(server: Server, topic: str, *, fetch: bool) -> tuple[float, float]:
    """Per second of the server's CPU time, and per second of the clock."""
    before, begun = server.cpu_seconds(), time.perf_counter()
    client = multiprocessing.get_context("spawn").Process(
        target=consume if fetch else produce, args=(server.port, topic)
    )
    client.start()
    client.join()
    if client.exitcode:
        raise RuntimeError("the client failed: its own error stands above")
    megabytes = RECORDS * len(KILOBYTE_RECORD) / 1e6
    return megabytes / (server.cpu_seconds() - before), megabytes / (time.perf_counter() - begun)


def run(chosen: Options) -> None:
    table = Table(
        "MB per broker core-second, with librdkafka",
        f"Oncelog{' beside Apache Kafka' if chosen.peer_jars else ''}: 1 KB records, acks=all, idempotent; one partition; "
        f"{RECORDS * len(KILOBYTE_RECORD) // 1_000_000} MB a turn, medians.",
        ["direction", "broker", "MB per core-second", "MB per second of the clock"],
    )
    results: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        servers = [start_oncelog(directory / "oncelog")]
        if chosen.peer_jars:
            (directory / "kafka").mkdir()
            servers.append(start_kafka(chosen.peer_jars, directory / "kafka"))
        touch_memory(2 << 30, directory)
        for turn in range(WARM_UP_TURNS + chosen.rounds):
            topic = f"throughput-{turn}"
            for server in servers:
                Connection(server.port).create_topic(topic.encode())
            for server, fetch in itertools.product(servers, (False, True)):
                figures = megabytes_per_core_second(server, topic, fetch=fetch)
                if turn >= WARM_UP_TURNS:
                    results.setdefault((server.name, fetch), []).append(figures)
        for server in servers:
            server.stop()
    for (broker, fetch), taken in sorted(results.items(), key=lambda item: item[0][1]):
        per_core, per_clock = (median(column) for column in zip(*taken, strict=True))
        table.add("fetched" if fetch else "produced", broker, f"{per_core:.0f}", f"{per_clock:.0f}")
    table.print()


if __name__ == "__main__":
    run(options(__doc__))
