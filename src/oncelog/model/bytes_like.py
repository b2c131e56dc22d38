"""Any contiguous run of bytes: what arrives in a connection's buffer is a memoryview, what is read from a file is bytes."""

from typing import TypeAlias

BytesLike: TypeAlias = bytes | bytearray | memoryview
