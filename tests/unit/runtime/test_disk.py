"""The machine's own disk: appends that fail half way, few descriptors for many files, work from other threads."""

import os
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oncelog.log.storage import StorageFailed
from oncelog.runtime import disk as disk_module
from oncelog.runtime.disk import RealDisk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[RealDisk]:
    disk = RealDisk(tmp_path / "data")
    disk.make_directory("orders-0")
    yield disk
    disk.close()


def test_what_is_appended_can_be_read(disk: RealDisk) -> None:
    file = disk.open("orders-0/a")
    file.append(b"hello")
    file.append(memoryview(bytearray(b" world")))

    assert file.size == 11
    assert file.read_at(0, 100) == b"hello world"
    assert file.read_at(6, 3) == b"wor"
    assert file.read_at(11, 5) == b""
    assert file.read_at_if_cached(6, 5) == b"world"
    assert file.read_cold_at(6, 5) == b"world"
    assert disk.open("orders-0/a") is file


def test_a_file_is_found_again(disk: RealDisk, tmp_path: Path) -> None:
    disk.open("orders-0/a").append(b"hello")
    again = RealDisk(tmp_path / "data")

    file = again.open("orders-0/a")
    file.append(b"!")

    assert (file.size, file.read_at(0, 9)) == (6, b"hello!")
    again.close()


def test_truncation(disk: RealDisk) -> None:
    file = disk.open("orders-0/a")
    file.append(b"hello world")
    file.truncate(5)
    file.append(b"!")
    assert (file.size, file.read_at(0, 99)) == (6, b"hello!")


def test_a_write_that_does_not_fit_is_cut_back(disk: RealDisk, tmp_path: Path) -> None:
    """A real limit of the operating system: it writes what fits and refuses the rest."""
    file = disk.open("orders-0/a")
    file.append(b"x" * 1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(StorageFailed, match="orders-0/a"):
            file.append(b"y" * 1000)
        assert file.size == 1000
        assert (tmp_path / "data/orders-0/a").stat().st_size == 1000
        file.append(b"z" * 500)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.append(b"y" * 1000)
    assert file.read_at(0, 9999) == b"x" * 1000 + b"z" * 500 + b"y" * 1000


def test_a_write_that_comes_in_pieces_is_finished(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(disk_module.os, "pwrite", lambda fd, data, at: real(fd, bytes(data)[:3], at))
    file = disk.open("orders-0/a")
    file.append(b"hello world")
    assert file.read_at(0, 99) == b"hello world"


def test_what_cannot_even_be_cut_back_is_cut_before_the_next_write(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open("orders-0/a")
    file.append(b"kept")
    real_write, real_cut = os.pwrite, os.ftruncate

    def broken_write(descriptor: int, data: bytes, at: int) -> int:
        real_write(descriptor, b"half of a long batch", at)
        raise OSError(5, "Input/output error")

    def broken_cut(descriptor: int, size: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk_module.os, "pwrite", broken_write)
    monkeypatch.setattr(disk_module.os, "ftruncate", broken_cut)
    with pytest.raises(StorageFailed, match="Input/output error"):
        file.append(b"half of a long batch and the other half")
    assert (file.size, file.read_at(0, 99)) == (4, b"kept")

    monkeypatch.setattr(disk_module.os, "pwrite", real_write)
    with pytest.raises(StorageFailed):
        file.append(b"!")
    monkeypatch.setattr(disk_module.os, "ftruncate", real_cut)
    file.append(b"!")
    assert (tmp_path / "data/orders-0/a").read_bytes() == b"kept!"


def test_many_files_need_few_descriptors(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, max_descriptors=4)
    files = [disk.open(f"{number}") for number in range(50)]
    before = len(os.listdir("/proc/self/fd"))

    for round_ in range(3):
        for number, file in enumerate(files):
            file.append(b"%d-%d " % (number, round_))

    assert disk.descriptors_in_use <= 4
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    for number, file in enumerate(files):
        assert file.read_at(0, 99) == b"%d-0 %d-1 %d-2 " % (number, number, number)
    disk.close()
    assert disk.descriptors_in_use == 0


def test_files_in_use_keep_their_descriptor_for_the_most_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(tmp_path, max_descriptors=10)
    busy = disk.open("busy")
    opened: list[str] = []
    real = os.open

    def counting(path: str, *arguments: int) -> int:
        opened.append(Path(path).name)
        return real(path, *arguments)

    monkeypatch.setattr(disk_module.os, "open", counting)
    for number in range(200):
        disk.open(f"{number}").append(b"y")
        busy.append(b"x")
    assert len(opened) >= 200
    assert opened.count("busy") <= 200 // 9
    disk.close()


def test_sync_and_cold_reads_from_threads_while_descriptors_change_hands(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, max_descriptors=2)
    files = [disk.open(f"{number}") for number in range(8)]
    for number, file in enumerate(files):
        file.append(b"%d" % number * 100)
    problems: list[BaseException] = []
    stop = threading.Event()

    def work(numbers: range) -> None:
        try:
            while not stop.is_set():
                for number in numbers:
                    files[number].sync()
                    assert files[number].read_cold_at(0, 50) == b"%d" % number * 50
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(numbers,)) for numbers in (range(8), range(7, -1, -1))]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        for number, file in enumerate(files):
            assert file.read_at(10, 20) == b"%d" % number * 20
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    disk.close()


def test_what_is_not_in_memory_is_said_so(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open("orders-0/a")
    file.append(os.urandom(4 << 20))
    file.sync()
    if not disk._can_probe:
        pytest.skip("this system cannot tell whether a read would wait")
    for _ in range(20):
        descriptor = os.open(tmp_path / "data/orders-0/a", os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
        if file.read_at_if_cached(1 << 20, 1 << 20) is None:
            break
    else:
        pytest.skip("this file system keeps its pages in memory whatever one asks for")

    assert len(file.read_cold_at(1 << 20, 1 << 20)) == 1 << 20
    assert len(file.read_at_if_cached(1 << 20, 1 << 20) or b"") == 1 << 20


def test_a_file_is_replaced_as_a_whole(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.write_file("orders-0/checkpoint", b"old")
    disk.write_file("orders-0/checkpoint", b"new", sync=True)
    assert disk.read_file("orders-0/checkpoint") == b"new"

    def broken(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_module.os, "write", broken)
    with pytest.raises(StorageFailed, match="No space left"):
        disk.write_file("orders-0/checkpoint", b"newer")
    assert disk.read_file("orders-0/checkpoint") == b"new"


def test_open_files_follow_a_rename(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open("orders-0/a")
    file.append(b"1")
    disk.rename("orders-0/a", "orders-0/b")
    file.append(b"2")
    disk.rename("orders-0", "orders-0.x-delete")
    file.append(b"3")
    assert (tmp_path / "data/orders-0.x-delete/b").read_bytes() == b"123"
    assert disk.open("orders-0.x-delete/b") is file
    assert disk.list_directory("") == ["orders-0.x-delete"]
    disk.remove_tree("orders-0.x-delete")
    assert disk.list_directory("") == []
    disk.remove_tree("orders-0.x-delete")


def test_a_removed_file_needs_no_sync_and_cannot_be_read(disk: RealDisk) -> None:
    file = disk.open("orders-0/a")
    file.append(b"1")
    disk.remove("orders-0/a")
    disk.remove("orders-0/a")

    file.sync()
    disk.sync_file("orders-0/a")
    with pytest.raises(StorageFailed, match="closed or removed"):
        file.read_at(0, 1)
    with pytest.raises(StorageFailed, match="closed or removed"):
        file.read_cold_at(0, 1)
    assert not disk.exists("orders-0/a")
    assert disk.open("orders-0/a").size == 0


def test_renaming_over_an_open_file_closes_that(disk: RealDisk) -> None:
    old, new = disk.open("orders-0/a"), disk.open("orders-0/b")
    old.append(b"old")
    new.append(b"new")
    disk.rename("orders-0/b", "orders-0/a")

    assert disk.open("orders-0/a") is new
    with pytest.raises(StorageFailed):
        old.append(b"x")
    assert disk.read_file("orders-0/a") == b"new"
    assert disk.descriptors_in_use == 1


def test_what_fails_says_what_and_where(disk: RealDisk) -> None:
    for call in (
        lambda: disk.read_file("nothing"),
        lambda: disk.list_directory("nothing"),
        lambda: disk.rename("nothing", "else"),
        lambda: disk.modified_ms("nothing"),
        lambda: disk.sync_directory("nothing"),
        lambda: disk.open("no/such/directory"),
        lambda: disk.write_file("no/such/directory", b""),
        lambda: disk.remove("orders-0"),
    ):
        with pytest.raises(StorageFailed, match=r"nothing|no/such/directory|orders-0"):
            call()


def test_figures(disk: RealDisk) -> None:
    disk.write_file("orders-0/a", b"x")
    assert abs(disk.modified_ms("orders-0/a") - time.time() * 1000) < 60_000
    assert disk.free_bytes() > 0
    disk.sync_directory("orders-0")
    disk.sync_file("orders-0/a")
    disk.sync_everything()
