"""The log of one partition: segments and their indexes, producer state, last stable offset, retention, recovery.

Pure: bytes go to and come from a disk through the port in `storage`; the time is always an argument. `partition_log` is the front,
everything else is a part of it. The files are Apache Kafka's, byte for byte (docs/decisions/0004-log-layout.md).
"""
