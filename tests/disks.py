"""Disks that misbehave, behind the same port as the real one.

`FaultyDisk` fails when it is told to. `SyncTrackingDisk` writes down what has been synced, so that a test can kill the process that
used it and then take away what a power cut could have taken: `lose_page_cache`. It works across processes: start the broker with
`sync_tracking_disk(directory)` as its disk, kill it, call `lose_page_cache(directory)`, start it again.
"""

import os
from collections.abc import Callable
from pathlib import Path

from oncelog.log.storage import File, StorageFailed
from oncelog.model.bytes_like import BytesLike
from oncelog.runtime.disk import RealDisk


class WrappedFile:
    def __init__(self, disk: "WrappedDisk", path: str, file: File) -> None:
        self._disk = disk
        self.path = path
        self.inner = file

    @property
    def size(self) -> int:
        return self.inner.size

    def append(self, data: BytesLike) -> None:
        self._disk.before("append", self.path)
        self.inner.append(data)

    def read_at(self, position: int, length: int) -> bytes:
        self._disk.before("read", self.path)
        return self.inner.read_at(position, length)

    def read_at_if_cached(self, position: int, length: int) -> bytes | None:
        self._disk.before("read", self.path)
        return self.inner.read_at_if_cached(position, length)

    def read_cold_at(self, position: int, length: int) -> bytes:
        self._disk.before("read", self.path)
        return self.inner.read_cold_at(position, length)

    def truncate(self, size: int) -> None:
        self._disk.before("truncate", self.path)
        self.inner.truncate(size)
        self._disk.truncated(self.path, size)

    def sync(self) -> None:
        self._disk.before("sync", self.path)
        # Before, not after: what is appended while the sync runs may or may not be part of it.
        size = self.inner.size
        self.inner.sync()
        self._disk.synced(self.path, size)

    def close(self) -> None:
        self._disk.files.pop(self.path, None)
        self.inner.close()


class WrappedDisk:
    """Does what the real disk does and tells subclasses about it."""

    def __init__(self, root: str | Path) -> None:
        self.inner = RealDisk(root)
        self.files: dict[str, WrappedFile] = {}

    def before(self, operation: str, path: str) -> None:
        """An operation is about to happen; raise StorageFailed to prevent it."""

    def synced(self, path: str, size: int) -> None: ...

    def truncated(self, path: str, size: int) -> None: ...

    def renamed(self, path: str, to: str) -> None: ...

    def removed(self, path: str) -> None: ...

    def open(self, path: str) -> WrappedFile:
        self.before("open", path)
        if path not in self.files:
            self.files[path] = WrappedFile(self, path, self.inner.open(path))
        return self.files[path]

    def read_file(self, path: str) -> bytes:
        self.before("read", path)
        return self.inner.read_file(path)

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        self.before("write_file", path)
        self.inner.write_file(path, data, sync=sync)
        self.synced(path, len(data) if sync else 0)

    def write_in_place(self, path: str, data: bytes) -> None:
        self.before("write_file", path)
        self.inner.write_in_place(path, data)
        self.synced(path, 0)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def modified_ms(self, path: str) -> int:
        return self.inner.modified_ms(path)

    def list_directory(self, path: str) -> list[str]:
        return self.inner.list_directory(path)

    def make_directory(self, path: str) -> None:
        self.before("make_directory", path)
        self.inner.make_directory(path)

    def rename(self, path: str, to: str) -> None:
        self.before("rename", path)
        self.inner.rename(path, to)
        for name in [name for name in self.files if name == path or name.startswith(path + "/")]:
            file = self.files.pop(name)
            file.path = to + name[len(path) :]
            self.files[file.path] = file
        self.renamed(path, to)

    def remove(self, path: str) -> None:
        self.before("remove", path)
        self.files.pop(path, None)
        self.inner.remove(path)
        self.removed(path)

    def remove_tree(self, path: str) -> None:
        self.before("remove", path)
        self.inner.remove_tree(path)
        self.removed(path)

    def sync_file(self, path: str) -> None:
        self.before("sync", path)
        size = len(self.inner.read_file(path)) if self.inner.exists(path) else 0
        self.inner.sync_file(path)
        self.synced(path, size)

    def sync_directory(self, path: str) -> None:
        self.before("sync", path)
        self.inner.sync_directory(path)

    def free_bytes(self) -> int:
        return self.inner.free_bytes()

    def close(self) -> None:
        self.files.clear()
        self.inner.close()


class FaultyDisk(WrappedDisk):
    """`disk.refuse("append")`: every append fails until `disk.recover()`. `disk.refuse("append", after=3)`: three more succeed."""

    def __init__(self, root: str | Path) -> None:
        super().__init__(root)
        self._refused: dict[str, int] = {}
        self._only: Callable[[str], bool] = lambda path: True
        self.operations: list[tuple[str, str]] = []

    def refuse(self, *operations: str, after: int = 0, only: Callable[[str], bool] = lambda path: True) -> None:
        self._refused = dict.fromkeys(operations, after)
        self._only = only

    def recover(self) -> None:
        self._refused = {}

    def before(self, operation: str, path: str) -> None:
        self.operations.append((operation, path))
        if operation in self._refused and self._only(path):
            self._refused[operation] -= 1
            if self._refused[operation] < 0:
                raise StorageFailed(f"{operation} {path}: No space left on device")


class SyncTrackingDisk(WrappedDisk):
    """Keeps a ledger of what was synced in a file beside the directory; the ledger survives the process."""

    def __init__(self, root: str | Path) -> None:
        super().__init__(root)
        self._ledger = os.open(_ledger_of(root), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _note(self, *fields: str) -> None:
        os.write(self._ledger, ("\t".join(fields) + "\n").encode())

    def synced(self, path: str, size: int) -> None:
        self._note("synced", path, str(size))

    def truncated(self, path: str, size: int) -> None:
        self._note("truncated", path, str(size))

    def renamed(self, path: str, to: str) -> None:
        self._note("renamed", path, to)

    def removed(self, path: str) -> None:
        self._note("removed", path)

    def close(self) -> None:
        super().close()
        os.close(self._ledger)


def sync_tracking_disk(root: str | Path) -> SyncTrackingDisk:
    """What a broker process is started with; by its name "tests.disks:sync_tracking_disk"."""
    return SyncTrackingDisk(root)


def lose_page_cache(root: str | Path) -> dict[str, int]:
    """Cut every file of every partition back to what was synced of it. How many bytes each of them lost."""
    lost: dict[str, int] = {}
    sizes = synced_sizes(root)
    for file in sorted(Path(root).glob("*/*")):
        path = str(file.relative_to(root))
        size = file.stat().st_size
        kept = min(sizes.get(path, 0), size)
        if kept < size:
            os.truncate(file, kept)
            lost[path] = size - kept
    # What survived is on the device: later losses are counted from here.
    _ledger_of(root).write_text("".join(f"synced\t{path}\t{size}\n" for path, size in sizes.items()))
    return lost


def synced_sizes(root: str | Path) -> dict[str, int]:
    """How much of each file is on the device, by what the ledger says."""
    ledger = _ledger_of(root)
    sizes: dict[str, int] = {}
    if not ledger.exists():
        return sizes
    for line in ledger.read_text().splitlines():
        match line.split("\t"):
            case ["synced", path, size]:
                sizes[path] = int(size)
            case ["truncated", path, size]:
                sizes[path] = min(sizes.get(path, 0), int(size))
            case ["renamed", path, to]:
                sizes.pop(to, None)
                for name in [name for name in sizes if name == path or name.startswith(path + "/")]:
                    sizes[to + name[len(path) :]] = sizes.pop(name)
            case ["removed", path]:
                for name in [name for name in sizes if name == path or name.startswith(path + "/")]:
                    del sizes[name]
    return sizes


def _ledger_of(root: str | Path) -> Path:
    root = Path(root)
    return root.with_name(root.name + ".synced")
