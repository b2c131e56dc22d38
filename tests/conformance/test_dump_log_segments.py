"""Kafka's own DumpLogSegments reads our segments, indexes and snapshots, fresh from the log and after compaction.

ONCELOG_PEER_JARS=<directory with Kafka's jars> pytest tests/conformance
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from oncelog.records.compression import Compression
from tests.conformance.peer import run_tool
from tests.unit.log.compacted_log import CONFIG, CompactedLog

TOOL = "org.apache.kafka.tools.DumpLogSegments"
COMPLAINTS = re.compile(r"(?i)mismatch|corrupt|invalid|exception|isvalid: false|found timestamp")


@pytest.fixture
def log(tmp_path: Path) -> CompactedLog:
    log = CompactedLog(tmp_path, replace(CONFIG, segment_bytes=3000))
    for number in range(12):
        for compression in Compression:
            log.now_ms += 10
            log.put((f"k{number % 5}", str(number) * 20), (f"t{number}", None), compression=compression)
        log.put(("tx", "committed"), producer_id=1, transactional=True)
        log.put(("tx", "aborted"), ("ab", str(number)), producer_id=2, transactional=True)
        log.end(2, committed=False)
        log.end(1, committed=True)
    log.roll()
    return log


def dump(log: CompactedLog, pattern: str, *options: str) -> str:
    files = sorted(log.directory.glob(pattern))
    assert files, pattern
    printed = run_tool(TOOL, "--files", ",".join(map(str, files)), *options)
    assert not COMPLAINTS.search(printed), printed
    return printed


def check_everything(log: CompactedLog) -> None:
    batches = dump(log, "*.log", "--deep-iteration", "--print-data-log")
    offsets = {int(offset) for offset in re.findall(r"^\| offset: (\d+)", batches, re.MULTILINE)}
    ours = {record.offset for record in log.records()}
    assert ours <= offsets
    assert len(re.findall(r"^baseOffset: ", batches, re.MULTILINE)) == len(log.headers())
    assert re.findall(r"isvalid: true", batches)
    dump(log, "*.index", "--index-sanity-check")
    dump(log, "*.index")
    dump(log, "*.timeindex", "--index-sanity-check")
    dump(log, "*.timeindex")
    snapshots = dump(log, "*.snapshot")
    assert "producerId: 1" in snapshots


def test_a_log_as_it_was_written(log: CompactedLog) -> None:
    log.log.close()
    log.open(clean_shutdown=True)
    check_everything(log)
    assert "producerId: 2" in dump(log, "*.txnindex")


def test_a_log_after_compaction(log: CompactedLog) -> None:
    before = len(log.headers())
    log.clean()
    log.put(("after", "1"))
    log.log.apply_retention(log.now_ms)
    log.restart()

    assert len(log.headers()) < before
    check_everything(log)
    printed = dump(log, "*.log", "--deep-iteration")
    assert "deleteHorizonMs: OptionalLong[" in printed
    assert "count: 0" in printed
