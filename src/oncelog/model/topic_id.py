"""A topic's id: sixteen bytes on the wire, url-safe base64 without padding wherever people read it (as Kafka prints it)."""

import base64
from typing import TypeAlias

TopicId: TypeAlias = bytes

NO_TOPIC_ID: TopicId = bytes(16)


def topic_id_text(topic_id: TopicId) -> str:
    return base64.urlsafe_b64encode(topic_id).decode("ascii").rstrip("=")


def topic_id_from_text(text: str) -> TopicId:
    return base64.urlsafe_b64decode(text + "==")
