"""Who is asking: what a handler may know of the connection a request came in on."""


class Caller:
    __slots__ = ("principal", "host", "client_id", "client_software", "connection_id", "listener")

    def __init__(self, host: str, connection_id: int, listener: str) -> None:
        self.principal = "User:ANONYMOUS"
        self.host = host
        self.client_id = ""
        self.client_software = "unknown"
        self.connection_id = connection_id
        self.listener = listener
