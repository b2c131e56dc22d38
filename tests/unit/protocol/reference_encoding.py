"""The protocol written out plainly, field after field: slow, short enough to be read against KIP-482, and independent of the
compiler. It can put tagged fields nobody knows into every struct, as a newer peer would.
"""

import struct
from typing import Any

from oncelog.protocol.schema import Field, Message, WireType, schema_of


def reference_encode(message: Message, version: int, unknown_tags: dict[int, bytes] | None = None) -> bytes:
    flexible = version >= schema_of(type(message)).flexible_since
    return _Reference(version, flexible, unknown_tags or {}).message(message)


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return bytes([value])
    return bytes([value & 0x7F | 0x80]) + uvarint(value >> 7)


class _Reference:
    def __init__(self, version: int, flexible: bool, unknown_tags: dict[int, bytes]) -> None:
        self.version = version
        self.flexible = flexible
        self.unknown_tags = unknown_tags

    def message(self, message: Message) -> bytes:
        schema = schema_of(type(message))
        out = b""
        for field in schema.fields_in(self.version):
            out += self.value(field.type, getattr(message, field.name), self.version >= field.nullable_since)
        return out + (self.tagged_section(message, schema.tagged_in(self.version)) if self.flexible else b"")

    def tagged_section(self, message: Message, fields: list[Field]) -> bytes:
        tags = dict(self.unknown_tags)
        for field in fields:
            value = getattr(message, field.name)
            default = field.type.struct() if field.type.struct is not None else field.default
            if value is not None and value != default:
                assert field.tag is not None
                tags[field.tag] = self.value(field.type, value, nullable=False)
        out = uvarint(len(tags))
        for tag in sorted(tags):
            out += uvarint(tag) + uvarint(len(tags[tag])) + tags[tag]
        return out

    def value(self, type_: WireType, value: Any, nullable: bool) -> bytes:
        if type_.struct is not None:
            if value is None:
                return b"\xff"
            return (b"\x01" if nullable else b"") + self.message(value)
        if type_.element is not None:
            if value is None:
                return self.length(-1, ">i")
            return self.length(len(value), ">i") + b"".join(self.value(type_.element, item, False) for item in value)
        assert type_.primitive is not None
        if type_.primitive.code:
            return struct.pack(">" + type_.primitive.code, value)
        size_format = ">h" if type_.primitive.name == "string" else ">i"
        if value is None:
            return self.length(-1, size_format)
        content = value.encode() if isinstance(value, str) else bytes(value)
        return self.length(len(content), size_format) + content

    def length(self, length: int, fixed: str) -> bytes:
        return uvarint(length + 1) if self.flexible else struct.pack(fixed, length)
