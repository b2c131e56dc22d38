"""Oncelog, the exactly-once log: a broker that speaks the Kafka protocol, on its own or inside your process.

    import oncelog

    with oncelog.embedded() as broker:
        print(broker.bootstrap_servers)

Importing this package costs next to nothing: the broker is loaded when `embedded` is first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oncelog.broker.embedded import EmbeddedBroker as EmbeddedBroker
    from oncelog.broker.embedded import embedded as embedded

__version__ = "0.1.0"
__all__ = ["EmbeddedBroker", "__version__", "embedded"]


def __getattr__(name: str) -> Any:
    if name in ("embedded", "EmbeddedBroker"):
        from oncelog.broker import embedded as module

        return getattr(module, name)
    raise AttributeError(f"module 'oncelog' has no attribute {name!r}")
