"""SaslHandshake (17): choose the mechanism to authenticate with."""

from oncelog.protocol.schema import i16, request, response


@request(key=17, versions=(0, 1), flexible_since=None)
class SaslHandshakeRequest:
    """After v0 the mechanism's raw bytes follow; after v1 they travel in SaslAuthenticate (KIP-152)."""

    mechanism: str = ""


@response(to=SaslHandshakeRequest)
class SaslHandshakeResponse:
    error_code: i16 = 0
    mechanisms: list[str] = []
