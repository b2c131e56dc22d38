"""Lengths and points of time, as they are typed and as they are shown."""

import argparse
from datetime import UTC, datetime

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: str) -> int:
    """Milliseconds of 500ms, 30s, 15m, 2h or 7d."""
    number = text.rstrip("dhms")
    unit_ms = _UNITS_MS.get(text[len(number) :])
    if unit_ms is None or not (number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text} is no duration: write a number and ms, s, m, h or d, as in 15m")
    return int(number) * unit_ms


def format_duration(duration_ms: int) -> str:
    """The two largest units that matter: 850ms, 42s, 1m 5s, 3h 12m, 2d 4h."""
    if duration_ms < 1000:
        return f"{max(duration_ms, 0)}ms"
    left = duration_ms // 1000
    parts: list[str] = []
    for unit, seconds in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return " ".join(part for part in parts[:2] if part)


def format_time(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
