"""`oncelog transactions list | describe | find-hanging | abort`: transactions of a cluster, Oncelog's or Apache Kafka's."""

import argparse

from oncelog.cli.abort_transaction import abort_transaction
from oncelog.cli.broker_commands import add_broker_arguments, run_against_brokers
from oncelog.cli.describe_transactions import describe_transaction, list_transactions
from oncelog.cli.durations import parse_duration
from oncelog.cli.hanging_transactions import find_hanging_transactions

ACTIONS = {
    "list": list_transactions,
    "describe": describe_transaction,
    "find-hanging": find_hanging_transactions,
    "abort": abort_transaction,
}
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    layout = parser.formatter_class

    listing = actions.add_parser("list", help="the transactional ids of all coordinators", formatter_class=layout)
    listing.add_argument(
        "--state", metavar="STATE", action="append", choices=STATES, default=[], help=f"one of {', '.join(STATES)}"
    )
    listing.add_argument("--producer-id", metavar="ID", action="append", type=int, default=[])
    listing.add_argument(
        "--older-than",
        metavar="DURATION",
        type=parse_duration,
        help="with a transaction that runs for longer: 30s, 15m",
    )
    listing.add_argument("--pattern", metavar="REGEX", help="whose transactional id matches as a whole")

    describing = actions.add_parser("describe", help="all about one transactional id", formatter_class=layout)
    describing.add_argument("transactional_id", metavar="ID")

    finding = actions.add_parser(
        "find-hanging", help="transactions open in a partition that no coordinator will end", formatter_class=layout
    )
    finding.add_argument("--topic", help="only in this topic")
    finding.add_argument("--broker", metavar="ID", type=int, help="only in the replicas on this broker")
    finding.add_argument(
        "--max-transaction-timeout",
        metavar="DURATION",
        type=parse_duration,
        default="15m",
        help="only those silent for longer: what brokers have as transaction.max.timeout.ms (%(default)s)",
    )

    aborting = actions.add_parser(
        "abort",
        help="end a transaction: one of a transactional id, or a hanging one in a partition",
        description="With ID: takes over the transactional id, which aborts its open transaction and fences its producer. "
        "With --topic, --partition and --start-offset: writes an abort marker for a hanging transaction.",
        formatter_class=layout,
    )
    aborting.add_argument("transactional_id", metavar="ID", nargs="?")
    aborting.add_argument("--yes", action="store_true", help="fence the producer of ID without asking")
    aborting.add_argument("--topic")
    aborting.add_argument("--partition", type=int)
    aborting.add_argument("--start-offset", metavar="OFFSET", type=int, help="where it began, as find-hanging says")
    aborting.add_argument(
        "--force", action="store_true", help="write the marker though a coordinator knows the transaction"
    )

    for action in (listing, describing, finding, aborting):
        add_broker_arguments(action)


def run(arguments: argparse.Namespace) -> int:
    return run_against_brokers(arguments, ACTIONS[arguments.action])
