"""The machine's own disk behind the port of `log.storage`.

- Thousands of files may be open with few descriptors: a file gets one when it is used, and the one that has not been used for
  longest gives its back (second chance: a sweep passes over files used since the last). `ulimit -n` never limits partitions.
- A write that fails, or writes only a part, is cut back. If even that fails, the file remembers it and cuts before the next write,
  and reading never goes past what was written whole.
- `sync` and `read_cold_at` run in worker threads. They work on a descriptor of their own, taken under a lock, so that the thread
  that runs the node may give up or close the file meanwhile; and they never take one away from it.
"""

import errno
import os
import resource
import threading
from collections import deque
from pathlib import Path
from typing import NoReturn

from oncelog.log.storage import StorageFailed
from oncelog.model.bytes_like import BytesLike

CLOSED = -1
LEAST_DESCRIPTORS = 32
MOST_DESCRIPTORS = 8192
#: How far apart a read is probed for pages that are not in memory. What is cold is mostly cold as a whole; each probe is a call.
PROBE_STEP = 512 << 10


def failed(doing: str, path: str, error: OSError) -> NoReturn:
    raise StorageFailed(f"{doing} {path}: {error.strerror}") from error


class RealFile:
    __slots__ = ("_disk", "_path", "_descriptor", "size", "_torn", "recently_used", "_gone")

    def __init__(self, disk: "RealDisk", path: str, size: int) -> None:
        self._disk = disk
        self._path = path
        self._descriptor = CLOSED
        self.size = size
        self._torn = False
        self._gone = False
        self.recently_used = False

    def append(self, data: BytesLike) -> None:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._disk.give_descriptor(self)
        self.recently_used = True
        size = self.size
        length = len(data)
        try:
            if self._torn:
                os.ftruncate(descriptor, size)
                self._torn = False
            written = os.pwrite(descriptor, data, size)
            if written != length:
                self._write_rest(descriptor, data, written)
        except OSError as error:
            self._cut_back(descriptor)
            failed("write to", self._path, error)
        self.size = size + length

    def _write_rest(self, descriptor: int, data: BytesLike, written: int) -> None:
        view = memoryview(data)
        while written < len(view):
            more = os.pwrite(descriptor, view[written:], self.size + written)
            if more == 0:
                raise OSError(errno.EIO, "the device takes no more bytes")
            written += more

    def _cut_back(self, descriptor: int) -> None:
        try:
            os.ftruncate(descriptor, self.size)
        except OSError:
            self._torn = True

    def read_at(self, position: int, length: int) -> bytes:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._disk.give_descriptor(self)
        self.recently_used = True
        try:
            return _read_all(descriptor, position, min(length, self.size - position))
        except OSError as error:
            failed("read", self._path, error)

    def read_at_if_cached(self, position: int, length: int) -> bytes | None:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._disk.give_descriptor(self)
        self.recently_used = True
        length = min(length, self.size - position)
        try:
            if length > 0 and not self._disk.is_cached(descriptor, position, length):
                return None
            return _read_all(descriptor, position, length)
        except OSError as error:
            failed("read", self._path, error)

    def read_cold_at(self, position: int, length: int) -> bytes:
        descriptor = self._disk.private_descriptor(self)
        try:
            return _read_all(descriptor, position, min(length, self.size - position))
        except OSError as error:
            failed("read", self._path, error)
        finally:
            os.close(descriptor)

    def truncate(self, size: int) -> None:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._disk.give_descriptor(self)
        try:
            os.ftruncate(descriptor, size)
        except OSError as error:
            failed("truncate", self._path, error)
        self.size = size
        self._torn = False

    def sync(self) -> None:
        try:
            descriptor = self._disk.private_descriptor(self)
        except StorageFailed:
            if self._gone:
                return
            raise
        try:
            os.fdatasync(descriptor)
        except OSError as error:
            failed("sync", self._path, error)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        self._disk.forget(self)


class RealDisk:
    def __init__(self, root: str | Path, *, max_descriptors: int | None = None) -> None:
        self._root = str(root)
        self._files: dict[str, RealFile] = {}
        self._with_descriptor: deque[RealFile] = deque()
        self._lock = threading.Lock()
        self._can_probe = hasattr(os, "preadv") and hasattr(os, "RWF_NOWAIT")
        self._max_descriptors = max_descriptors or _usual_max_descriptors()
        try:
            os.makedirs(self._root, exist_ok=True)
        except OSError as error:
            failed("make", self._root, error)

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def open(self, path: str) -> RealFile:
        file = self._files.get(path)
        if file is None:
            try:
                size = os.stat(self._full(path)).st_size
            except FileNotFoundError:
                file = RealFile(self, path, 0)
                self.give_descriptor(file, create=True)
            except OSError as error:
                failed("open", path, error)
            else:
                file = RealFile(self, path, size)
            self._files[path] = file
        return file

    def give_descriptor(self, file: RealFile, *, create: bool = False) -> int:
        """For the thread that runs the node, and only for it: nobody else takes descriptors away while it uses one."""
        if file._gone:
            raise StorageFailed(f"open {file._path}: it was closed or removed")
        with self._lock:
            while len(self._with_descriptor) >= self._max_descriptors:
                self._take_descriptor_back()
            file._descriptor = self._open_descriptor(file, os.O_CREAT if create else 0)
            self._with_descriptor.append(file)
        return file._descriptor

    def _open_descriptor(self, file: RealFile, flags: int = 0) -> int:
        try:
            return os.open(self._full(file._path), os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
        except OSError as error:
            failed("open", file._path, error)

    def _take_descriptor_back(self) -> None:
        while True:
            file = self._with_descriptor.popleft()
            if file.recently_used:
                file.recently_used = False
                self._with_descriptor.append(file)
                continue
            os.close(file._descriptor)
            file._descriptor = CLOSED
            return

    def private_descriptor(self, file: RealFile) -> int:
        """For any thread: a descriptor that the caller closes."""
        with self._lock:
            if file._gone:
                raise StorageFailed(f"open {file._path}: it was closed or removed")
            if file._descriptor < 0:
                return self._open_descriptor(file)
            try:
                return os.dup(file._descriptor)
            except OSError as error:
                failed("open", file._path, error)

    def forget(self, file: RealFile) -> None:
        """The file is closed: nothing reaches it through this object any more."""
        with self._lock:
            file._gone = True
            self._release(file)
        if self._files.get(file._path) is file:
            del self._files[file._path]

    def _release(self, file: RealFile) -> None:
        if file._descriptor >= 0:
            os.close(file._descriptor)
            file._descriptor = CLOSED
            self._with_descriptor.remove(file)

    def is_cached(self, descriptor: int, position: int, length: int) -> bool:
        """Whether a read would not wait, as far as a few probes tell. True where the kernel cannot say."""
        if not self._can_probe:
            return True
        one_byte = [bytearray(1)]
        last = position + length - 1
        try:
            for probed in range(position, last, PROBE_STEP):
                os.preadv(descriptor, one_byte, probed, os.RWF_NOWAIT)
            os.preadv(descriptor, one_byte, last, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            self._can_probe = False
        return True

    def read_file(self, path: str) -> bytes:
        try:
            descriptor = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_all(descriptor, 0, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        except OSError as error:
            failed("read", path, error)

    def write_file(self, path: str, data: bytes, *, sync: bool = False) -> None:
        temporary = f"{self._full(path)}.tmp"
        try:
            _write_new(temporary, data, sync=sync)
            os.replace(temporary, self._full(path))
        except OSError as error:
            failed("write", path, error)
        if sync:
            self.sync_directory(path.rpartition("/")[0])

    def write_in_place(self, path: str, data: bytes) -> None:
        try:
            _write_new(self._full(path), data, sync=False)
        except OSError as error:
            failed("write", path, error)

    def exists(self, path: str) -> bool:
        return os.path.exists(self._full(path))

    def modified_ms(self, path: str) -> int:
        try:
            return os.stat(self._full(path)).st_mtime_ns // 1_000_000
        except OSError as error:
            failed("look at", path, error)

    def list_directory(self, path: str) -> list[str]:
        try:
            return os.listdir(self._full(path))
        except OSError as error:
            failed("list", path, error)

    def make_directory(self, path: str) -> None:
        try:
            os.makedirs(self._full(path), exist_ok=True)
        except OSError as error:
            failed("make", path, error)

    def rename(self, path: str, to: str) -> None:
        with self._lock:
            try:
                os.rename(self._full(path), self._full(to))
            except OSError as error:
                failed("rename", path, error)
            replaced = self._files.pop(to, None)
            if replaced is not None:
                replaced._gone = True
                self._release(replaced)
            file = self._files.pop(path, None)
            if file is not None:
                self._move(file, to)
                return
            below = path + "/"
            for inside in [name for name in self._files if name.startswith(below)]:
                self._move(self._files.pop(inside), f"{to}/{inside[len(below) :]}")

    def _move(self, file: RealFile, to: str) -> None:
        file._path = to
        self._files[to] = file

    def remove(self, path: str) -> None:
        file = self._files.get(path)
        if file is not None:
            file.close()
        try:
            os.unlink(self._full(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            failed("remove", path, error)

    def remove_tree(self, path: str) -> None:
        below = path + "/"
        for inside in [name for name in self._files if name.startswith(below)]:
            self._files[inside].close()
        import shutil  # it brings every archive format's library: not for a broker that starts

        try:
            shutil.rmtree(self._full(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            failed("remove", path, error)

    def sync_file(self, path: str) -> None:
        try:
            descriptor = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            pass
        except OSError as error:
            failed("sync", path, error)

    def sync_directory(self, path: str) -> None:
        try:
            descriptor = os.open(self._full(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            failed("sync", path, error)

    def sync_everything(self) -> None:
        """Once for the whole file system: at a clean stop that is one wait instead of one for each of thousands of files."""
        import ctypes  # only here, and loading it takes longer than opening a hundred logs

        try:
            descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            failed("sync", self._root, error)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
                number = ctypes.get_errno()
                raise StorageFailed(f"sync {self._root}: {os.strerror(number)}")
        except AttributeError:
            os.sync()
        finally:
            os.close(descriptor)

    def free_bytes(self) -> int:
        try:
            figures = os.statvfs(self._root)
        except OSError as error:
            failed("look at", self._root, error)
        return figures.f_bavail * figures.f_frsize

    @property
    def descriptors_in_use(self) -> int:
        return len(self._with_descriptor)

    def close(self) -> None:
        for file in list(self._files.values()):
            file.close()


def _read_all(descriptor: int, position: int, length: int) -> bytes:
    if length <= 0:
        return b""
    data = os.pread(descriptor, length, position)
    if len(data) == length:
        return data
    # A single call gives at most 2 GiB, and a signal may cut it short.
    parts = [data]
    read = len(data)
    while read < length and data:
        data = os.pread(descriptor, length - read, position + read)
        parts.append(data)
        read += len(data)
    return b"".join(parts)


def _write_new(path: str, data: bytes, *, sync: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:] if written else data)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _usual_max_descriptors() -> int:
    """Connections need descriptors too: a quarter of what the process may have is for files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(LEAST_DESCRIPTORS, min(MOST_DESCRIPTORS, soft // 4 if soft > 0 else MOST_DESCRIPTORS))
