"""What the demo's check says: of the orders that were sent, what is missing, what is there twice, and which transactions are torn.

Pure: it knows what was sent and what a reader under read_committed found, and nothing of how it came about. Every order gives one
record in each output topic. Every record says which transaction wrote it and how many orders that transaction was about, so a
transaction of which only a part can be seen shows, whatever part it is.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass
from typing import NamedTuple


class Output(NamedTuple):
    """One record of an output topic."""

    topic: str
    order: int
    transaction: str
    #: How many orders the transaction says it has in each topic.
    orders_in_transaction: int


@dataclass(frozen=True, slots=True)
class Verdict:
    sent: int
    #: Orders of which there is at least one record in every output topic.
    arrived: int
    #: Orders of which at least one output topic has none.
    lost: int
    #: Records beyond the first of an order in a topic.
    duplicated: int
    #: Transactions of which only a part can be seen.
    torn: int
    #: Records of orders that nobody sent.
    unexpected: int
    #: Transactions that can be seen.
    transactions: int

    @property
    def problems(self) -> list[str]:
        counts = {
            "lost": self.lost,
            "duplicated": self.duplicated,
            "torn": self.torn,
            "never sent": self.unexpected,
        }
        return [f"{count:,} {what}" for what, count in counts.items() if count]


def judge(sent: Set[int], outputs: Iterable[Output], topics: Collection[str]) -> Verdict:
    orders = {topic: Counter[int]() for topic in topics}
    transactions: dict[str, dict[str, Counter[int]]] = defaultdict(lambda: {topic: Counter() for topic in topics})
    sizes: dict[str, int] = {}
    for output in outputs:
        orders[output.topic][output.order] += 1
        transactions[output.transaction][output.topic][output.order] += 1
        sizes[output.transaction] = output.orders_in_transaction
    lost = {order for counts in orders.values() for order in sent - counts.keys()}
    return Verdict(
        sent=len(sent),
        arrived=len(sent) - len(lost),
        lost=len(lost),
        duplicated=sum(count - 1 for counts in orders.values() for count in counts.values()),
        torn=sum(not _is_whole(parts, sizes[transaction]) for transaction, parts in transactions.items()),
        unexpected=sum(count for counts in orders.values() for order, count in counts.items() if order not in sent),
        transactions=len(transactions),
    )


def _is_whole(parts: dict[str, Counter[int]], size: int) -> bool:
    """The same orders in every topic, as many as the transaction said it has."""
    first, *others = parts.values()
    return first.total() == size and all(part == first for part in others)
