"""`oncelog explain-lag TOPIC`: what keeps read_committed readers from the end of each partition, and what to do about it."""

import argparse

from oncelog.cli.broker_commands import (
    OK,
    Missing,
    add_broker_arguments,
    command_line,
    now_ms,
    print_json,
    run_against_brokers,
    view_of_topic,
)
from oncelog.cli.describe_transactions import client_of
from oncelog.cli.durations import format_duration, format_time
from oncelog.cli.hanging_transactions import abort_command
from oncelog.cli.tables import named_values, table
from oncelog.client.brokers import Brokers
from oncelog.client.stable_offset import Holder, PartitionLag, explain_lag
from oncelog.client.transaction_admin import NO_TIMEOUT_MS, TransactionDescription
from oncelog.model.topic_partition import TopicPartition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--partition", type=int, help="only this one")
    add_broker_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    return run_against_brokers(arguments, _explain)


def _explain(arguments: argparse.Namespace, brokers: Brokers) -> int:
    view = view_of_topic(brokers, arguments.topic)
    partitions = [*view.partitions]
    if arguments.partition is not None:
        partitions = [TopicPartition(arguments.topic, arguments.partition)]
        if partitions[0] not in view.partitions:
            raise Missing(f"{arguments.topic} has no partition {arguments.partition}: it has {len(view.partitions)}")
    lags = explain_lag(brokers, view, partitions)
    now = now_ms()
    if arguments.json:
        print_json([_as_json(arguments, lag, now) for lag in lags])
        return OK
    headings = ("partition", "high watermark", "last stable offset", "held back", "held by")
    print(table(headings, [_row(lag, now) for lag in lags]))
    for holders in _by_transaction(lags):
        print(f"\n{_whose(holders[0])}")
        print(named_values(_details(arguments, holders, now), indent="  "))
    if not any(lag.held_back for lag in lags):
        print("\nNothing is held back: read_committed readers may read to the high watermark.")
    return OK


def _row(lag: PartitionLag, now: int) -> tuple[object, ...]:
    held_by = None
    if lag.holders:
        holder = lag.holders[0]
        held_by = f"{_whose(holder)} ({_state(holder, now)})"
        if len(lag.holders) > 1:
            held_by += f" and {len(lag.holders) - 1} more"
    elif lag.held_back:
        held_by = "a transaction that has ended: its marker is not on all replicas yet"
    return lag.partition, lag.high_watermark, lag.last_stable_offset, lag.held_back, held_by


def _by_transaction(lags: list[PartitionLag]) -> list[list[Holder]]:
    """Who holds something back, each with all the partitions it is open in. Hanging ones are ended partition by partition."""
    groups: dict[object, list[Holder]] = {}
    for lag in lags:
        for holder in lag.holders:
            found = holder.transaction
            key = found if holder.hanging else (found.producer_id, found.producer_epoch)
            groups.setdefault(key, []).append(holder)
    return [*groups.values()]


def _details(arguments: argparse.Namespace, holders: list[Holder], now: int) -> list[tuple[str, object]]:
    holder = holders[0]
    found, known = holder.transaction, holder.description
    last_write_ms = max(each.transaction.last_timestamp_ms for each in holders)
    open_since = ", ".join(f"{each.transaction.partition} offset {each.transaction.start_offset}" for each in holders)
    details: list[tuple[str, object]] = [
        ("producer", f"{found.producer_id}, epoch {found.producer_epoch}"),
        ("state", _state(holder, now)),
        ("open since", open_since),
        ("last write", f"{format_time(last_write_ms)}, {format_duration(now - last_write_ms)} ago"),
    ]
    if known is not None and known.is_open and not holder.hanging:
        details.append(("timeout", "none" if known.timeout_ms == NO_TIMEOUT_MS else format_duration(known.timeout_ms)))
    if known is not None:
        details.append(("last client", client_of(known) or "unknown"))
    what, command = _what_to_do(arguments, holder, now)
    details.append(("what to do", what if command is None else f"{what}:\n{command}"))
    return details


def _whose(holder: Holder) -> str:
    if holder.description is None:
        return f"producer {holder.transaction.producer_id}"
    return f'"{holder.description.transactional_id}"'


def _state(holder: Holder, now: int) -> str:
    if holder.hanging or holder.description is None:
        return "hanging"
    return f"{holder.description.state} for {format_duration(now - holder.description.start_ms)}"


def _what_to_do(arguments: argparse.Namespace, holder: Holder, now: int) -> tuple[str, str | None]:
    """A sentence, and a command where one helps."""
    known = holder.description
    if holder.hanging or known is None:
        return "no coordinator will ever end it; abort it", abort_command(arguments, holder.transaction)
    if known.is_prepared:
        outcome = "committed" if known.state == "PrepareCommit" else "aborted"
        missing = ", ".join(map(str, sorted(known.partitions)))
        return f"wait: it is being {outcome}; broker {known.coordinator} still has to write markers to {missing}", None
    command = command_line(arguments, "transactions", "abort", known.transactional_id)
    left_ms = _left_ms(known, now)
    if left_ms is None:
        return (
            "it has no timeout (two-phase commit): have its application finish it, or abort it and fence its producer",
            command,
        )
    if left_ms > 0:
        return (
            f"wait: its timeout ends it in {format_duration(left_ms)}; or abort it and fence its producer now",
            command,
        )
    return "wait: its timeout is over, and its coordinator aborts it when it next looks; or abort it now", command


def _left_ms(known: TransactionDescription, now: int) -> int | None:
    return None if known.times_out_at_ms is None else known.times_out_at_ms - now


def _as_json(arguments: argparse.Namespace, lag: PartitionLag, now: int) -> dict[str, object]:
    return {
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "high_watermark": lag.high_watermark,
        "last_stable_offset": lag.last_stable_offset,
        "held_back": lag.held_back,
        "holders": [_holder_as_json(arguments, holder, now) for holder in lag.holders],
    }


def _holder_as_json(arguments: argparse.Namespace, holder: Holder, now: int) -> dict[str, object]:
    found, known = holder.transaction, holder.description
    what, command = _what_to_do(arguments, holder, now)
    # Of a hanging one the coordinator knows at most the id: what else it says is about another transaction.
    live = None if holder.hanging else known
    return {
        "transactional_id": known and known.transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "start_offset": found.start_offset,
        "last_timestamp_ms": found.last_timestamp_ms,
        "hanging": holder.hanging,
        "state": live and live.state,
        "coordinator": live and live.coordinator,
        "start_time_ms": live and live.start_ms,
        "running_ms": live and now - live.start_ms,
        "timeout_ms": live and live.timeout_ms,
        "times_out_in_ms": live and _left_ms(live, now),
        "client_id": known and (known.client_id or None),
        "client_host": known and (known.client_host or None),
        "what_to_do": what,
        "command": command,
    }
