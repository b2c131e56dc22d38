"""A crash at any step of compaction: the next start finds the originals or what replaced them, and never half of each."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from oncelog.log.cleaner import clean
from oncelog.log.storage import StorageFailed
from oncelog.runtime.disk import RealDisk
from tests.unit.log.compacted_log import CONFIG, CompactedLog

Watch = Callable[[str], None]


class WatchedDisk(RealDisk):
    """Tells before every change of a name or of a small file what is about to happen."""

    watch: Watch = staticmethod(lambda what: None)

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        self.watch(f"write {path}")
        super().write_file(path, data, sync=sync)

    def rename(self, path: str, to: str) -> None:
        self.watch(f"rename {path} to {to}")
        super().rename(path, to)

    def remove(self, path: str) -> None:
        self.watch(f"remove {path}")
        super().remove(path)

    def sync_file(self, path: str) -> None:
        self.watch(f"sync {path}")
        super().sync_file(path)


def table(log: CompactedLog) -> dict[str | None, str | None]:
    return {key: value for key, value in dict(log.pairs()).items() if value is not None}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompactedLog:
    """Nine segments that become three, with superseded, deleted, committed and aborted records."""
    monkeypatch.setattr("tests.unit.log.compacted_log.RealDisk", WatchedDisk)
    log = CompactedLog(tmp_path / "live", replace(CONFIG, segment_bytes=700))
    for number in range(3):
        log.put(("a", str(number)), (f"only {number}", "x" * 100))
        log.put(("gone", "soon"), producer_id=1, transactional=True)
        log.roll()
        log.put(("a", "aborted"), (f"aborted {number}", "x"), producer_id=2, transactional=True)
        log.put(("b", str(number)))
        log.roll()
        log.end(2, committed=False)
        log.end(1, committed=True)
        log.put(("gone", None))
        log.roll()
    return log


def test_after_a_crash_at_any_step_readers_find_the_same(log: CompactedLog, tmp_path: Path) -> None:
    expected = table(log)
    crashes: list[tuple[str, Path]] = []

    def remember(what: str) -> None:
        copy = tmp_path / f"crash {len(crashes)}"
        shutil.copytree(log.root, copy)
        crashes.append((what, copy))

    log.disk.watch = remember
    for step in clean(log.log, log.now_ms):
        remember("a turn" if step is None else "waiting for the device")
    log.disk.watch = lambda what: None
    assert table(log) == expected
    assert len(log.log.segments) == 4
    assert len(crashes) > 40

    for what, copy in crashes:
        after = CompactedLog.__new__(CompactedLog)
        after.root, after.config, after.now_ms, after.sequences = copy, log.config, log.now_ms, dict(log.sequences)
        after.open(clean_shutdown=False)
        assert table(after) == expected, what
        assert after.log.log_end_offset == log.log.log_end_offset, what
        leftovers = [
            path.name for path in after.directory.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")
        ]
        assert leftovers == [], what
        assert [header.producer_id for header, _ in after.read()], what
        after.clean()
        assert table(after) == expected, what
        after.disk.close()


def test_a_disk_that_fails_at_any_step_leaves_a_log_that_goes_on(log: CompactedLog) -> None:
    expected = table(log)
    failed_at = 0
    while True:
        steps = 0

        def fail(what: str, failing: int = failed_at) -> None:
            nonlocal steps
            steps += 1
            if steps == failing + 1:
                raise StorageFailed(what)

        log.disk.watch = fail
        failure = ""
        with suppress(StorageFailed):
            log.clean()
            failure = "none"
        log.disk.watch = lambda what: None
        assert table(log) == expected, failed_at
        log.put(("after", str(failed_at)))
        expected["after"] = str(failed_at)
        log.crash()
        assert table(log) == expected, failed_at
        if failure:
            break
        failed_at += 1

    assert failed_at > 40
