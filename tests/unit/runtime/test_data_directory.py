"""A data directory has one owner at a time, and remembers whether its last one stopped cleanly."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oncelog.runtime.data_directory import DataDirectory, DataDirectoryUnusable


def test_a_second_owner_is_told_who_has_it(tmp_path: Path) -> None:
    first = DataDirectory.open(tmp_path / "data")

    with pytest.raises(DataDirectoryUnusable, match=rf"in use by process {os.getpid()}: stop that one"):
        DataDirectory.open(tmp_path / "data")

    first.close()
    DataDirectory.open(tmp_path / "data").close()


def test_a_killed_owner_leaves_it_free_and_a_living_one_in_another_process_does_not(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from oncelog.runtime.data_directory import DataDirectory\n"
        "directory = DataDirectory.open(Path(sys.argv[1])); print('mine', flush=True); time.sleep(60)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"mine\n"
            with pytest.raises(DataDirectoryUnusable, match=f"process {owner.pid}"):
                DataDirectory.open(tmp_path)
        finally:
            owner.send_signal(signal.SIGKILL)
            owner.wait()
    directory = DataDirectory.open(tmp_path)
    assert not directory.take_clean_shutdown_marker()
    directory.close()


def test_a_clean_stop_is_remembered_until_the_next_start(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path)
    assert not directory.take_clean_shutdown_marker()
    directory.mark_clean_shutdown()
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    directory.close()

    directory = DataDirectory.open(tmp_path)
    assert directory.take_clean_shutdown_marker()
    assert not directory.take_clean_shutdown_marker()
    directory.close()


def test_a_directory_belongs_to_one_node_of_one_cluster(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path)
    assert directory.read_meta_properties() is None
    directory.write_meta_properties("cluster", 1)
    written = (tmp_path / "meta.properties").read_bytes()

    directory.write_meta_properties("cluster", 1)
    assert (tmp_path / "meta.properties").read_bytes() == written
    for cluster_id, node_id in (("other", 1), ("cluster", 2)):
        with pytest.raises(DataDirectoryUnusable, match="belongs to node 1 of cluster cluster"):
            directory.write_meta_properties(cluster_id, node_id)
    (tmp_path / "meta.properties").write_bytes(b"rubbish")
    with pytest.raises(DataDirectoryUnusable, match=r"meta\.properties cannot be read"):
        directory.read_meta_properties()
    directory.close()


def test_deletions_that_were_interrupted_are_finished(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path)
    for name in ("orders-0", "orders-1.0123abcd-delete"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x")

    assert directory.remove_deleted_partitions() == ["orders-1.0123abcd-delete"]

    assert (tmp_path / "orders-0" / "file").exists()
    assert not (tmp_path / "orders-1.0123abcd-delete").exists()
    directory.close()


def test_a_directory_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataDirectoryUnusable, match="file/data"):
        DataDirectory.open(tmp_path / "file" / "data")
