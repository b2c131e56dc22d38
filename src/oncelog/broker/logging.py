"""What a broker tells whoever runs it: one line per event, with fields instead of prose to parse.

    2026-01-31T12:00:00.123Z WARNING connection refused host=127.0.0.1 why="max.connections=10 is reached"

Built on the standard library's loggers (under the name `oncelog`), so that a program which embeds a broker handles these
lines like its own; only `oncelog serve` sets up where they go. Fields are rendered only for a line that is really written.
Nothing on the way of a produce or a fetch logs.
"""

import logging
import sys
import time
from typing import Any, TextIO

#: Between info and warning: what an operator wants to see of a healthy broker. Start, stop, a config without effect.
NOTICE = 25
logging.addLevelName(NOTICE, "NOTICE")

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": NOTICE,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class Logger:
    """Events with fields: `log.warning("connection refused", host=host, why=why)`."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def notice(self, event: str, **fields: object) -> None:
        self._write(NOTICE, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """An error with the traceback of the exception that is being handled: a bug, loud."""
        self._write(logging.ERROR, event, fields, with_traceback=True)

    def _write(self, level: int, event: str, fields: dict[str, object], *, with_traceback: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            # One object carries both: a handler that knows nothing of fields still prints them.
            self._logger.log(level, _Event(event, fields), exc_info=with_traceback)


class _Event:
    __slots__ = ("name", "fields")

    def __init__(self, name: str, fields: dict[str, object]) -> None:
        self.name = name
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={_quoted(value)}" for name, value in self.fields.items())])


def get_logger(name: str) -> Logger:
    return Logger(logging.getLogger(name))


def configure_logging(level: str, line_format: str, stream: TextIO | None = None) -> None:
    """Send Oncelog's lines to `stream` (standard error), once per process. For a process that is a broker and nothing else."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(_JsonLines() if line_format == "json" else _TextLines())
    logger = logging.getLogger("oncelog")
    logger.handlers[:] = [handler]
    logger.setLevel(LEVELS[level])
    logger.propagate = False


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_timestamp(record)} {record.levelname} {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        import json  # only a process that writes JSON pays for it

        event: Any = record.msg
        line: dict[str, object] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event.name if isinstance(event, _Event) else record.getMessage(),
        }
        if isinstance(event, _Event):
            line.update(event.fields)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _timestamp(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _quoted(value: object) -> str:
    text = str(value)
    if text and not any(character in text for character in ' "=\n'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
