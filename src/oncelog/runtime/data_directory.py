"""A data directory: one process at a time has it, it knows whose it is, and whether its last owner stopped cleanly.

- `.lock` is held with flock for as long as the process lives, whatever way it ends, and names its pid. The file itself stays.
- `meta.properties` says which cluster and node the data belongs to: another node's directory is refused, not mixed in.
- `.kafka_cleanshutdown` is there only between a clean stop and the next start; it is written once all else is on stable storage.
"""

import fcntl
import os
from pathlib import Path

from oncelog.log.checkpoints import (
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    NO_BROKER_EPOCH,
    CorruptCheckpoint,
    MetaProperties,
    read_meta_properties,
    write_clean_shutdown,
    write_meta_properties,
)
from oncelog.log.file_names import DELETED_DIRECTORY
from oncelog.model.topic_id import topic_id_text
from oncelog.runtime.disk import RealDisk

LOCK = ".lock"


class DataDirectoryUnusable(Exception):
    """Somebody else has the directory, or it is somebody else's. The text says who, and what to do."""


class DataDirectory:
    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock
        self._disk = RealDisk(path)

    @classmethod
    def open(cls, path: Path) -> "DataDirectory":
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise DataDirectoryUnusable(f"data directory {path}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(lock)
            raise DataDirectoryUnusable(
                f"data directory {path} is in use by process {holder}: stop that one, or give this one a directory of its own"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return cls(path, lock)

    def close(self) -> None:
        """Let the next one have it."""
        self._disk.close()
        os.close(self._lock)

    # Whose it is

    def read_meta_properties(self) -> MetaProperties | None:
        """None for a new directory."""
        if not self._disk.exists(META_PROPERTIES):
            return None
        try:
            return read_meta_properties(self._disk.read_file(META_PROPERTIES))
        except CorruptCheckpoint as problem:
            raise DataDirectoryUnusable(f"{self.path / META_PROPERTIES} cannot be read: {problem}") from problem

    def write_meta_properties(self, cluster_id: str, node_id: int) -> None:
        """Make the directory this node's. It may be new or this node's already, nobody else's."""
        present = self.read_meta_properties()
        if present is None:
            properties = MetaProperties(cluster_id, node_id, topic_id_text(os.urandom(16)))
            self._disk.write_file(META_PROPERTIES, write_meta_properties(properties))
        elif (present.cluster_id, present.node_id) != (cluster_id, node_id):
            raise DataDirectoryUnusable(
                f"data directory {self.path} belongs to node {present.node_id} of cluster {present.cluster_id}, this is node "
                f"{node_id} of cluster {cluster_id}: check node.id and the directory, or use an empty one"
            )

    # Clean or not

    def take_clean_shutdown_marker(self) -> bool:
        """Whether the last owner stopped cleanly. The marker is gone afterwards: from here on a crash is one."""
        clean = self._disk.exists(CLEAN_SHUTDOWN)
        self._disk.remove(CLEAN_SHUTDOWN)
        return clean

    def mark_clean_shutdown(self, broker_epoch: int = NO_BROKER_EPOCH) -> None:
        """Every log is closed. Once all of that is on stable storage, say so."""
        self._disk.sync_everything()
        self._disk.write_file(CLEAN_SHUTDOWN, write_clean_shutdown(broker_epoch))

    # What a crash left

    def remove_deleted_partitions(self) -> list[str]:
        """Finish the deletion of topics that a crash interrupted. The directories removed."""
        doomed = [name for name in self._disk.list_directory("") if name.endswith(DELETED_DIRECTORY)]
        for name in doomed:
            self._disk.remove_tree(name)
        return doomed
