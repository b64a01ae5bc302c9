"""The log of records on disk: groups, bounds, crashes and damage."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest

from windowpane.effects import record_log
from windowpane.effects.record_log import RecordLog, RecordLogFullError


def contents(folder: Path) -> list[bytes]:
    """Return what the next process reads."""
    log = RecordLog(folder)
    read = [record.content for record in log.earlier()]
    log.close()
    return read


def written(folder: Path, *records: bytes, **limits: int) -> list[Path]:
    """Write records and return the files that hold them."""
    log = RecordLog(folder, **limits)
    for record in records:
        log.sync(log.append(record))
    log.close()
    return sorted(folder.glob("*.records"))


def test_records_are_read_by_the_next_process_in_order(tmp_path: Path) -> None:
    files = written(tmp_path / "log", *(b"%d" % number * 100 for number in range(30)), file_bytes=1_000)

    assert len(files) > 2
    for _ in range(2):
        assert contents(tmp_path / "log") == [b"%d" % number * 100 for number in range(30)]


def test_the_files_are_private(tmp_path: Path) -> None:
    (file,) = written(tmp_path / "log", b"content")

    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_numbers_go_on_in_the_next_process(tmp_path: Path) -> None:
    written(tmp_path / "log", b"a", b"b")
    log = RecordLog(tmp_path / "log")

    assert log.append(b"c") == 2
    log.close()


@pytest.mark.parametrize("cut", [1, 5, 20, 25])
def test_a_torn_end_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture, cut: int) -> None:
    (file,) = written(tmp_path / "log", b"first", b"second")
    os.truncate(file, file.stat().st_size - cut)

    assert contents(tmp_path / "log") == [b"first"]
    assert not caplog.records


def test_zeros_at_the_end_are_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (file,) = written(tmp_path / "log", b"first")
    os.truncate(file, file.stat().st_size + 500)

    assert contents(tmp_path / "log") == [b"first"]
    assert not caplog.records


def test_a_damaged_record_costs_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The file is reported, and set aside where it would be deleted."""
    (file,) = written(tmp_path / "log", b"first", b"second", b"third")
    file.write_bytes(file.read_bytes().replace(b"second", b"sEcond"))
    with caplog.at_level(logging.ERROR):
        log = RecordLog(tmp_path / "log")

    assert [record.content for record in log.earlier()] == [b"first", b"third"]
    assert "is damaged" in caplog.text
    log.release(log.next_number)
    log.close()
    assert [path.suffix for path in sorted((tmp_path / "log").iterdir()) if path.suffix] == [".set-aside"]
    assert contents(tmp_path / "log") == []


@pytest.mark.parametrize("content", [b"", b"windowpane", b"something else" * 10, bytes(1_000)])
def test_a_file_that_is_no_log_does_not_stop_the_next_one(tmp_path: Path, content: bytes) -> None:
    (file,) = written(tmp_path / "log", b"first")
    file.write_bytes(content)
    written(tmp_path / "log", b"second")

    assert contents(tmp_path / "log") == [b"second"]


def test_every_byte_may_be_damaged(tmp_path: Path) -> None:
    records = [b"record %d" % number for number in range(4)]
    (file,) = written(tmp_path / "log", *records)
    whole = file.read_bytes()
    for position in range(len(whole)):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        assert set(contents(tmp_path / "log")) < set(records)


def test_a_full_log_takes_no_more_until_records_are_released(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "log", capacity_bytes=1_000, file_bytes=400)
    numbers = [log.append(bytes(200)) for _ in range(4)]
    with pytest.raises(RecordLogFullError):
        log.append(bytes(200))
    log.append(bytes(200), is_bounded=False)

    assert log.size <= 1_400
    assert log.can_release(numbers[2])
    log.release(numbers[2])
    log.append(bytes(200))
    log.close()


def test_only_files_without_needed_records_are_deleted(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "log", file_bytes=100)
    numbers = [log.append(b"%d" % number * 60) for number in range(6)]
    log.release(numbers[3])
    log.close()
    remaining = contents(tmp_path / "log")

    assert remaining[-3:] == [b"%d" % number * 60 for number in range(3, 6)]
    assert len(remaining) < 6
    log = RecordLog(tmp_path / "log")
    log.release(log.next_number)
    log.close()
    assert list((tmp_path / "log").glob("*.records")) == []


def test_two_processes_have_two_logs(tmp_path: Path) -> None:
    first = RecordLog.beside(tmp_path / "store.db", "otlp")
    second = RecordLog.beside(tmp_path / "store.db", "otlp")

    assert (first.folder.name, second.folder.name) == ("store.db.otlp", "store.db.otlp-2")
    first.close()
    second.close()


def test_a_log_that_several_processes_wrote_is_read_by_the_next_ones(tmp_path: Path) -> None:
    """The second one, too, where only one process runs from then on."""
    logs = [RecordLog.beside(tmp_path / "store.db", "otlp") for _ in range(2)]
    for number, log in enumerate(logs):
        log.sync(log.append(b"%d" % number))
        log.close()

    found = []
    for _ in range(3):
        log = RecordLog.beside(tmp_path / "store.db", "otlp")
        found.append([record.content for record in log.earlier()])
        log.release(log.next_number)
        log.close()

    assert found == [[b"0"], [b"1"], []]


def test_one_sync_serves_all_that_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RecordLog(tmp_path / "log")
    syncs, slow = list[int](), threading.Event()

    def make_durable(descriptor: int) -> None:
        syncs.append(descriptor)
        slow.wait(5)

    monkeypatch.setattr(record_log, "_make_durable", make_durable)
    threads = [threading.Thread(target=lambda: log.sync(log.append(b"x"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    while log.next_number < 20:
        slow.wait(0.01)
    slow.set()
    for thread in threads:
        thread.join()

    assert len(syncs) == 2
    log.close()


def test_a_failed_sync_is_never_taken_for_a_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RecordLog(tmp_path / "log")
    number = log.append(b"lost")
    failing = [True]

    def make_durable(descriptor: int) -> None:
        if failing:
            failing.clear()
            raise OSError(5, "Input/output error")
        os.fsync(descriptor)

    monkeypatch.setattr(record_log, "_make_durable", make_durable)
    for _ in range(2):
        with pytest.raises(OSError, match="durable"):
            log.sync(number)
    later = log.append(b"kept")
    log.sync(later)
    log.close()

    assert len(list((tmp_path / "log").glob("*.records"))) == 2


def test_a_part_of_a_record_is_cut_off_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RecordLog(tmp_path / "log")
    log.append(b"first")

    def write_a_part(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[:9])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(record_log, "_write", write_a_part)
        with pytest.raises(OSError, match="No space"):
            log.append(b"second")
    log.append(b"third")
    log.close()

    assert contents(tmp_path / "log") == [b"first", b"third"]
