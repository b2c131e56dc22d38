"""From a message class and a version to a Python function that reads exactly that.

The generated code walks the frame once. Neighbouring fields of fixed size, and the first byte (or all) of a length that follows
them, are taken with one `struct` call; structs are written out in place, so a message is one function without inner calls. What a
length claims is compared with what is left of the frame before anything is allocated for it. Running off the end surfaces as
IndexError or struct.error and leaves as Malformed, so the usual case pays for no check of its own.

`p` is where we read, `end` is behind the frame. A message that can hold records is read through a memoryview, so that they are
slices of the caller's own buffer; any other is copied to `bytes` first, from which strings are taken faster.
"""

from collections.abc import Callable
from struct import Struct, error, unpack_from
from typing import Any

from oncelog.model.bytes_like import BytesLike
from oncelog.protocol.malformed import Malformed
from oncelog.protocol.schema import Field, Message, Schema, WireType, schema_of
from oncelog.protocol.varint import finish_uvarint, read_tag, skip_tagged_fields

Decoder = Callable[[BytesLike, int], Any]


def _bad_length(path: str, length: int) -> Malformed:
    return Malformed(f"{path}: a length of {length} cannot be here")


def _cut_short(name: str, version: int) -> Malformed:
    return Malformed(f"{name} version {version} ends before its last field")


def _not_text(name: str, version: int) -> Malformed:
    return Malformed(f"{name} version {version} has a string that is not UTF-8")


def compile_decoder(cls: type, version: int) -> Decoder:
    names: dict[str, Any] = {}
    exec(decoder_source(cls, version, names), names)
    decoder: Decoder = names["read"]
    return decoder


def decoder_source(cls: type, version: int, names: dict[str, Any]) -> str:
    """The source of the decoder; what it refers to is put into `names`."""
    return _DecoderSource(schema_of(cls), version, names).function(cls)


class _DecoderSource:
    def __init__(self, schema: Schema, version: int, names: dict[str, Any]) -> None:
        self.schema = schema
        self.version = version
        self.flexible = version >= schema.flexible_since
        self.has_records = _has_records(schema, version)
        self.names = names
        self.lines: list[str] = []
        self.depth = 2
        self.variables = 0
        # Fixed-size reads not yet written out: where each goes, and its format letter.
        self.run: list[tuple[str, str]] = []
        names.update(
            new=object.__new__, bad_length=_bad_length, cut_short=_cut_short, not_text=_not_text, struct_error=error,
            finish_uvarint=finish_uvarint, read_tag=read_tag, skip_tagged_fields=skip_tagged_fields, unpack_from=unpack_from,
        )  # fmt: skip

    def function(self, cls: type) -> str:
        self.struct(cls, "m", self.schema.name)
        self.flush()
        # Bytes behind the last field are no error: Kafka's brokers do not look at them either.
        self.line("return m")
        raw = "memoryview" if self.has_records else "bytes"
        head = [
            "def read(raw, p=0):",
            f" if raw.__class__ is not {raw}: raw = {raw}(raw)",
            " end = len(raw)",
            " try:",
        ]
        whose = f"({self.schema.name!r}, {self.version}) from None"
        tail = [
            f" except (IndexError, struct_error): raise cut_short{whose}",
            f" except UnicodeDecodeError: raise not_text{whose}",
        ]
        return "\n".join(head + self.lines + tail)

    # -- writing lines

    def line(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def variable(self, stem: str) -> str:
        self.variables += 1
        return f"{stem}{self.variables}"

    def flush(self) -> None:
        if not self.run:
            return
        codes = "".join(code for _, code in self.run)
        targets = ", ".join(target for target, _ in self.run)
        if codes == "B":
            self.line(f"{targets} = raw[p]")
            self.line("p += 1")
        else:
            layout = Struct(">" + codes)
            unpack = "unpack_" + codes.replace("?", "o")
            self.names[unpack] = layout.unpack_from
            self.line(f"{targets}{',' if len(self.run) == 1 else ''} = {unpack}(raw, p)")
            self.line(f"p += {layout.size}")
        self.run.clear()

    def length(self, fixed_code: str) -> None:
        """Read a length into `n`: as varint plus one in flexible versions, else as an integer. -1 is null in both, after this."""
        self.run.append(("n", "B" if self.flexible else fixed_code))
        self.flush()
        if self.flexible:
            self.line("if n > 127: n, p = finish_uvarint(raw, p, n)")
            self.line("n -= 1")

    # -- structs

    def struct(self, cls: type, variable: str, path: str) -> None:
        schema = schema_of(cls)
        made = f"new_{schema.name}"
        self.names[made] = cls
        self.line(f"{variable} = new({made})")
        in_line = schema.fields_in(self.version)
        tagged = schema.tagged_in(self.version) if self.flexible else []
        for field in schema.fields:
            if field not in in_line:
                self.default(field, variable, path)
        for field in in_line:
            self.value(field.type, self.is_nullable(field), f"{variable}.{field.name}", f"{path}.{field.name}")
        if self.flexible:
            self.tagged_section(tagged, variable, path)

    def default(self, field: Field, variable: str, path: str) -> None:
        target = f"{variable}.{field.name}"
        if isinstance(field.default, list):
            self.line(f"{target} = []")
        elif isinstance(field.default, Message):
            made = f"new_{schema_of(type(field.default)).name}"
            self.names[made] = type(field.default)
            self.line(f"{target} = {made}()")
        elif field.default is None or isinstance(field.default, (int, str)):
            self.line(f"{target} = {field.default!r}")
        else:
            constant = "default_" + path.replace(".", "_") + "_" + field.name
            self.names[constant] = field.default
            self.line(f"{target} = {constant}")

    def tagged_section(self, tagged: list[Field], variable: str, path: str) -> None:
        count = self.variable("t")
        self.run.append((count, "B"))
        self.flush()
        if not tagged:
            self.line(f"if {count}: p = skip_tagged_fields(raw, p, {count}, end)")
            return
        self.line(f"if {count}:")
        self.depth += 1
        self.known_tags(tagged, count, variable, path)
        self.depth -= 1

    def known_tags(self, tagged: list[Field], count: str, variable: str, path: str) -> None:
        stop = self.variable("stop")
        self.line(f"if {count} > 127: {count}, p = finish_uvarint(raw, p, {count})")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.line(f"tag, p, {stop} = read_tag(raw, p, end)")
        keyword = "if"
        for field in tagged:
            self.line(f"{keyword} tag == {field.tag}:")
            self.depth += 1
            self.value(field.type, self.is_tag_nullable(field), f"{variable}.{field.name}", f"{path}.{field.name}")
            self.flush()
            self.line(f"if p != {stop}: raise bad_length('{path}.{field.name}', p - {stop})")
            self.depth -= 1
            keyword = "elif"
        self.line(f"else: p = {stop}")
        self.depth -= 1

    def is_nullable(self, field: Field) -> bool:
        return self.version >= field.nullable_since

    def is_tag_nullable(self, field: Field) -> bool:
        # A tagged struct is None only by not being sent.
        return field.type.struct is None and self.is_nullable(field)

    # -- values

    def value(self, type_: WireType, nullable: bool, target: str, path: str) -> None:
        primitive = type_.primitive
        if primitive is not None and primitive.code:
            self.run.append((target, primitive.code))
        elif primitive is not None:
            self.sized(primitive.name, nullable, target, path)
        elif type_.struct is not None:
            self.nested(type_.struct, nullable, target, path)
        elif type_.element is not None:
            self.array(type_.element, nullable, target, path)

    def sized(self, kind: str, nullable: bool, target: str, path: str) -> None:
        self.length("h" if kind == "string" else "i")
        if nullable:
            self.line(f"if n == -1: {target} = None")
            self.line("else:")
            self.depth += 1
        self.line("e = p + n")
        self.line(f"if not p <= e <= end: raise bad_length({path!r}, n)")
        copied = "raw[p:e].tobytes()" if self.has_records else "raw[p:e]"
        taken = {"string": f"{copied}.decode()", "bytes": copied, "records": "raw[p:e]"}
        self.line(f"{target} = {taken[kind]}")
        self.line("p = e")
        if nullable:
            self.depth -= 1

    def nested(self, cls: type, nullable: bool, target: str, path: str) -> None:
        variable = self.variable("s")
        if nullable:
            self.run.append(("n", "b"))
        self.flush()
        if nullable:
            self.line(f"if n == -1: {target} = None")
            self.line(f"elif n != 1: raise bad_length({path!r}, n)")
            self.line("else:")
            self.depth += 1
        self.struct(cls, variable, path)
        self.flush()
        self.line(f"{target} = {variable}")
        if nullable:
            self.depth -= 1

    def array(self, element: WireType, nullable: bool, target: str, path: str) -> None:
        self.length("i")
        if nullable:
            self.line(f"if n == -1: {target} = None")
            self.line("else:")
            self.depth += 1
        smallest = smallest_size(element, self.version, self.flexible)
        needed = "n" if smallest == 1 else f"n * {smallest}"
        self.line(f"if not 0 <= {needed} <= end - p: raise bad_length({path!r}, n)")
        if element.primitive is not None and element.primitive.is_number:
            self.line(f"{target} = list(unpack_from(f'>{{n}}{element.primitive.code}', raw, p))")
            self.line(f"p += {needed}")
        else:
            self.elements(element, target, path)
        if nullable:
            self.depth -= 1

    def elements(self, element: WireType, target: str, path: str) -> None:
        items, item, left = self.variable("items"), self.variable("s"), self.variable("left")
        self.line(f"{target} = {items} = []")
        self.line(f"{left} = n")
        self.line(f"while {left}:")
        self.depth += 1
        self.line(f"{left} -= 1")
        if element.struct is not None:
            self.struct(element.struct, item, path)
        else:
            self.value(element, element.nullable, item, path)
        self.flush()
        self.line(f"{items}.append({item})")
        self.depth -= 1


def smallest_size(type_: WireType, version: int, flexible: bool) -> int:
    """The fewest bytes a value of this type can take: what a claimed array length is multiplied with. Never zero."""
    if type_.primitive is not None:
        sizes = {"string": 2, "bytes": 4, "records": 4}
        return type_.primitive.size or (1 if flexible else sizes[type_.primitive.name])
    if type_.element is not None:
        return 1 if flexible else 4
    if type_.struct is None or type_.nullable:
        return 1
    fields = schema_of(type_.struct).fields_in(version)
    return max(1, sum(smallest_size(field.type, version, flexible) for field in fields) + flexible)


def _has_records(schema: Schema, version: int) -> bool:
    """Whether a records field can be in this version, at any depth."""
    for field in schema.fields_in(version):
        type_ = field.type.element or field.type
        if type_.primitive is not None and type_.primitive.name == "records":
            return True
        if type_.struct is not None and _has_records(schema_of(type_.struct), version):
            return True
    return False
