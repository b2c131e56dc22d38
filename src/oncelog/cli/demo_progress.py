"""Progress of the demo: on a terminal one line that moves, elsewhere plain lines now and then; events stay in either case."""

import time
from typing import TextIO

CLEAR_LINE = "\r\x1b[K"


class Progress:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._every_seconds = 0.1 if self._terminal else 2.0
        self._began = time.monotonic()
        self._next = 0.0
        self._line = ""

    def show(self, text: str) -> None:
        """What is going on right now; most calls show nothing, so call it often."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every_seconds
        self._write(text, stays=not self._terminal)

    def tell(self, text: str) -> None:
        """Something happened: a line that stays."""
        self._write(text, stays=True)

    def end(self) -> None:
        """Nothing moves any more."""
        if self._terminal:
            self._stream.write(CLEAR_LINE)
        self._stream.write("\n")
        self._stream.flush()

    def _write(self, text: str, stays: bool) -> None:
        start = CLEAR_LINE if self._terminal else ""
        end = "\n" if stays else ""
        self._stream.write(f"{start}{time.monotonic() - self._began:6.1f} s  {text}{end}")
        self._stream.flush()
