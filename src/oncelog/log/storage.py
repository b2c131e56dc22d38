"""What a log needs of a disk. The real one is `runtime.disk`; tests and the simulator bring their own.

A call either did all of it or raises `StorageFailed`. `append` that fails leaves no trace the caller must know of: the file is
cut back to where it was, so that what had been acknowledged stays readable and the next append starts clean.
Paths are strings relative to the disk's root, with "/" between parts.

Everything is called on the one thread that runs the node, except `File.sync`, `File.read_cold_at`, `Disk.sync_file` and
`Disk.sync_directory`, which take long and may be called from a worker thread.
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

    def read_at_if_cached(self, position: int, length: int) -> bytes | None:
        """The same without waiting for the device; None if that cannot be promised: read it in a worker thread then."""
        ...

    def read_cold_at(self, position: int, length: int) -> bytes:
        """As `read_at`, from any thread."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Return once all that was appended is on stable storage. From any thread; nothing to do for a removed file."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str) -> File:
        """Open for reading and appending; made if it is not there. An open path gives the same file again."""
        ...

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Replace the file's content as one step: readers after a crash see the old content or the new."""
        ...

    def write_in_place(self, path: str, data: bytes) -> None:
        """Write the file's content where it is. Quicker, but a crash or a failure may leave a part of it: for files that can be
        made again and that tell when they are not whole."""
        ...

    def exists(self, path: str) -> bool: ...

    def modified_ms(self, path: str) -> int:
        """When the file's content last changed, by the machine's wall clock."""
        ...

    def list_directory(self, path: str) -> list[str]: ...

    def make_directory(self, path: str) -> None: ...

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory; open files below it follow."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; nothing to do if it is not there."""
        ...

    def remove_tree(self, path: str) -> None: ...

    def sync_file(self, path: str) -> None:
        """Put what `write_file` wrote on stable storage; nothing to do if it is not there any more."""
        ...

    def sync_directory(self, path: str) -> None: ...

    def free_bytes(self) -> int: ...
