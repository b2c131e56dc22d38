"""One file per question. Each prints a table and says what it compares with; `python -m benchmarks` asks them all.

A number of this machine at this hour says little, so every goal is a ratio of two things measured in one run, in
turns: the broker and a floor server that does only what no broker can avoid (`floor.py`), or the broker and Apache
Kafka (`peer.py`).
"""
