"""Log lines: one per event, with fields that can be read back."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from oncelog.broker.logging import configure_logging, get_logger


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    logger = logging.getLogger("oncelog")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield io.StringIO()
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def test_a_line_has_level_event_and_fields(lines: io.StringIO):
    configure_logging("notice", "text", lines)

    get_logger("oncelog.test").warning("connection refused", host="::1", why='too many: "10"', empty="")

    time, rest = lines.getvalue().split(" ", 1)
    assert time.endswith("Z")
    assert rest == 'WARNING connection refused host=::1 why="too many: \\"10\\"" empty=""\n'


def test_a_field_cannot_forge_a_line(lines: io.StringIO):
    configure_logging("notice", "text", lines)

    get_logger("oncelog.test").error("odd client", client_id="a\nERROR b")

    assert lines.getvalue().count("\n") == 1


def test_quieter_lines_are_not_written_and_not_rendered(lines: io.StringIO):
    configure_logging("notice", "text", lines)

    class Unprintable:
        def __str__(self) -> str:
            raise AssertionError("rendered")

    log = get_logger("oncelog.test")
    log.info("detail", of=Unprintable())
    log.debug("detail", of=Unprintable())
    log.notice("started")

    assert lines.getvalue().endswith("NOTICE started\n")
    assert lines.getvalue().count("\n") == 1


def test_json_lines_keep_the_types_of_fields(lines: io.StringIO):
    configure_logging("info", "json", lines)

    get_logger("oncelog.test").info("ready", port=9092)

    line = json.loads(lines.getvalue())
    assert {name: line[name] for name in ("level", "logger", "event", "port")} == {
        "level": "info",
        "logger": "oncelog.test",
        "event": "ready",
        "port": 9092,
    }


@pytest.mark.parametrize("line_format", ["text", "json"])
def test_a_bug_brings_its_traceback(lines: io.StringIO, line_format: str):
    configure_logging("notice", line_format, lines)

    try:
        raise KeyError("lost")
    except KeyError:
        get_logger("oncelog.test").exception("background work failed")

    assert "KeyError" in lines.getvalue()
    assert "Traceback" in lines.getvalue()


def test_a_program_that_embeds_a_broker_gets_the_lines_as_its_own(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="oncelog"):
        get_logger("oncelog.test").info("ready", port=9092)

    assert caplog.messages == ["ready port=9092"]
