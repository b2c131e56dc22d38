"""What the data directory remembers of each log between two runs."""

from pathlib import Path
from types import SimpleNamespace

from oncelog.broker.log_checkpoints import Checkpointed, LogCheckpoints
from oncelog.runtime.disk import RealDisk
from tests.unit.log.compacted_log import ORDERS, CompactedLog


def test_compaction_goes_on_where_it_was(tmp_path: Path) -> None:
    log = CompactedLog(tmp_path)
    log.put(("a", "1"), ("a", "2"))
    log.roll()
    log.clean()
    log.put(("a", "3"))

    LogCheckpoints(log.disk).write([SimpleNamespace(topic_partition=ORDERS, log=log.log)])

    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    assert LogCheckpoints(RealDisk(tmp_path)).of(ORDERS) == Checkpointed(0, 0, 3, 2)


def test_a_topic_made_anew_does_not_inherit_its_predecessor_s_offsets(tmp_path: Path) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    checkpoints = LogCheckpoints(RealDisk(tmp_path))

    assert checkpoints.of(ORDERS).log_start_offset == 100
    assert checkpoints.of(ORDERS) == Checkpointed()
