"""server.properties files are read as java.util.Properties reads them: EXPECTED is what Java made of TRICKY."""

import pytest

from oncelog.broker.properties_file import read_properties

TRICKY = r"""# a comment \
! another
plain=value
  indented = spaced value  
colon:value
space value with spaces
tab	value
empty=
alone
escaped\ name=v
escaped\=equals=v
escaped\:colon : v
continued=one,\
          two,\
	three
even=backslashes\\
odd=then\\\
  more
unicode=\u00e9\u4e2d
latin=é
tabbed=a\tb\nc
other=\a\b\q
equals = = twice
colonequals := x
blankcontinue=a\

after=b
plain=last wins
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
=noname
#end=\
x=not a comment
"""  # noqa: W291

EXPECTED = {
    "": "noname",
    "after": "b",
    "alone": "",
    "blankcontinue": "a",
    "colon": "value",
    "colonequals": "= x",
    "continued": "one,two,three",
    "empty": "",
    "equals": "= twice",
    "escaped name": "v",
    "escaped:colon": "v",
    "escaped=equals": "v",
    "even": "backslashes\\",
    "indented": "spaced value  ",
    "latin": "é",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "odd": "then\\more",
    "other": "abq",
    "plain": "last wins",
    "space": "value with spaces",
    "tab": "value",
    "tabbed": "a\tb\nc",
    "unicode": "é中",
    "x": "not a comment",
}


def test_a_file_is_read_as_java_reads_it():
    assert read_properties(TRICKY.encode()) == EXPECTED


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_line_ends_of_other_systems(line_end: str):
    assert read_properties(TRICKY.replace("\n", line_end).encode()) == EXPECTED


def test_latin_1_is_read_where_it_is_no_utf_8():
    assert read_properties(b"rack=Z\xfcrich") == {"rack": "Zürich"}


def test_a_broken_escape_is_an_error():
    with pytest.raises(ValueError, match="malformed"):
        read_properties(rb"rack=\u12")


def test_nothing_is_nothing():
    assert read_properties(b"") == {}
