"""A server.properties file: the syntax of java.util.Properties.

A comment starts with # or !; a name ends at the first =, : or space that has no backslash before it; a backslash at the end of a
line continues it; \\t \\n \\r \\f and \\uXXXX stand for characters, and a backslash before any other character for that character.
The last of several values of a name wins. Kafka reads these files as Latin-1; UTF-8 is what people write, so that is tried first.
"""

import re

_WHITESPACE = " \t\f"
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
#: The name (escapes count as part of it), then what parts it from the value.
_NAME = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)


def read_properties(data: bytes) -> dict[str, str]:
    """Raises ValueError for a malformed \\u escape."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    properties = {}
    for line in _logical_lines(text):
        matched = _NAME.match(line)
        assert matched is not None, "the pattern matches the empty text"
        properties[_unescape(matched[1])] = _unescape(line[matched.end() :])
    return properties


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    continued = False
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(_WHITESPACE)
        if not continued and (not line or line[0] in "#!"):
            continue
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        if goes_on:
            line = line[:-1]
        if continued:
            lines[-1] += line
        else:
            lines.append(line)
        continued = goes_on
    return lines


def _unescape(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        after = escape[1]
        if after.startswith("u") and len(after) == 5:
            return chr(int(after[1:], 16))
        if after == "u":
            raise ValueError(f"malformed \\u escape in {text!r}: four hexadecimal digits must follow")
        return _NAMED.get(after, after)

    return _ESCAPE.sub(character, text) if "\\" in text else text
