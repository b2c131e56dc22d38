"""The one thing a reader of untrusted bytes raises."""


class Malformed(ValueError):
    """These bytes are not what the protocol says they are: cut short, a length that cannot be, text that is not UTF-8."""
