"""The table of APIs, and what importing it costs."""

import subprocess
import sys

import pytest

from oncelog.protocol.apis import APIS, Api, ApiKey
from oncelog.protocol.schema import schema_of


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_the_table_says_what_the_classes_say(api: Api) -> None:
    asked, answered = schema_of(api.request), schema_of(api.response)
    lowest, highest = api.versions

    assert (asked.key, asked.versions) == (api.key, api.versions)
    assert (answered.key, answered.versions) == (api.key, api.versions)
    for version in range(lowest, highest + 1):
        assert api.is_flexible(version) == (version >= asked.flexible_since) == (version >= answered.flexible_since)


def test_every_key_has_a_row() -> None:
    assert set(APIS) == set(ApiKey)
    assert APIS[ApiKey.OFFSET_FOR_LEADER_EPOCH].name == "OffsetForLeaderEpoch"


def test_one_message_is_loaded_without_the_others_and_without_heavy_modules() -> None:
    script = """
import sys
before = set(sys.modules)
import oncelog.protocol.frames
from oncelog.protocol.apis import APIS, ApiKey
APIS[ApiKey.PRODUCE].request
for name in set(sys.modules) - before: print(name)
"""
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert [name for name in loaded if name.startswith("oncelog.protocol.messages.")] == [
        "oncelog.protocol.messages.produce"
    ]
    assert not {"dataclasses", "inspect", "asyncio", "json"} & set(loaded)
