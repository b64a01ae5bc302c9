"""Physical lines: whatever is on disk, sound objects come out and the rest is reported with its line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.json_lines import JsonRow, read_rows
from windowpane.sources.transcripts.reader import MAXIMUM_PROBLEMS, FileStats, Problem, ProblemLog


class Read:
    """The result of reading some bytes."""

    def __init__(self, tmp_path: Path, content: bytes, *, limit_bytes: int = 1_000_000) -> None:
        path = tmp_path / "file.jsonl"
        path.write_bytes(content)
        self.stats = FileStats()
        self.problems: list[Problem] = []
        self.rows: list[JsonRow] = list(
            read_rows(path, ProblemLog(path, self.stats, self.problems), limit_bytes=limit_bytes)
        )
        self.values = [row.value for row in self.rows if row.value is not None]
        self.lost = [row.line for row in self.rows if row.value is None]


def test_objects_come_with_their_lines(tmp_path: Path) -> None:
    read = Read(tmp_path, b'{"a":1}\n\n  \n{"a":2}\n')

    assert [(row.line, row.value) for row in read.rows] == [(1, {"a": 1}), (4, {"a": 2})]
    assert not read.problems


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_file_gives_nothing(tmp_path: Path, content: bytes) -> None:
    assert not Read(tmp_path, content).rows


def test_byte_order_mark_and_carriage_returns_are_harmless(tmp_path: Path) -> None:
    read = Read(tmp_path, b'\xef\xbb\xbf{"a":1}\r\n{"a":2}\r\n')

    assert read.values == [{"a": 1}, {"a": 2}]
    assert not read.problems


def test_two_objects_on_one_line_are_both_used(tmp_path: Path) -> None:
    read = Read(tmp_path, b'{"a":1}{"a":2}\n{"a":3}\n')

    assert read.values == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert read.stats.bad_lines == 1
    assert [(problem.line, problem.severity) for problem in read.problems] == [(1, "odd")]
    assert not read.lost


def test_what_follows_a_sound_object_is_lost_alone(tmp_path: Path) -> None:
    read = Read(tmp_path, b'{"a":1}rubbish\n')

    assert read.values == [{"a": 1}]
    assert read.lost == [1]
    assert read.problems[0].severity == "bad"


def test_truncated_last_line_is_reported_as_truncated(tmp_path: Path) -> None:
    read = Read(tmp_path, b'{"a":1}\n{"a": "unfini')

    assert [(row.line, row.last) for row in read.rows] == [(1, False), (2, True)]
    assert "cut off" in read.problems[0].problem


def test_invalid_utf8_is_replaced_and_reported(tmp_path: Path) -> None:
    read = Read(tmp_path, b'{"a":"x\xffy"}\n')

    assert read.values == [{"a": "x�y"}]
    assert "UTF-8" in read.problems[0].problem


def test_binary_line_is_skipped(tmp_path: Path) -> None:
    read = Read(tmp_path, b'{"a":\0\0\0}\n\0\0{"a":2}\n\0\0\0\n')

    assert read.values == [{"a": 2}]
    assert read.lost == [1]
    assert read.stats.bad_lines == 3


@pytest.mark.parametrize("line", [b"42", b"[1]", b'"text"', b"null", b"true"])
def test_rows_that_are_not_objects_are_odd(tmp_path: Path, line: bytes) -> None:
    read = Read(tmp_path, line + b"\n")

    assert (read.stats.odd_lines, read.stats.bad_lines) == (1, 0)
    assert "expected a JSON object" in read.problems[0].problem


def test_line_over_the_cap_is_skipped_and_the_rest_read(tmp_path: Path) -> None:
    long = json.dumps({"a": "x" * 5_000_000}).encode()
    read = Read(tmp_path, b'{"a":1}\n' + long + b'\n{"a":2}\n' + long, limit_bytes=1_000)

    assert read.values == [{"a": 1}, {"a": 2}]
    assert read.lost == [2, 4]
    assert read.stats.bad_lines == 2
    assert "1,000 bytes" in read.problems[0].problem


def test_line_of_exactly_the_cap_is_read(tmp_path: Path) -> None:
    line = b'{"a":"' + b"x" * 92 + b'"}'
    read = Read(tmp_path, line + b"\n" + line + b"\n", limit_bytes=len(line))

    assert len(read.values) == 2


def test_deep_nesting_is_reported(tmp_path: Path) -> None:
    read = Read(tmp_path, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b'}\n{"a":1}\n')

    assert read.values == [{"a": 1}]
    assert read.lost == [1]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a":NaN}', "nan"),
        (b'{"a":1e999}', "inf"),
        (b'{"a":"\\ud800"}', "?"),
        (b'{"a":' + b"9" * 40 + b"}", "9" * 40),
    ],
)
def test_what_the_standard_library_accepts_is_accepted(tmp_path: Path, line: bytes, value: str) -> None:
    read = Read(tmp_path, line + b"\n")

    (row,) = read.values
    assert row is not None
    assert str(row["a"]) == value
    assert not read.lost


def test_problems_are_bounded(tmp_path: Path) -> None:
    read = Read(tmp_path, b"rubbish\n" * 5_000)

    assert read.stats.bad_lines == 5_000
    assert len(read.problems) == MAXIMUM_PROBLEMS
    assert "not listed" in read.problems[-1].problem


def test_missing_file_is_a_source_error(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.jsonl"

    with pytest.raises(SourceError, match="No such file"):
        list(read_rows(path, ProblemLog(path, FileStats(), [])))


@given(st.lists(st.one_of(st.binary(max_size=40), st.just(b'{"a":1}'), st.just(b'{"b":[1,{}]}')), max_size=12))
def test_any_bytes_are_read(tmp_path: Path, lines: list[bytes]) -> None:
    content = b"\n".join(lines)
    read = Read(tmp_path, content)
    reported = {problem.line for problem in read.problems}

    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            value = json.loads(line.decode())
        except ValueError:
            assert not line.strip(b" \t\r\n") or number in reported
            continue
        found = [row.value for row in read.rows if row.line == number]
        assert found == ([value] if isinstance(value, dict) else []) or number in reported


def test_a_number_of_five_thousand_digits_is_infinite(tmp_path: Path) -> None:
    digits = "1" * 5_000

    read = Read(tmp_path, f'{{"a":1}}\n{{"n":{digits},"m":-{digits},"a":2}}\n{{"a":3}}\n'.encode())

    assert read.values == [{"a": 1}, {"n": math.inf, "m": -math.inf, "a": 2}, {"a": 3}]
    assert not read.problems
