"""The embedded store, on real files."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from oncelog.runtime.metadata_store import (
    ABSENT,
    FORMAT_VERSION,
    CommitFailed,
    Committed,
    Conflict,
    Entry,
    MetadataUnusable,
    SqliteMetadataStore,
    Transaction,
)


def at_once(run):
    run()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metadata.sqlite"


@pytest.fixture
def store(path):
    store = SqliteMetadataStore(path, at_once)
    yield store
    store.close()


def test_what_was_committed_is_there_after_a_restart(path):
    store = SqliteMetadataStore(path, at_once)
    store.commit_now(Transaction({"topics/a": b"1", "topics/b": b"2", "other": b"3"}))
    store.commit_now(Transaction({"topics/b": None, "topics/c": b"4"}))
    store.close()

    reopened = SqliteMetadataStore(path, at_once)
    try:
        assert reopened.load() == {"topics/a": Entry(b"1", 1), "other": Entry(b"3", 1), "topics/c": Entry(b"4", 2)}
        assert reopened.load("topics/") == {"topics/a": Entry(b"1", 1), "topics/c": Entry(b"4", 2)}
        assert reopened.commit_now(Transaction({"x": b""})) == Committed(3)
    finally:
        reopened.close()


def test_a_transaction_happens_only_if_nobody_wrote_in_between(store):
    store.commit_now(Transaction({"a": b"1"}, expected={"a": ABSENT}))
    store.commit_now(Transaction({"a": b"2"}, expected={"a": 1}))

    assert store.commit_now(Transaction({"a": b"3", "b": b"3"}, expected={"b": ABSENT, "a": 1})) == Conflict("a")
    assert store.commit_now(Transaction({"a": b"3"}, expected={"a": ABSENT})) == Conflict("a")
    assert store.commit_now(Transaction({"c": b"3"}, expected={"c": 1})) == Conflict("c")

    assert store.load() == {"a": Entry(b"2", 2)}


def test_a_key_that_was_removed_and_made_again_is_not_the_same_key(store):
    store.commit_now(Transaction({"a": b"1"}))
    store.commit_now(Transaction({"a": None}))
    store.commit_now(Transaction({"a": b"1"}))

    assert store.commit_now(Transaction({"a": b"2"}, expected={"a": 1})) == Conflict("a")
    assert store.commit_now(Transaction({"a": b"2"}, expected={"a": 3})) == Committed(4)


def test_a_commit_runs_elsewhere_and_is_answered_on_the_nodes_own_thread(path):
    handed_over: list[tuple[int, object]] = []
    arrived = threading.Event()

    def call_soon(run):
        handed_over.append((threading.get_ident(), run))
        arrived.set()

    store = SqliteMetadataStore(path, call_soon)
    answer = store.commit(Transaction({"a": b"1"}))
    assert arrived.wait(10)

    worker, run = handed_over[0]
    assert worker != threading.get_ident()
    assert not answer.done
    run()
    assert answer.value == Committed(1)
    store.close()


def test_a_commit_that_goes_wrong_in_its_thread_is_answered_too(path):
    arrived = threading.Event()
    store = SqliteMetadataStore(path, lambda run: (run(), arrived.set()))

    answer = store.commit(Transaction(writes=None))

    assert arrived.wait(10)
    assert isinstance(answer.value, CommitFailed)
    assert store.commit_now(Transaction({"a": b"1"})) == Committed(1)
    store.close()


def test_closing_waits_for_a_commit_that_is_under_way(path):
    store = SqliteMetadataStore(path, lambda run: None)
    for number in range(20):
        store.commit(Transaction({f"key-{number}": b"1"}))
    store.close()

    reopened = SqliteMetadataStore(path, at_once)
    assert len(reopened.load()) == 20
    reopened.close()


def test_a_store_that_cannot_write_says_so_and_keeps_what_it_has(path, store):
    store.commit_now(Transaction({"a": b"1"}))
    blocker = sqlite3.connect(path, isolation_level=None)
    store._connection.execute("PRAGMA busy_timeout = 0")
    blocker.execute("BEGIN IMMEDIATE")

    outcome = store.commit_now(Transaction({"a": b"2"}))

    assert isinstance(outcome, CommitFailed)
    assert str(path) in outcome.why
    blocker.close()
    assert store.load() == {"a": Entry(b"1", 1)}
    assert store.commit_now(Transaction({"a": b"2"})) == Committed(2)


def test_a_store_of_a_newer_format_is_refused_with_a_way_out(path):
    SqliteMetadataStore(path, at_once).close()
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    newer.close()

    with pytest.raises(MetadataUnusable, match=r"newer Oncelog \(format 2, this one knows up to 1\): run that version"):
        SqliteMetadataStore(path, at_once)


def test_a_file_that_is_no_store_is_refused(path):
    path.write_bytes(b"not a database, but long enough to be looked at as one " * 40)

    with pytest.raises(MetadataUnusable, match="not a metadata store"):
        SqliteMetadataStore(path, at_once)


def test_another_programs_database_is_refused(path):
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE customers (name TEXT)")
    foreign.commit()
    foreign.close()

    with pytest.raises(MetadataUnusable, match="another program's database"):
        SqliteMetadataStore(path, at_once)


def test_a_directory_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(MetadataUnusable, match="cannot open"):
        SqliteMetadataStore(tmp_path / "missing" / "metadata.sqlite", at_once)


KILLED_AFTER_COMMITTING = """
import os, sys
from pathlib import Path
from oncelog.runtime.metadata_store import SqliteMetadataStore, Transaction
store = SqliteMetadataStore(Path(sys.argv[1]), lambda run: run())
for number in range(30):
    store.commit_now(Transaction({f"key-{number}": b"1"}))
    print(number, flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_was_committed_survives_a_kill(path):
    source = Path(__file__).parents[3] / "src"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AFTER_COMMITTING, str(path)],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr
    committed = len(killed.stdout.split())

    store = SqliteMetadataStore(path, at_once)
    assert committed == 30
    assert len(store.load()) == committed
    store.close()
