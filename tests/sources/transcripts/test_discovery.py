"""The files of a folder: each is read, listed with a reason, or a copy of one that is read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from windowpane.exceptions import UnknownFormatError
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for

ROW = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "hi"}}
LINE = json.dumps(ROW).encode() + b"\n"
EXCHANGE = {
    "request": {"method": "POST", "uri": "https://api.anthropic.com/v1/messages", "body": '{"messages": []}'},
    "response": {"status": 200, "body": "{}"},
}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", LINE, "claude_code"),
        ("A.JSONL", LINE, "claude_code"),
        ("a.ndjson", LINE, "claude_code"),
        ("a.har", json.dumps([EXCHANGE]).encode(), "api_exchanges"),
    ],
)
def test_files_are_found_by_every_suffix_of_their_format(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    """Upper case, `.ndjson` and the archives of browsers are looked at in a folder, as they are by their path."""
    (tmp_path / name).write_bytes(content)

    (found,) = files_of([tmp_path])
    assert reader_for(found, all_readers()).format == expected


@pytest.mark.parametrize(
    ("name", "compression"),
    [("a.jsonl.gz", "gzip"), ("a.json.bz2", "bzip2"), ("a.json.zst", "zstd"), ("a.json.zip", "ZIP")],
)
def test_files_that_were_compressed_by_hand_are_named_with_what_to_do(
    tmp_path: Path, name: str, compression: str
) -> None:
    magic = {"gzip": gzip.compress(LINE), "bzip2": b"BZh91AY", "zstd": b"\x28\xb5\x2f\xfd\0", "ZIP": b"PK\3\4\0"}
    (tmp_path / name).write_bytes(magic[compression])

    (found,) = files_of([tmp_path])
    with pytest.raises(UnknownFormatError, match=f"compressed with {compression}; unpack it first"):
        reader_for(found, all_readers())


def test_a_compressed_copy_of_a_file_is_not_another_recording(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINE)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(LINE))
    (tmp_path / "photos.tar.gz").write_bytes(gzip.compress(b"x"))

    assert [found.name for found in files_of([tmp_path])] == ["a.jsonl"]


def test_the_folders_beside_opencodes_messages_are_not_recordings(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    for name in ("message/ses_1/msg_1", "part/msg_1/prt_1", "session/global/ses_1", "session_diff/ses_1"):
        file = storage / f"{name}.json"
        file.parent.mkdir(parents=True)
        file.write_text("{}")

    assert list(files_of([tmp_path])) == [storage / "message" / "ses_1"]


def test_messages_of_opencodes_first_releases_are_below_the_folder_session(tmp_path: Path) -> None:
    for name in (
        "message/ses_2/msg_2",
        "part/msg_2/prt_2",
        "session/message/ses_1/msg_1",
        "session/part/x/prt_1",
    ):
        file = tmp_path / "storage" / f"{name}.json"
        file.parent.mkdir(parents=True)
        file.write_text("{}")

    assert [found.name for found in files_of([tmp_path])] == ["ses_2", "ses_1"]
