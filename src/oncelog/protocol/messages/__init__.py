"""One file per API, both directions, one class for all versions. Names are those of Kafka's schemas, in snake case."""
