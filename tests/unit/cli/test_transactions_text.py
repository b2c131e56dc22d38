"""How the tools read and write: durations, times, tables."""

import argparse

import pytest

from oncelog.cli.durations import format_duration, format_time, parse_duration
from oncelog.cli.tables import named_values, table


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("2h", 7_200_000), ("7d", 604_800_000)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, milliseconds: int):
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["15", "m", "", "1.5h", "-3s", "10 s", "5w", "3sm", "٣s"])
def test_what_is_no_duration_is_told_how_to_be_one(text: str):
    with pytest.raises(argparse.ArgumentTypeError, match="as in 15m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0ms"),
        (850, "850ms"),
        (42_900, "42s"),
        (60_000, "1m"),
        (65_000, "1m 5s"),
        (3_600_000, "1h"),
        (11_520_000, "3h 12m"),
        (3_605_000, "1h"),
        (187_200_000, "2d 4h"),
    ],
)
def test_a_duration_shows_its_two_largest_units(milliseconds: int, text: str):
    assert format_duration(milliseconds) == text


def test_a_time_says_its_zone():
    assert format_time(1_700_000_000_123) == "2023-11-14 22:13:20 UTC"


def test_columns_are_as_wide_as_they_need_to_be_and_numbers_stand_to_the_right():
    assert table(("name", "offset", "who"), [("orders-0", 5, "billing"), ("o", 12345678, None)]).splitlines() == [
        "NAME        OFFSET  WHO",
        "orders-0         5  billing",
        "o         12345678  -",
    ]


def test_a_table_without_rows_has_its_headings():
    assert table(("a", "b"), []) == "A  B"


def test_a_value_of_several_lines_goes_on_under_its_first():
    assert named_values([("state", "Ongoing"), ("what to do", "wait:\nsome command")], indent=" ").splitlines() == [
        " state       Ongoing",
        " what to do  wait:",
        "             some command",
    ]
