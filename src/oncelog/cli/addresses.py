"""Where to listen and what to tell clients: from the command line, or from Kafka's `listeners` settings."""

from oncelog.broker.config import BrokerConfig
from oncelog.model.address import Address, BadAddress, parse_address

#: Listening on these means listening everywhere: no client can connect to such an address.
EVERYWHERE = ("0.0.0.0", "::")


def listen_address(config: BrokerConfig) -> Address:
    """The one listener of `listeners` that clients use."""
    protocols = {}
    for entry in config.listener_security_protocol_map.replace(" ", "").split(","):
        name, _, protocol = entry.partition(":")
        protocols[name] = protocol
    found = []
    for listener in config.listeners:
        name, separator, address = listener.partition("://")
        if not separator:
            raise BadAddress(f"listeners={listener} is no NAME://HOST:PORT, as in PLAINTEXT://127.0.0.1:9092")
        if name in config.controller_listener_names:
            continue
        protocol = protocols.get(name, name)
        if protocol != "PLAINTEXT":
            raise BadAddress(f"listeners={listener}: {protocol} is not served yet, only PLAINTEXT")
        found.append(parse_address(address))
    if len(found) != 1:
        raise BadAddress(f"listeners={','.join(config.listeners)}: a broker has one listener for clients here")
    return found[0]


def advertised_address(config: BrokerConfig, listen: Address) -> Address | None:
    """What clients are told to connect to; None where that is simply where the broker listens."""
    for listener in config.advertised_listeners or ():
        name, separator, address = listener.partition("://")
        if not separator:
            raise BadAddress(f"advertised.listeners={listener} is no NAME://HOST:PORT")
        if name not in config.controller_listener_names:
            return parse_address(address)
    if not listen.host:
        import socket

        # As Kafka does for a listener without a host.
        return Address(socket.getfqdn(), listen.port) if listen.port else None
    if listen.host in EVERYWHERE:
        raise BadAddress(
            f"listening on {listen} needs --advertised HOST:PORT: the address clients reach this broker at"
        )
    return None
