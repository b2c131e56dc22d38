"""A group member that a test kills: prints its partitions as a JSON list whenever they change.

python member_process.py BOOTSTRAP GROUP TOPIC CONFIG_JSON
"""

import json
import sys

import confluent_kafka


def main() -> None:
    bootstrap, group, topic, config = sys.argv[1:]
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **json.loads(config)}
    )
    consumer.subscribe([topic])
    shown = None
    while True:
        consumer.poll(0.05)
        partitions = sorted(at.partition for at in consumer.assignment())
        if partitions != shown:
            print(json.dumps(partitions), flush=True)
            shown = partitions


if __name__ == "__main__":
    main()
