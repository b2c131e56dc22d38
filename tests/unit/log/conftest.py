"""A real disk in a temporary directory for every test of the log."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oncelog.runtime.disk import RealDisk
from tests.disks import FaultyDisk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[RealDisk]:
    disk = RealDisk(tmp_path / "data")
    yield disk
    disk.close()


@pytest.fixture
def faulty_disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    disk = FaultyDisk(tmp_path / "data")
    yield disk
    disk.recover()
    disk.close()
