"""SaslAuthenticate (36): one step of a mechanism's exchange."""

from typing import Annotated

from oncelog.protocol.schema import i16, i64, request, response, since


@request(key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest:
    auth_bytes: bytes = b""


@response(to=SaslAuthenticateRequest)
class SaslAuthenticateResponse:
    error_code: i16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    # KIP-368: authenticate again within this time; 0: never.
    session_lifetime_ms: Annotated[i64, since(1)] = 0
