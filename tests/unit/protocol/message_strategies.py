"""Random messages of any class in any version, drawn from the class's own schema.

Values stay within what the oracles can represent: kio turns error codes into an enum, and times into datetime and timedelta.
"""

from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from oncelog.model.error_code import ErrorCode
from oncelog.protocol.apis import APIS
from oncelog.protocol.schema import Field, WireType, schema_of

ALL_MESSAGES: list[tuple[type[Any], int]] = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in range(api.versions[0], api.versions[1] + 1)
]

#: A few examples each: there are hundreds of (class, version) pairs. Messages are small, and shrinking one takes minutes.
BUDGET = settings(
    max_examples=5,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

_ERROR_CODES = st.sampled_from([int(code) for code in ErrorCode])
# Whole seconds, up to the year 5000.
_TIMES = st.integers(0, 95_000_000_000).map(lambda seconds: seconds * 1000)
_INTEGERS = {
    name: st.one_of(st.sampled_from([low, -1, 0, 1, high]), st.integers(low, high)).filter(lambda n, low=low: n >= low)
    for name, low, high in (
        ("i8", -(2**7), 2**7 - 1),
        ("i16", -(2**15), 2**15 - 1),
        ("i32", -(2**31), 2**31 - 1),
        ("i64", -(2**63), 2**63 - 1),
        ("u32", 0, 2**32 - 1),
    )
}
# Most strings are short; some need a two-byte length.
_TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=8), st.integers(120, 140).map(lambda n: "n" * n), st.just("")
)
_BYTES = st.one_of(st.binary(max_size=12), st.integers(120, 140).map(bytes))
_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    **_INTEGERS,
    "bool": st.booleans(),
    "f64": st.floats(allow_nan=False, allow_infinity=False),
    "uuid": st.one_of(st.just(bytes(16)), st.binary(min_size=16, max_size=16)),
    "string": _TEXT,
    "bytes": _BYTES,
    "records": _BYTES,
}


def named(message: tuple[type, int]) -> str:
    return f"{message[0].__name__}-{message[1]}"


@cache
def messages(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Instances whose every field of this version is drawn; fields of other versions keep their default."""
    fields = schema_of(cls).fields_in(version) + schema_of(cls).tagged_in(version)
    return st.fixed_dictionaries({field.name: _field_values(field, version) for field in fields}).map(
        lambda values: cls(**values)
    )


def _field_values(field: Field, version: int) -> st.SearchStrategy[Any]:
    name = field.name
    if name.endswith("error_code"):
        values: st.SearchStrategy[Any] = _ERROR_CODES
    elif ("time" in name or name == "duration_filter") and field.type.primitive is not None and _is_i64(field.type):
        values = st.one_of(st.just(field.default), _TIMES)
    else:
        values = _values(field.type, version)
    if field.tag is not None:
        # A default is not sent; a tagged struct that was not sent is None.
        if field.type.struct is not None:
            unsent = field.type.struct()
            values = values.map(lambda value: None if value == unsent else value)
        return st.one_of(st.just(field.default), values)
    return st.one_of(st.none(), values) if version >= field.nullable_since else values


def _values(type_: WireType, version: int) -> st.SearchStrategy[Any]:
    if type_.primitive is not None:
        return _PRIMITIVES[type_.primitive.name]
    if type_.struct is not None:
        return messages(type_.struct, version)
    assert type_.element is not None
    return st.lists(_values(type_.element, version), max_size=3)


def _is_i64(type_: WireType) -> bool:
    return type_.primitive is not None and type_.primitive.name == "i64"
