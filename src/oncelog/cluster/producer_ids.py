"""Producer ids are handed out from blocks that are reserved in the store before the first of them is used.

What a broker forgets in a crash is the rest of a block, never that the block was taken: no id is given twice.
"""

from oncelog.cluster.records import Decision, ProducerIdsReserved
from oncelog.cluster.state import Cluster

BLOCK_SIZE = 1000


def decide_reserve_producer_ids(cluster: Cluster) -> Decision[range]:
    first = cluster.next_producer_id
    return Decision([ProducerIdsReserved(first + BLOCK_SIZE)], range(first, first + BLOCK_SIZE))
