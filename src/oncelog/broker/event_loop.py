"""The loop a broker runs on: uvloop where it exists, else the standard library's, which is slower and otherwise the same."""

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
