"""The vocabulary message classes are written in: a class's annotations are its schema.

A field is written in every version of its message, as its type says, unless its annotation says more:

    name: str = ""                                              # a string
    rack: str | None = None                                     # a string that may be null
    topic_id: Annotated[uuid, since(13)] = NO_ID                # from version 13 on
    name: Annotated[str, until(12)] = ""                        # up to version 12
    name: Annotated[str | None, nullable(since=10)] = ""        # may be null from version 10 on
    cluster_id: Annotated[str | None, tagged(0, since=12)] = None   # a tagged field (KIP-482): sent only if it is not its default

Every field has a default: what a reader finds in it when the version at hand does not have the field. A list (or struct) given as
default stands for a fresh one in each message. A tagged struct is None where it was not sent. A field the version does not have
is not written, whatever its value.

mypy sees plain types and a keyword constructor. At run time the decorators make slotted classes; constructors and codecs are
compiled when first used, so that importing a message costs next to nothing.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast, dataclass_transform

from oncelog.model.bytes_like import BytesLike

T = TypeVar("T")


class Primitive:
    """How a type goes over the wire. `code` is its `struct` format letter where its size is fixed."""

    __slots__ = ("name", "code", "size")

    def __init__(self, name: str, code: str = "", size: int = 0) -> None:
        self.name = name
        self.code = code
        self.size = size

    @property
    def is_number(self) -> bool:
        """Whether `struct` takes many of it with a count before its letter."""
        return len(self.code) == 1


_BOOL = Primitive("bool", "?", 1)
_STRING = Primitive("string")
_BYTES = Primitive("bytes")
_RECORDS = Primitive("records")

i8 = Annotated[int, Primitive("i8", "b", 1)]
i16 = Annotated[int, Primitive("i16", "h", 2)]
i32 = Annotated[int, Primitive("i32", "i", 4)]
i64 = Annotated[int, Primitive("i64", "q", 8)]
u32 = Annotated[int, Primitive("u32", "I", 4)]
f64 = Annotated[float, Primitive("f64", "d", 8)]
#: Sixteen raw bytes.
uuid = Annotated[bytes, Primitive("uuid", "16s", 16)]
#: Record batches, opaque here: decoded as a slice of the frame, encoded without a copy.
record_bytes = Annotated[BytesLike | None, _RECORDS]

NO_ID = bytes(16)
#: Tagged fields from this number on are Oncelog's own. Whoever does not know a tag skips it, so any client can read them.
OWN_TAGS_FROM = 10_000

_PLAIN_TYPES = {bool: _BOOL, str: _STRING, bytes: _BYTES}
_FOREVER = 32767


class since:
    """The field exists from this version on."""

    __slots__ = ("version",)

    def __init__(self, version: int) -> None:
        self.version = version


class until:
    """The field exists up to and including this version."""

    __slots__ = ("version",)

    def __init__(self, version: int) -> None:
        self.version = version


class nullable:
    """The field may be null from this version on; before, it may not, whatever its Python type says."""

    __slots__ = ("since",)

    def __init__(self, since: int) -> None:
        self.since = since


class tagged:
    """The field travels in the tagged section under this number, from this version on."""

    __slots__ = ("tag", "since")

    def __init__(self, tag: int, since: int) -> None:
        self.tag = tag
        self.since = since


class WireType:
    """The type of a field: a primitive, a struct class, or an array of one of these."""

    __slots__ = ("primitive", "struct", "element", "nullable")

    def __init__(
        self,
        primitive: Primitive | None = None,
        struct: "type[Message] | None" = None,
        element: "WireType | None" = None,
        nullable: bool = False,
    ) -> None:
        self.primitive = primitive
        self.struct = struct
        self.element = element
        self.nullable = nullable


class Field:
    """One field of a message class, as its annotation declares it."""

    __slots__ = ("name", "type", "since", "until", "nullable_since", "tag", "default")

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name = name
        self.type = _wire_type(annotation)
        self.default = default
        self.since = 0
        self.until = _FOREVER
        self.nullable_since = 0 if self.type.nullable else _FOREVER
        self.tag: int | None = None
        for word in getattr(annotation, "__metadata__", ()):
            if isinstance(word, since):
                self.since = word.version
            elif isinstance(word, until):
                self.until = word.version
            elif isinstance(word, nullable):
                self.nullable_since = word.since
            elif isinstance(word, tagged):
                self.tag, self.since = word.tag, word.since


def _wire_type(annotation: Any) -> WireType:
    for word in getattr(annotation, "__metadata__", ()):
        if isinstance(word, Primitive):
            return WireType(primitive=word, nullable=word is _RECORDS)
    annotation = getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    arguments = getattr(annotation, "__args__", ())
    if type(None) in arguments:
        inner = _wire_type(next(argument for argument in arguments if argument is not type(None)))
        inner.nullable = True
        return inner
    if arguments:
        return WireType(element=_wire_type(arguments[0]))
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return WireType(struct=annotation)
    return WireType(primitive=_PLAIN_TYPES[annotation])


class Schema:
    """What a decorator was told about a class; the fields are worked out when they are first asked for."""

    __slots__ = ("name", "key", "versions", "flexible_since", "defaults", "_annotations", "_fields")

    def __init__(self, cls: type, key: int | None, versions: tuple[int, int], flexible_since: int | None) -> None:
        self.name = cls.__name__
        self.key = key
        self.versions = versions
        self.flexible_since = _FOREVER if flexible_since is None else flexible_since
        self._annotations: dict[str, Any] = cls.__annotations__
        self.defaults = {name: cls.__dict__[name] for name in self._annotations}
        self._fields: list[Field] | None = None

    @property
    def fields(self) -> list[Field]:
        if self._fields is None:
            self._fields = [
                Field(name, annotation, self.defaults[name]) for name, annotation in self._annotations.items()
            ]
        return self._fields

    def fields_in(self, version: int) -> list[Field]:
        """The fields of this version that stand in line, in order: without the tagged ones."""
        return [field for field in self.fields if field.tag is None and field.since <= version <= field.until]

    def tagged_in(self, version: int) -> list[Field]:
        """The tagged fields of this version in the order they are written: by tag."""
        fields = [field for field in self.fields if field.tag is not None and field.since <= version <= field.until]
        return sorted(fields, key=lambda field: cast(int, field.tag))


class Message:
    """What every message class becomes at run time."""

    __slots__ = ()
    __schema__: Schema

    def __init__(self, **fields: Any) -> None:
        # The first message of a class brings its own constructor; from then on this one is out of the way.
        cls = type(self)
        cls.__init__ = _compile_constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, **fields)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__schema__.defaults)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__schema__.defaults)
        return f"{type(self).__name__}({fields})"


_GIVEN_NOTHING: Any = object()


def _compile_constructor(cls: type[Message]) -> Callable[..., None]:
    parameters: list[str] = []
    lines: list[str] = []
    names: dict[str, Any] = {"given_nothing": _GIVEN_NOTHING}
    for name, default in cls.__schema__.defaults.items():
        fresh = "[]" if isinstance(default, list) else f"new_{name}()" if isinstance(default, Message) else ""
        if fresh:
            names[f"new_{name}"] = type(default)
            parameters.append(f"{name}=given_nothing")
            lines.append(f" self.{name} = {fresh} if {name} is given_nothing else {name}")
        else:
            names[f"default_{name}"] = default
            parameters.append(f"{name}=default_{name}")
            lines.append(f" self.{name} = {name}")
    star = "*, " if parameters else ""
    source = f"def __init__(self, {star}{', '.join(parameters)}):\n" + "\n".join(lines or [" pass"])
    exec(source, names)
    constructor: Callable[..., None] = names["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor


def _declare(cls: type[T], key: int | None, versions: tuple[int, int], flexible_since: int | None) -> type[T]:
    schema = Schema(cls, key, versions, flexible_since)
    # Slots cannot be added to a class that is there already: make it again, with them in place of the defaults.
    left_out = {*schema.defaults, "__dict__", "__weakref__"}
    body = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    body.update(__slots__=tuple(schema.defaults), __schema__=schema, __qualname__=cls.__qualname__)
    return cast(type[T], type(cls.__name__, (Message,), body))


@dataclass_transform(kw_only_default=True)
def request(*, key: int, versions: tuple[int, int], flexible_since: int | None) -> Callable[[type[T]], type[T]]:
    """A request with its API key, the versions it has (both ends included), and the first flexible one (KIP-482)."""
    return lambda cls: _declare(cls, key, versions, flexible_since)


@dataclass_transform(kw_only_default=True)
def response(*, to: type) -> Callable[[type[T]], type[T]]:
    """The answer to a request: same key, same versions."""
    asked = schema_of(to)
    flexible_since = None if asked.flexible_since == _FOREVER else asked.flexible_since
    return lambda cls: _declare(cls, asked.key, asked.versions, flexible_since)


@dataclass_transform(kw_only_default=True)
def stored(*, versions: tuple[int, int], flexible_since: int | None = None) -> Callable[[type[T]], type[T]]:
    """Something with versions of its own that is no request: a key or value of an internal topic, an embedded protocol."""
    return lambda cls: _declare(cls, None, versions, flexible_since)


@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """A part of a message. Its versions are those of the message it is in."""
    return _declare(cls, None, (0, _FOREVER), None)


def schema_of(cls: type) -> Schema:
    return cast(Schema, cls.__schema__)  # type: ignore[attr-defined]
