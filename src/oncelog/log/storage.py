"""What a log needs of a disk. The real one is `runtime.disk`; tests and the simulator bring their own.

A call either did all of it or raises `StorageFailed`. `append` that fails leaves no trace the caller must know of: the file is
cut back to where it was, so that what had been acknowledged stays readable and the next append starts clean.
Paths are strings relative to the disk's root, with "/" between parts.
"""

from typing import Protocol

from oncelog.model.bytes_like import BytesLike


class StorageFailed(Exception):
    """The disk refused: full, broken, gone. Carries the path and the system's own words."""


class File(Protocol):
    @property
    def size(self) -> int: ...

    def append(self, data: BytesLike) -> None: ...

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Return once all that was appended is on stable storage. The one call that is made from a worker thread."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str) -> File:
        """Open for reading and appending; made if it is not there."""
        ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Replace the file's content as one step: readers after a crash see the old content or the new."""
        ...

    def exists(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]: ...

    def make_directory(self, path: str) -> None: ...

    def rename(self, path: str, to: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def free_bytes(self) -> int: ...
