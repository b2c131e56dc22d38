"""`oncelog transactions find-hanging`, and the abort of one that hangs: a marker written past the coordinator."""

import argparse
import sys

from oncelog.cli.broker_commands import (
    NOT_AS_WANTED,
    OK,
    Missing,
    Misused,
    command_line,
    now_ms,
    print_json,
    view_of_topic,
)
from oncelog.cli.durations import format_duration, format_time
from oncelog.cli.tables import table
from oncelog.client.brokers import Brokers
from oncelog.client.errors import error_for
from oncelog.client.hanging_transactions import find_hanging, is_unknown, transactions_of_producers
from oncelog.client.transaction_admin import OpenTransaction, TransactionAdmin
from oncelog.model.topic_partition import TopicPartition


def find_hanging_transactions(arguments: argparse.Namespace, brokers: Brokers) -> int:
    view = view_of_topic(brokers, arguments.topic) if arguments.topic else brokers.view()
    if arguments.broker is not None and arguments.broker not in view.brokers:
        raise Misused(
            f"there is no broker {arguments.broker} in this cluster: it has {', '.join(map(str, view.brokers))}"
        )
    partitions = [
        partition
        for partition, known in view.partitions.items()
        if arguments.broker is None or arguments.broker in known.replicas
    ]
    now = now_ms()
    found = find_hanging(
        TransactionAdmin(brokers),
        view,
        partitions,
        silent_since_ms=now - arguments.max_transaction_timeout,
        at_broker=arguments.broker,
    )
    for partition, code in found.failed.items():
        print(f"oncelog: {error_for(code, f'could not look into {partition}')}", file=sys.stderr)
    if arguments.json:
        print_json([_hanging_as_json(arguments, hanging, now) for hanging in found.transactions])
    elif found.transactions:
        headings = ("topic", "partition", "producer id", "epoch", "start offset", "last write", "duration")
        print(table(headings, [_hanging_row(hanging, now) for hanging in found.transactions]))
        print("\nTo abort:" if len(found.transactions) == 1 else "\nTo abort them:")
        for hanging in found.transactions:
            print(f"  {abort_command(arguments, hanging)}")
    else:
        print(f"no hanging transactions in {len(partitions) - len(found.failed)} partitions")
    return NOT_AS_WANTED if found.transactions else OK


def _hanging_row(hanging: OpenTransaction, now: int) -> tuple[object, ...]:
    return (
        hanging.partition.topic,
        hanging.partition.partition,
        hanging.producer_id,
        hanging.producer_epoch,
        hanging.start_offset,
        format_time(hanging.last_timestamp_ms),
        format_duration(now - hanging.last_timestamp_ms),
    )


def _hanging_as_json(arguments: argparse.Namespace, hanging: OpenTransaction, now: int) -> dict[str, object]:
    return {
        "topic": hanging.partition.topic,
        "partition": hanging.partition.partition,
        "producer_id": hanging.producer_id,
        "producer_epoch": hanging.producer_epoch,
        "coordinator_epoch": hanging.coordinator_epoch,
        "start_offset": hanging.start_offset,
        "last_timestamp_ms": hanging.last_timestamp_ms,
        "duration_ms": now - hanging.last_timestamp_ms,
        "abort_command": abort_command(arguments, hanging),
    }


def abort_command(arguments: argparse.Namespace, hanging: OpenTransaction) -> str:
    topic, partition = hanging.partition
    place = ("--topic", topic, "--partition", partition, "--start-offset", hanging.start_offset)
    return command_line(arguments, "transactions", "abort", *place)


def abort_hanging_transaction(arguments: argparse.Namespace, brokers: Brokers) -> int:
    admin = TransactionAdmin(brokers)
    partition = TopicPartition(arguments.topic, arguments.partition)
    view = view_of_topic(brokers, arguments.topic)
    if partition not in view.partitions:
        raise Missing(f"{arguments.topic} has no partition {arguments.partition}")
    searched = admin.open_transactions(view, [partition])
    for code in searched.failed.values():
        raise error_for(code, f"could not look into {partition}")
    for hanging in searched.found:
        if hanging.start_offset == arguments.start_offset:
            break
    else:
        others = ", ".join(str(found.start_offset) for found in searched.found)
        also = f": open there are those that began at {others}" if others else ": no transaction is open there"
        raise Missing(f"no transaction of {partition} that began at offset {arguments.start_offset}{also}")
    if not arguments.force:
        _refuse_if_known(arguments, admin, hanging)
    admin.write_abort_marker(view, hanging)
    if arguments.json:
        print_json(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "producer_id": hanging.producer_id,
                "producer_epoch": hanging.producer_epoch,
                "start_offset": hanging.start_offset,
            }
        )
    else:
        whose = f"producer {hanging.producer_id}, epoch {hanging.producer_epoch}"
        print(f"{partition}: transaction of {whose}, open since offset {hanging.start_offset}, aborted")
    return OK


def _refuse_if_known(arguments: argparse.Namespace, admin: TransactionAdmin, hanging: OpenTransaction) -> None:
    """A marker past a coordinator that still counts on the transaction would tear it: aborted here, committed elsewhere."""
    known = transactions_of_producers(admin, {hanging.producer_id}).get(hanging.producer_id)
    if known is not None and not is_unknown(hanging, known):
        raise Misused(
            f'it is not hanging: it belongs to "{known.transactional_id}" ({known.state}), and its coordinator will end it. '
            f"To abort it now: {command_line(arguments, 'transactions', 'abort', known.transactional_id)}"
        )
