"""From a message class and a version to a Python function that writes exactly that.

The generated code appends to one `bytearray`, which already holds what comes before (a frame's size and header). Neighbouring
fields of fixed size, empty tagged sections (zero bytes) and a short length that follows them go out with one `struct` call.
Large record batches are not copied: the function returns a list of parts, and such a batch is a part of its own.
"""

from collections.abc import Callable
from struct import Struct, pack
from typing import Any

from oncelog.model.bytes_like import BytesLike
from oncelog.protocol.schema import Field, Schema, WireType, schema_of
from oncelog.protocol.varint import encode_uvarint

Encoder = Callable[[Any, bytearray], list[BytesLike]]

#: Up to this size a copy is cheaper than one more buffer to send.
_COPIED_UP_TO = 4096


def compile_encoder(cls: type, version: int) -> Encoder:
    names: dict[str, Any] = {}
    exec(encoder_source(cls, version, names), names)
    encoder: Encoder = names["write"]
    return encoder


def encoder_source(cls: type, version: int, names: dict[str, Any]) -> str:
    """The source of the encoder; what it refers to is put into `names`."""
    return _EncoderSource(schema_of(cls), version, names).function(cls)


class _EncoderSource:
    def __init__(self, schema: Schema, version: int, names: dict[str, Any]) -> None:
        self.version = version
        self.flexible = version >= schema.flexible_since
        self.names = names
        self.lines: list[str] = []
        self.depth = 1
        self.variables = 0
        # Fixed-size writes not yet written out: the expression (empty for a constant zero byte) and its format letter.
        self.run: list[tuple[str, str]] = []
        names.update(encode_uvarint=encode_uvarint, pack=pack)

    def function(self, cls: type) -> str:
        self.lines.append("def write(m, out):")
        self.line("parts = []")
        self.struct(cls, "m")
        self.flush()
        self.line("parts.append(out)")
        self.line("return parts")
        return "\n".join(self.lines)

    # -- writing lines

    def line(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def variable(self, stem: str) -> str:
        self.variables += 1
        return f"{stem}{self.variables}"

    def packed(self, run: list[tuple[str, str]]) -> str:
        codes = "".join(code for _, code in run)
        packer = "pack_" + codes.replace("?", "o")
        self.names[packer] = Struct(">" + codes).pack
        return f"{packer}({', '.join(expression for expression, _ in run if expression)})"

    def flush(self) -> None:
        if self.run:
            if all(not expression for expression, _ in self.run):
                self.line(f"out += {bytes(len(self.run))!r}")
            else:
                self.line(f"out += {self.packed(self.run)}")
            self.run.clear()

    def length(self, expression: str, fixed_code: str) -> None:
        """Write a length: as a varint, one more than it is, in flexible versions, else as an integer. Null is -1 in both."""
        if not self.flexible:
            self.run.append((expression, fixed_code))
            self.flush()
            return
        self.line(f"n = {expression} + 1")
        if self.run:
            short, long = self.packed([*self.run, ("n", "B")]), self.packed(self.run)
            self.line(f"out += {short} if n < 128 else {long} + encode_uvarint(n)")
            self.run.clear()
        else:
            self.line("if n < 128: out.append(n)")
            self.line("else: out += encode_uvarint(n)")

    # -- structs

    def struct(self, cls: type, variable: str) -> None:
        schema = schema_of(cls)
        for field in schema.fields_in(self.version):
            self.value(field.type, self.version >= field.nullable_since, f"{variable}.{field.name}")
        if not self.flexible:
            return
        tagged = schema.tagged_in(self.version)
        if tagged:
            self.known_tags(tagged, variable)
        else:
            self.run.append(("", "x"))

    def known_tags(self, tagged: list[Field], variable: str) -> None:
        conditions = [self.differs_from_default(field, variable) for field in tagged]
        run, self.run = self.run, []
        self.line(f"if {' or '.join(conditions)}:")
        self.depth += 1
        self.run = list(run)
        self.flush()
        rest, tags = self.variable("rest"), self.variable("tags")
        self.line(f"{rest} = out")
        self.line(f"{tags} = 0")
        self.line("out = bytearray()")
        for field, condition in zip(tagged, conditions, strict=True):
            self.line(f"if {condition}:")
            self.depth += 1
            self.tagged_field(field, variable)
            self.line(f"{tags} += 1")
            self.depth -= 1
        self.line(f"{rest} += encode_uvarint({tags})")
        self.line(f"{rest} += out")
        self.line(f"out = {rest}")
        self.depth -= 1
        self.line("else:")
        self.depth += 1
        self.run = [*run, ("", "x")]
        self.flush()
        self.depth -= 1

    def tagged_field(self, field: Field, variable: str) -> None:
        before = self.variable("before")
        self.line(f"{before} = out")
        self.line("out = bytearray()")
        nullable = field.type.struct is None and self.version >= field.nullable_since
        self.value(field.type, nullable, f"{variable}.{field.name}")
        self.flush()
        self.line(f"{before} += encode_uvarint({field.tag}) + encode_uvarint(len(out)) + out")
        self.line(f"out = {before}")

    def differs_from_default(self, field: Field, variable: str) -> str:
        value = f"{variable}.{field.name}"
        if field.type.struct is not None:
            # Sending a struct that says nothing new is legal but not what Kafka does.
            default = f"default_{schema_of(field.type.struct).name}"
            self.names[default] = field.type.struct()
            return f"({value} is not None and {value} != {default})"
        if field.default is None:
            return f"{value} is not None"
        if isinstance(field.default, list) or not field.default:
            return value
        if isinstance(field.default, int):
            return f"{value} != {field.default!r}"
        default = f"default_{field.name}"
        self.names[default] = field.default
        return f"{value} != {default}"

    # -- values

    def value(self, type_: WireType, nullable: bool, source: str) -> None:
        primitive = type_.primitive
        if primitive is not None and primitive.code:
            self.run.append((source, primitive.code))
        elif primitive is not None:
            self.sized(primitive.name, nullable, source)
        elif type_.struct is not None:
            self.nested(type_.struct, nullable, source)
        elif type_.element is not None:
            self.array(type_.element, nullable, source)

    def sized(self, kind: str, nullable: bool, source: str) -> None:
        encoded = f"{source}.encode()" if kind == "string" else source
        code = "h" if kind == "string" else "i"
        if nullable:
            self.line(f"v = {source}")
            self.line("if v is None: v = b''; n = -1")
            self.line("else: v = v.encode(); n = len(v)" if kind == "string" else "else: n = len(v)")
            self.length("n", code)
        else:
            self.line(f"v = {encoded}")
            self.length("len(v)", code)
        if kind == "records":
            self.line(f"if len(v) > {_COPIED_UP_TO}:")
            self.line(" parts.append(out); parts.append(v); out = bytearray()")
            self.line("else: out += v")
        else:
            self.line("out += v")

    def nested(self, cls: type, nullable: bool, source: str) -> None:
        variable = self.variable("s")
        self.line(f"{variable} = {source}")
        if not nullable:
            self.struct(cls, variable)
            return
        self.flush()
        self.line(f"if {variable} is None: out.append(255)")
        self.line("else:")
        self.depth += 1
        self.run.append(("1", "b"))
        self.struct(cls, variable)
        self.flush()
        self.depth -= 1

    def array(self, element: WireType, nullable: bool, source: str) -> None:
        items = self.variable("items")
        self.line(f"{items} = {source}")
        if nullable:
            self.line(f"if {items} is None: {items} = (); n = -1")
            self.line(f"else: n = len({items})")
            self.length("n", "i")
        else:
            self.length(f"len({items})", "i")
        if element.primitive is not None and element.primitive.is_number:
            self.line(f"if {items}: out += pack(f'>{{len({items})}}{element.primitive.code}', *{items})")
            return
        item = self.variable("s")
        self.line(f"for {item} in {items}:")
        self.depth += 1
        if element.struct is not None:
            self.struct(element.struct, item)
        else:
            self.value(element, element.nullable, item)
        self.flush()
        self.depth -= 1
