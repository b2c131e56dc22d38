"""Where something listens: a host and a port, as people write them."""

from typing import NamedTuple


class BadAddress(ValueError):
    """No address anybody can use; says what one looks like."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadAddress(f"{text} is no HOST:PORT: put an IPv6 address into brackets, as in [::1]:9092")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise BadAddress(f"{text} is no HOST:PORT, as in 127.0.0.1:9092 (port 0 picks a free one)")
    return Address(host, int(port))
