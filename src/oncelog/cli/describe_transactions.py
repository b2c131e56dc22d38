"""`oncelog transactions list` and `describe`: what coordinators know of transactional ids."""

import argparse

from oncelog.cli.broker_commands import OK, Missing, now_ms, print_json
from oncelog.cli.durations import format_duration, format_time
from oncelog.cli.tables import named_values, table
from oncelog.client.brokers import Brokers
from oncelog.client.transaction_admin import NO_TIMEOUT_MS, TransactionAdmin, TransactionDescription


def list_transactions(arguments: argparse.Namespace, brokers: Brokers) -> int:
    found = TransactionAdmin(brokers).list_transactions(
        arguments.state, arguments.producer_id, arguments.older_than, arguments.pattern
    )
    if arguments.json:
        print_json(
            [
                {
                    "transactional_id": listed.transactional_id,
                    "coordinator": listed.coordinator,
                    "producer_id": listed.producer_id,
                    "state": listed.state,
                }
                for listed in found
            ]
        )
    elif found:
        rows = [(listed.transactional_id, listed.coordinator, listed.producer_id, listed.state) for listed in found]
        print(table(("transactional id", "coordinator", "producer id", "state"), rows))
    else:
        print("no transactional ids")
    return OK


def describe_transaction(arguments: argparse.Namespace, brokers: Brokers) -> int:
    description = known_transaction(TransactionAdmin(brokers), arguments.transactional_id)
    now = now_ms()
    partitions = sorted(description.partitions)
    running_ms = now - description.start_ms if description.start_ms >= 0 and not _is_at_rest(description) else None
    if arguments.json:
        print_json(
            {
                "transactional_id": description.transactional_id,
                "coordinator": description.coordinator,
                "state": description.state,
                "producer_id": description.producer_id,
                "producer_epoch": description.producer_epoch,
                "timeout_ms": description.timeout_ms,
                "start_time_ms": None if running_ms is None else description.start_ms,
                "running_ms": running_ms,
                "partitions": [{"topic": topic, "partition": partition} for topic, partition in partitions],
                "client_id": description.client_id or None,
                "client_host": description.client_host or None,
            }
        )
        return OK
    started = None if running_ms is None else f"{format_time(description.start_ms)}, {format_duration(running_ms)} ago"
    print(
        named_values(
            [
                ("transactional id", description.transactional_id),
                ("coordinator", f"broker {description.coordinator}"),
                ("state", description.state),
                ("producer", f"{description.producer_id}, epoch {description.producer_epoch}"),
                ("timeout", _timeout(description, now)),
                ("started", started),
                (
                    "without a marker" if description.is_prepared else "partitions",
                    ", ".join(map(str, partitions)) or None,
                ),
                ("last client", client_of(description)),
            ]
        )
    )
    return OK


def known_transaction(admin: TransactionAdmin, transactional_id: str) -> TransactionDescription:
    found = admin.describe_transactions([transactional_id]).get(transactional_id)
    if found is None:
        raise Missing(f'no coordinator knows a transactional id "{transactional_id}"')
    return found


def _is_at_rest(description: TransactionDescription) -> bool:
    return not description.is_open and not description.is_prepared


def _timeout(description: TransactionDescription, now: int) -> str:
    if description.timeout_ms == NO_TIMEOUT_MS:
        return "none"
    timeout = format_duration(description.timeout_ms)
    ends = description.times_out_at_ms
    if ends is None:
        return timeout
    return f"{timeout}, over in {format_duration(ends - now)}" if ends > now else f"{timeout}, over"


def client_of(description: TransactionDescription) -> str | None:
    if not description.client_host:
        return None
    return f"{description.client_id or 'without a name'} at {description.client_host}"
