"""What the cluster consists of: topics, where their partitions live, configs, producer ids. State and decisions, pure."""
