"""Opening a log: what an earlier run left in the directory becomes segments, producer state and leader epochs.

After a clean stop the files are as they were written: the last segment's indexes are read, and the producer snapshot taken at the
end of the log. After a crash every segment from the recovery point on is read in full: a batch counts if it is whole, its CRC
matches and its offsets follow the ones before; at the first that does not, the log ends, and what lies behind is cut off. Indexes
and producer state of these segments are rebuilt. What was flushed lies before the recovery point, so nothing acknowledged under
the flush policy is cut.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from oncelog.log.batch_scan import headers
from oncelog.log.checkpoints import CorruptCheckpoint, read_leader_epochs, write_leader_epochs
from oncelog.log.file_names import (
    CLEANED,
    DELETED,
    INDEXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    SEGMENT_FILES,
    SWAP,
    TEMPORARY,
    offset_of,
    segment_file,
)
from oncelog.log.leader_epochs import LeaderEpochs
from oncelog.log.offset_index import LARGEST_RELATIVE_OFFSET
from oncelog.log.producer_snapshots import ProducerSnapshots
from oncelog.log.producer_state import ProducerState
from oncelog.log.segment import Segment
from oncelog.log.storage import Disk
from oncelog.log.transaction_index import AbortedTransaction, TransactionIndex
from oncelog.model.bytes_like import BytesLike
from oncelog.records.batch import (
    CRC_COVERS_FROM,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    Corruption,
    read_header,
)
from oncelog.records.control import read_control_record
from oncelog.records.crc32c import crc32c

READ_SIZE = 4 << 20
LARGEST_OFFSET = 2**63 - 1


@dataclass(slots=True)
class LoadedLog:
    segments: list[Segment]
    producers: ProducerState
    epochs: LeaderEpochs
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    #: What a recovery cut off, for the log of the one who opened it.
    truncated_bytes: int = 0
    #: It was found as a clean stop leaves it: nothing was read through, and everything is on stable storage.
    resumed: bool = False
    #: And the next stop need not write its indexes and snapshot, should nothing be appended until then.
    files_complete: bool = False


def load_log(
    disk: Disk,
    directory: str,
    index_interval_bytes: int,
    *,
    clean_shutdown: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
) -> LoadedLog:
    names = tidy_directory(disk, directory)
    bases = sorted(offset for name in names if name.endswith(LOG) and (offset := offset_of(name)) is not None)
    epochs = _read_epochs(disk, directory, names)
    epochs_on_disk = epochs.entries
    snapshots = ProducerSnapshots(disk, directory, names)
    snapshots.remove_strays(bases)
    segments = [Segment(disk, directory, base, index_interval_bytes) for base in bases]
    if not segments:
        segments = [Segment.create(disk, directory, log_start_offset, index_interval_bytes)]
    start_offset = max(log_start_offset, segments[0].base_offset)
    loaded = LoadedLog(segments, ProducerState(), epochs, snapshots, start_offset, start_offset)
    if not (clean_shutdown and _resume(loaded)):
        _recover(loaded, recovery_point)
    if loaded.log_end_offset < start_offset:
        # The log was cut before the point where it starts: nothing in it may be read, so it starts anew.
        for segment in reversed(segments):
            segment.remove()
        segments[:] = [Segment.create(disk, directory, start_offset, index_interval_bytes)]
        loaded.log_end_offset = start_offset
    epochs.truncate_from(loaded.log_end_offset)
    epochs.truncate_before(start_offset)
    if epochs.entries != epochs_on_disk:
        disk.write_file(f"{directory}/{LEADER_EPOCH_CHECKPOINT}", write_leader_epochs(epochs.entries))
    return loaded


def _resume(loaded: LoadedLog) -> bool:
    """Take the last segment as a clean stop left it. False if it is not what a clean stop leaves."""
    try:
        end_offset, loaded.files_complete = loaded.segments[-1].indexes.resume()
        loaded.producers = rebuild_producers(loaded.segments, loaded.snapshots, end_offset)
    except CorruptBatch:
        return False
    loaded.log_end_offset = end_offset
    loaded.resumed = True
    return True


# Files of unfinished business


def tidy_directory(disk: Disk, directory: str) -> list[str]:
    """Remove what a crash left half done, finish what it left nearly done. The files that are there now."""
    names = set(disk.list_directory(directory))
    doomed = {name for name in names if name.endswith((DELETED, CLEANED, TEMPORARY))}
    swaps = {name for name in names if name.endswith(SWAP)}
    if not doomed and not swaps:
        return _without_orphans(disk, directory, names)
    # Compaction calls all its files .swap, the log last, before it touches an original: until then the originals count.
    doomed |= {name for name in swaps if segment_file(offset_of(name) or 0, LOG, SWAP) not in swaps}
    for name in doomed:
        disk.remove(f"{directory}/{name}")
    names -= doomed
    swaps -= doomed
    for swap in sorted(name for name in swaps if name.endswith(LOG + SWAP)):
        for name in _replaced_by(disk, directory, swap, names - swaps):
            disk.remove(f"{directory}/{name}")
            names.discard(name)
    for swap in sorted(swaps):
        final = swap.removesuffix(SWAP)
        disk.rename(f"{directory}/{swap}", f"{directory}/{final}")
        names.discard(swap)
        names.add(final)
    return _without_orphans(disk, directory, names)


def _replaced_by(disk: Disk, directory: str, swap: str, names: set[str]) -> list[str]:
    """The files of segments whose offsets the swapped-in segment covers."""
    base_offset = offset_of(swap) or 0
    segment = Segment(disk, directory, base_offset, 0, suffix=SWAP)
    end_offset = base_offset + 1
    try:
        for _, header in headers(segment.file):
            end_offset = max(end_offset, header.next_offset)
    except CorruptBatch:
        pass
    segment.close()
    return [
        name for name in names if name.endswith(SEGMENT_FILES) and base_offset <= (offset_of(name) or 0) < end_offset
    ]


def _without_orphans(disk: Disk, directory: str, names: set[str]) -> list[str]:
    """An index without its log is of no use and would be taken for one of a later segment."""
    orphans = [
        name
        for name in names
        if name.endswith(INDEXES) and (offset := offset_of(name)) is not None and segment_file(offset, LOG) not in names
    ]
    for name in orphans:
        disk.remove(f"{directory}/{name}")
        names.discard(name)
    return list(names)


def _read_epochs(disk: Disk, directory: str, names: list[str]) -> LeaderEpochs:
    if LEADER_EPOCH_CHECKPOINT not in names:
        return LeaderEpochs()
    try:
        return LeaderEpochs(read_leader_epochs(disk.read_file(f"{directory}/{LEADER_EPOCH_CHECKPOINT}")))
    except CorruptCheckpoint:
        return LeaderEpochs()


# Reading a log after a crash


def _recover(loaded: LoadedLog, recovery_point: int) -> None:
    """Check every segment from the recovery point on, and cut the log at the first bad byte."""
    segments = loaded.segments
    first = max(0, bisect_right([segment.base_offset for segment in segments], recovery_point) - 1)
    next_offset = segments[first].base_offset
    producers = rebuild_producers(segments[:first], loaded.snapshots, next_offset)
    for number in range(first, len(segments)):
        segment = segments[number]
        size = segment.size
        next_offset = recover_segment(segment, max(next_offset, segment.base_offset), producers, loaded.epochs)
        if segment.size < size:
            doomed = segments[number + 1 :]
            loaded.truncated_bytes = size - segment.size + sum(later.size for later in doomed)
            for later in reversed(doomed):
                later.remove()
            del segments[number + 1 :]
            break
    for segment in segments[first:-1]:
        segment.write_indexes()
        segment.release_indexes()
    loaded.producers = producers
    loaded.log_end_offset = next_offset
    loaded.snapshots.remove_above(next_offset)


def recover_segment(segment: Segment, next_offset: int, producers: ProducerState, epochs: LeaderEpochs) -> int:
    """Read the whole segment, rebuild its indexes, cut it at the first bad byte. The offset at which it ends.

    One loop with few calls in it: a segment may hold millions of small batches, and somebody waits for the start.
    """
    indexes = segment.indexes
    indexes.start()
    position, whole, size = 0, 0, segment.size
    largest_offset = segment.base_offset + LARGEST_RELATIVE_OFFSET
    try:
        while position < size:
            data = segment.file.read_at(position, max(READ_SIZE, segment.header_at(position).size))
            view = memoryview(data)
            at, end = 0, len(data)
            while at + HEADER_SIZE <= end:
                fields = HEADER.unpack_from(data, at)
                (
                    base_offset,
                    batch_length,
                    leader_epoch,
                    magic,
                    crc,
                    _,
                    last_offset_delta,
                    _,
                    _,
                    producer_id,
                    _,
                    _,
                    _,
                ) = fields
                following = at + batch_length + LOG_OVERHEAD
                if following > end:
                    break
                last_offset = base_offset + last_offset_delta
                if (
                    magic != MAGIC
                    or batch_length < HEADER_SIZE - LOG_OVERHEAD
                    # A batch that is whole but out of place is a remnant of something else.
                    or not next_offset <= base_offset <= last_offset <= largest_offset
                    or crc32c(view[at + CRC_COVERS_FROM : following]) != crc
                ):
                    raise CorruptBatch(Corruption.UNREADABLE_RECORDS, f"at {position + at}")
                header: BatchHeader = tuple.__new__(BatchHeader, fields)
                if producer_id >= 0:
                    aborted = replay(producers, header, data, at)
                    if aborted is not None:
                        segment.add_aborted(aborted)
                if leader_epoch > epochs.latest:
                    epochs.assign(leader_epoch, base_offset)
                indexes.count(position + at, following - at, last_offset, header.max_timestamp)
                next_offset = last_offset + 1
                at = following
                whole = position + at
            if not at:
                raise CorruptBatch(Corruption.TRUNCATED, f"the batch at {position} cannot be read whole")
            position = whole
    except CorruptBatch:
        segment.file.truncate(whole)
    return next_offset


def whole_batches(segment: Segment, position: int = 0) -> Iterator[tuple[int, BatchHeader, bytes, int]]:
    """Every batch until the first that is not whole: its position, its header, bytes that hold it and its place in them."""
    size = segment.size
    start, data = position, b""
    while position < size:
        at = position - start
        try:
            header = read_header(data, at)
        except CorruptBatch:
            # Cut off by the end of what was read last, or bad: the file tells.
            try:
                needed = segment.header_at(position).size
            except CorruptBatch:
                return
            data = segment.file.read_at(position, max(READ_SIZE, needed))
            start, at = position, 0
            header = read_header(data)
        yield position, header, data, at
        position += header.size


# Producer state


def replay(producers: ProducerState, header: BatchHeader, data: BytesLike, at: int) -> AbortedTransaction | None:
    """What a batch of the log says about its producer; the transaction it aborted."""
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.apply_batch(header, header.base_offset)
        return None
    if not header.record_count:
        return None  # compaction took the marker and left the batch for its producer's sake
    completed = producers.apply_marker(header, read_control_record(data, at), header.base_offset)
    if completed is None or not completed.aborted:
        return None
    return AbortedTransaction(
        completed.producer_id, completed.first_offset, completed.last_offset, completed.last_stable_offset
    )


def rebuild_producers(segments: list[Segment], snapshots: ProducerSnapshots, end_offset: int) -> ProducerState:
    """Producer state at `end_offset`: the last snapshot before it, and what the log says from there on."""
    producers, from_offset = snapshots.load_last(end_offset)
    first = max(0, bisect_right([segment.base_offset for segment in segments], from_offset) - 1)
    for segment in segments[first:]:
        if from_offset >= end_offset:
            break
        for position, header in headers(segment.file, segment.position_of(from_offset)):
            if header.base_offset >= end_offset:
                return producers
            if header.producer_id >= 0:
                data = segment.file.read_at(position, header.size) if header.is_control else b""
                replay(producers, header, data, 0)
    return producers


def rebuild_transaction_index(segments: list[Segment], number: int, snapshots: ProducerSnapshots) -> TransactionIndex:
    """Of a segment whose transaction index is damaged: replay the segment with the state its producers had when it began."""
    segment = segments[number]
    producers = rebuild_producers(segments[:number], snapshots, segment.base_offset)
    index = TransactionIndex()
    for _, header, data, at in whole_batches(segment):
        aborted = replay(producers, header, data, at)
        if aborted is not None:
            index.append(aborted)
    segment.indexes.write_transactions(index)
    return index
