"""The metadata store port, and the embedded store behind it on a single node.

Shaped like etcd, which takes its place when there are several brokers: keys with values; one revision that every
transaction raises; each key remembers the revision that wrote it last (`mod_revision`); a transaction names the revisions
it believes in and happens whole or not at all. That comparison, not a lock, is what keeps two writers apart.

`SqliteMetadataStore` is durable when it says committed: a write-ahead log that is synced by every commit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from oncelog.waiting.later import Later

if TYPE_CHECKING:
    import sqlite3

FORMAT_VERSION = 1
#: In the file's header, so that nobody takes another program's database for ours ("once" in ASCII).
APPLICATION_ID = 0x6F6E6365

#: What a transaction expects of a key that must not be there.
ABSENT = 0


class Entry(NamedTuple):
    value: bytes
    mod_revision: int


@dataclass(frozen=True, slots=True)
class Transaction:
    #: New values by key; None removes the key.
    writes: dict[str, bytes | None]
    #: The revision each of these keys must have been written by last, or ABSENT.
    expected: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    revision: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else wrote this key in between: read again, decide again."""

    key: str


@dataclass(frozen=True, slots=True)
class CommitFailed:
    why: str


Outcome: TypeAlias = Committed | Conflict | CommitFailed


class MetadataUnusable(Exception):
    """The store cannot be used as it is found; says why and what to do."""


class MetadataStore(Protocol):
    def load(self, prefix: str = "") -> dict[str, Entry]:
        """All keys that begin with `prefix`. Blocks: for the start, before anybody is served."""
        ...

    def commit_now(self, transaction: Transaction) -> Outcome:
        """Commit and wait for it: for the start, too."""
        ...

    def commit(self, transaction: Transaction) -> Later[Outcome]: ...

    def close(self) -> None: ...


class SqliteMetadataStore:
    __slots__ = ("_path", "_call_soon", "_connection", "_lock", "_committing")

    def __init__(self, path: Path, call_soon: Callable[[Callable[[], None]], object]) -> None:
        """Open the store, made if it is not there. `call_soon` runs a function on the node's own thread and may be called
        from any other. Raises MetadataUnusable."""
        self._path = path
        self._call_soon = call_soon
        # Commits run in worker threads; whoever holds the connection holds this.
        self._lock = Lock()
        self._committing: set[Thread] = set()
        self._connection = _open(path)

    def load(self, prefix: str = "") -> dict[str, Entry]:
        with self._lock:
            rows = self._connection.execute(
                # The first string that does not begin with the prefix ends the range.
                "SELECT key, value, mod_revision FROM metadata WHERE key >= ? AND key < ?",
                (prefix, prefix + "\U0010ffff"),
            )
            return {key: Entry(value, mod_revision) for key, value, mod_revision in rows}

    def commit(self, transaction: Transaction) -> Later[Outcome]:
        answer: Later[Outcome] = Later()

        def work() -> None:
            try:
                outcome = self.commit_now(transaction)
            except Exception as bug:  # an answer that never came would hold up every later change
                outcome = CommitFailed(f"{self._path}: {bug!r}")
            self._call_soon(lambda: finish(outcome))

        def finish(outcome: Outcome) -> None:
            self._committing.discard(thread)
            answer.complete(outcome)

        # A thread each: a topic is created now and then, and an idle worker would cost every broker its memory.
        thread = Thread(target=work, name="metadata-commit", daemon=True)
        self._committing.add(thread)
        thread.start()
        return answer

    def commit_now(self, transaction: Transaction) -> Outcome:
        import sqlite3

        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                outcome = self._write(transaction)
                if isinstance(outcome, Committed):
                    self._connection.execute("COMMIT")
                return outcome
            except sqlite3.Error as problem:
                return CommitFailed(f"{self._path}: {problem}")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def close(self) -> None:
        for thread in self._committing:
            thread.join()
        self._connection.close()

    def _write(self, transaction: Transaction) -> Committed | Conflict:
        execute = self._connection.execute
        for key, expected in transaction.expected.items():
            row = execute("SELECT mod_revision FROM metadata WHERE key = ?", (key,)).fetchone()
            if (row[0] if row is not None else ABSENT) != expected:
                return Conflict(key)
        execute("UPDATE revision SET current = current + 1")
        revision: int = execute("SELECT current FROM revision").fetchone()[0]
        self._connection.executemany(
            "INSERT OR REPLACE INTO metadata (key, value, mod_revision) VALUES (?, ?, ?)",
            [(key, value, revision) for key, value in transaction.writes.items() if value is not None],
        )
        self._connection.executemany(
            "DELETE FROM metadata WHERE key = ?",
            [(key,) for key, value in transaction.writes.items() if value is None],
        )
        return Committed(revision)


def _open(path: Path) -> "sqlite3.Connection":
    import sqlite3  # some milliseconds that whoever imports the port alone need not pay

    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as problem:
        raise MetadataUnusable(f"cannot open the metadata store {path}: {problem}") from problem
    try:
        _prepare(connection, path)
    except sqlite3.Error as problem:
        connection.close()
        raise MetadataUnusable(
            f"{path} is not a metadata store that can be read ({problem}): restore it, or use another data directory"
        ) from problem
    except MetadataUnusable:
        connection.close()
        raise
    return connection


def _prepare(connection: "sqlite3.Connection", path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise MetadataUnusable(f"{path} is another program's database: use another data directory")
    if version > FORMAT_VERSION:
        raise MetadataUnusable(
            f"{path} was written by a newer Oncelog (format {version}, this one knows up to {FORMAT_VERSION}): "
            "run that version, or use another data directory"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if not tables:
        connection.executescript(f"""
            BEGIN;
            CREATE TABLE metadata (key TEXT PRIMARY KEY, value BLOB NOT NULL, mod_revision INTEGER NOT NULL) WITHOUT ROWID;
            CREATE TABLE revision (current INTEGER NOT NULL);
            INSERT INTO revision VALUES (0);
            PRAGMA application_id = {APPLICATION_ID};
            PRAGMA user_version = {FORMAT_VERSION};
            COMMIT;
        """)
