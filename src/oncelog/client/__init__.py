"""Talking to brokers from outside: Oncelog's, or Apache Kafka's. Knows nothing of how a broker is built inside."""
