"""The question dispatch asks about every answered request: must this client be held back, and for how long?

The answer goes out as throttle_time_ms and the connection is muted for as long (MISSION P7). A broker without quotas runs
with `Unlimited`; token buckets per user and client id take its place behind the same call.
"""

from typing import Protocol


class Limits(Protocol):
    @property
    def unlimited(self) -> bool:
        """Nobody is ever held back: who is in a hurry need not ask."""
        ...

    def throttle_ms(self, principal: str, client_id: str, api_key: int, request_bytes: int) -> int: ...


class Unlimited:
    unlimited = True

    def throttle_ms(self, principal: str, client_id: str, api_key: int, request_bytes: int) -> int:
        return 0
