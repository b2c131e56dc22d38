"""Making a log durable without holding up the node: the sync runs in a worker thread, what it achieved is noted afterwards.

task = log.unflushed()        on the node's thread: what is there to sync, as of now
task.run()                    in a worker thread; StorageFailed if the device refused: then nothing is known of those bytes
task.done()                   on the node's thread again: the log's flushed offset moves
"""

from collections.abc import Callable, Sequence

from oncelog.log.storage import Disk, File


class FlushTask:
    __slots__ = ("_disk", "_files", "_paths", "_directory", "_note")

    def __init__(
        self, disk: Disk, files: Sequence[File], paths: Sequence[str], directory: str | None, note: Callable[[], None]
    ) -> None:
        self._disk = disk
        self._files = files
        self._paths = paths
        self._directory = directory
        self._note = note

    def run(self) -> None:
        for path in self._paths:
            self._disk.sync_file(path)
        for file in self._files:
            file.sync()
        if self._directory is not None:
            # A new file is only there after a crash if its name is, too.
            self._disk.sync_directory(self._directory)

    def done(self) -> None:
        self._note()
