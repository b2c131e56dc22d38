"""`oncelog transactions abort`: of a transactional id by taking it over, of a hanging one by a marker."""

import argparse
import sys

from oncelog.cli.broker_commands import OK, Missing, Misused, now_ms, print_json
from oncelog.cli.describe_transactions import client_of, known_transaction
from oncelog.cli.durations import format_duration
from oncelog.cli.hanging_transactions import abort_hanging_transaction
from oncelog.client.brokers import Brokers
from oncelog.client.transaction_admin import TransactionAdmin, TransactionDescription


def abort_transaction(arguments: argparse.Namespace, brokers: Brokers) -> int:
    place = (arguments.topic, arguments.partition, arguments.start_offset)
    if arguments.transactional_id is not None and place == (None, None, None):
        return _abort_transactional_id(arguments, brokers)
    if arguments.transactional_id is None and None not in place:
        return abort_hanging_transaction(arguments, brokers)
    raise Misused("abort takes either a transactional id, or --topic, --partition and --start-offset")


def _abort_transactional_id(arguments: argparse.Namespace, brokers: Brokers) -> int:
    admin = TransactionAdmin(brokers)
    description = known_transaction(admin, arguments.transactional_id)
    name = f'"{description.transactional_id}"'
    if description.is_prepared:
        raise Missing(f"{name} has nothing to abort any more: it is in {description.state}, its outcome is decided")
    if not description.is_open:
        raise Missing(f"{name} has nothing to abort: it is in {description.state}")
    _confirm(arguments, description)
    identity = admin.fence(description)
    if arguments.json:
        print_json(
            {
                "transactional_id": description.transactional_id,
                "fenced_producer_id": description.producer_id,
                "fenced_producer_epoch": description.producer_epoch,
                "producer_id": identity.producer_id,
                "producer_epoch": identity.producer_epoch,
            }
        )
    else:
        fenced = f"producer {description.producer_id}, epoch {description.producer_epoch} is fenced"
        print(f"{name}: transaction aborted, {fenced}")
    return OK


def _confirm(arguments: argparse.Namespace, description: TransactionDescription) -> None:
    if arguments.yes:
        return
    client = client_of(description)
    told = (
        f'"{description.transactional_id}" is in a transaction for {format_duration(now_ms() - description.start_ms)}, '
        f"over {len(description.partitions)} partitions. Aborting discards what it wrote, and fences producer "
        f"{description.producer_id}, epoch {description.producer_epoch}"
        + (f" ({client})" if client else "")
        + ": it gets a fatal error on its next call and must be started again."
    )
    if not sys.stdin.isatty():
        raise Misused(f"{told} Give --yes if that is wanted.")
    # Standard output is for the result, which may be JSON.
    print(f"{told}\nAbort it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Misused("nothing was aborted")
