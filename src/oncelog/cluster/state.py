"""The cluster's metadata as one node sees it: topics, configs that were set at run time, producer ids that are taken.

Only `apply` (records.py) writes into it, live and on reload alike.
"""

from oncelog.cluster.topic import Topic
from oncelog.cluster.topic_names import collision_key
from oncelog.model.topic_id import TopicId

#: The name under which configs for all brokers are kept; a broker's own stand under its id.
ALL_BROKERS = ""


class Cluster:
    __slots__ = ("cluster_id", "brokers", "topics", "by_id", "broker_configs", "next_producer_id", "_colliding")

    def __init__(self) -> None:
        self.cluster_id = ""
        #: Ids of the brokers that partitions can be placed on, in order.
        self.brokers: tuple[int, ...] = ()
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[TopicId, Topic] = {}
        self.broker_configs: dict[str, dict[str, str]] = {}
        #: The first producer id that no broker has reserved yet.
        self.next_producer_id = 0
        # Every name with "." or "_" under what it becomes when the two are the same letter.
        self._colliding: dict[str, str] = {}

    def copy(self) -> "Cluster":
        """A draft to decide on: what is applied to it does not touch the original."""
        draft = Cluster()
        draft.cluster_id = self.cluster_id
        draft.brokers = self.brokers
        draft.topics = self.topics.copy()
        draft.by_id = self.by_id.copy()
        draft.broker_configs = self.broker_configs.copy()
        draft.next_producer_id = self.next_producer_id
        draft._colliding = self._colliding.copy()
        return draft

    def colliding_topic(self, name: str) -> str | None:
        """The existing topic whose name differs from this one only in "." against "_"."""
        key = collision_key(name)
        return self._colliding.get(key) if key is not None else None

    def put_topic(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.by_id[topic.topic_id] = topic
        key = collision_key(topic.name)
        if key is not None:
            self._colliding.setdefault(key, topic.name)

    def remove_topic(self, name: str) -> None:
        topic = self.topics.pop(name)
        del self.by_id[topic.topic_id]
        key = collision_key(name)
        if key is not None and self._colliding.get(key) == name:
            del self._colliding[key]
