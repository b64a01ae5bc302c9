"""Whatever bytes a document has: records, problems or a clear error, and never a crash."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.vocabulary import CONTENT_TYPES
from windowpane.exceptions import SourceError
from windowpane.sources.transcripts import json_document as documents
from windowpane.sources.transcripts.formats.mini_swe_agent import MiniSweAgentReader
from windowpane.sources.transcripts.formats.openai_chat import OpenAIChatReader
from windowpane.sources.transcripts.formats.swe_agent import SweAgentReader
from windowpane.sources.transcripts.formats.tau_bench import Tau2Reader, TauBenchReader
from windowpane.sources.transcripts.json_document import DocumentLog, JsonObject
from windowpane.sources.transcripts.reader import MAXIMUM_DOCUMENT_BYTES, FileStats, Problem, Reader
from windowpane.sources.transcripts.records import ContentAdded, ModelCalled, Record, SessionClosed, SessionOpened

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 20},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [CALL], "usage": USAGE},
    {"role": "tool", "tool_call_id": "c1", "content": "a cat", "requestor": "assistant"},
    {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
]
DOCUMENTS: dict[str, Any] = {
    "openai_chat": {"model": "gpt-4o", "tools": [{"name": "look"}], "messages": MESSAGES},
    "tau_bench": [{"task_id": 0, "trial": 0, "reward": 1.0, "info": {"error": None}, "traj": MESSAGES}],
    "tau2_bench": {
        "info": {
            "agent_info": {"implementation": "llm_agent", "llm": "gpt-4o"},
            "environment_info": {"policy": "Be kind.", "tool_defs": [{"name": "look"}]},
        },
        "simulations": [
            {
                "id": "s1",
                "task_id": "t1",
                "trial": 0,
                "start_time": "2025-08-10T02:44:06",
                "end_time": 1754794076.8,
                "termination_reason": "user_stop",
                "messages": [
                    {**message, "timestamp": 1754793847, "cost": 0.1, "raw_data": {"finish_reason": "x"}}
                    for message in MESSAGES
                ],
            }
        ],
    },
    "swe_agent": {
        "environment": "main",
        "replay_config": json.dumps({"problem_statement": {"id": "p"}, "agent": {"model": {"name": "m"}}}),
        "history": [
            {"role": "user", "content": "demo", "is_demo": True},
            {"role": "assistant", "content": "T\n```\nls\n```", "thought": "T\n", "action": "ls"},
            {"role": "user", "content": "one.py"},
            *MESSAGES,
        ],
        "trajectory": [{"query": MESSAGES[:2], "response": "r", "thought": "", "action": "a", "observation": ""}],
        "info": {
            "exit_status": "submitted",
            "model_stats": {"instance_cost": 0.5, "tokens_sent": 1, "tokens_received": 1, "api_calls": 3},
        },
    },
    "mini_swe_agent": {
        "instance_id": "i",
        "info": {"exit_status": "Submitted", "config": {"model": {"model_name": "a/b"}}, "mini_version": "2"},
        "messages": [
            *MESSAGES,
            {"role": "assistant", "content": "Go\n```bash\nls\n```", "extra": {
                "timestamp": 1775715329.6, "cost": 0.1,
                "response": {"model": "b", "usage": USAGE, "choices": [{"finish_reason": "stop"}]},
            }},
            {"role": "user", "content": "one.py", "extra": {"returncode": 0, "timestamp": 1775715330.0}},
            {"role": "exit", "content": "patch", "extra": {"exit_status": "Submitted"}},
        ],
    },
}  # fmt: skip
READERS: dict[str, Reader] = {
    reader.format: reader
    for reader in (
        MiniSweAgentReader(), OpenAIChatReader(), SweAgentReader(), TauBenchReader(), Tau2Reader(),
    )
}  # fmt: skip
FORMATS = sorted(READERS)

STRANGE = st.sampled_from(
    [
        None, True, False, 0, -1, 2**70, 1e308, float("nan"), float("inf"), -0.5, "", "x" * 500, "\ud800", "\x00",
        "9999-99-99", [], [None], [[]], [1, "a", {}], {}, {"role": 1}, {"text": 5}, {"": {"": []}}, "assistant",
    ]
)  # fmt: skip


def sound(records: list[Record]) -> None:
    """Assert the invariants that every consumer may rely on."""
    opened = False
    for record in records:
        if isinstance(record, SessionOpened):
            opened = True
            assert record.session_key
        assert opened, "a record before its session"
        at = getattr(record, "at", None)
        assert at is None or 0 <= at < 5e9
        if isinstance(record, ContentAdded):
            assert record.content_type in CONTENT_TYPES
            assert isinstance(record.text, str) or record.content_type == "media"
            (record.text or "").encode()
            for name in (record.tool_name, record.tool_call_id):
                assert name is None or (isinstance(name, str) and 0 < len(name) <= 200)
        elif isinstance(record, ModelCalled):
            assert record.cost_dollars is None or record.cost_dollars >= 0
            if record.usage is not None:
                counts = (record.usage.input_tokens, record.usage.output_tokens, record.usage.cache_read_tokens,
                          record.usage.cache_write_tokens, record.usage.reasoning_tokens)  # fmt: skip
                assert all(isinstance(count, int) and 0 <= count < 2**53 for count in counts)
        elif isinstance(record, SessionClosed):
            assert len(record.reason) < 64


def read_bytes(name: str, raw: bytes, folder: Path) -> tuple[list[Record], list[Problem]]:
    """Read *raw*; a `SourceError` must be among the problems as well."""
    path = folder / "recording.traj.json"
    path.write_bytes(raw)
    problems: list[Problem] = []
    records: list[Record] = []
    refused = None
    try:
        for record in READERS[name].read(path, stats=FileStats(), problems=problems):
            records.append(record)  # noqa: PERF402  what came before an error counts
    except SourceError as error:
        refused = error.problem
    assert refused is None or (problems[-1].problem == refused and records == [])
    sound(records)
    return records, [one for one in problems if "does not state" not in one.problem]


def paths_within(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of everything within a document, itself first."""
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += paths_within(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += paths_within(item, (*path, index))
    return found


def replaced(document: Any, path: tuple[str | int, ...], value: object) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return changed


@pytest.mark.parametrize("name", FORMATS)
class TestBytes:
    def test_a_sound_document_has_no_problems(self, name: str, tmp_path: Path) -> None:
        records, problems = read_bytes(name, json.dumps(DOCUMENTS[name]).encode(), tmp_path)

        assert problems == []
        assert any(isinstance(record, ModelCalled) for record in records)

    @pytest.mark.parametrize(
        "raw",
        [b"", b" \n\t", b"\x00" * 100, bytes(range(256)), b"\x89PNG\r\n\x1a\n", b"not json", b"nul", b"5", b'"a"',
         b"null", b"true", b"{}", b'{"other": 1}', b"{]", b"[{]}", b"\xff\xfe", b"1" * 5000, b"NaN"],
    )  # fmt: skip
    def test_a_file_of_another_kind_is_an_error(self, name: str, raw: bytes, tmp_path: Path) -> None:
        records, problems = read_bytes(name, raw, tmp_path)

        assert records == []
        assert problems

    def test_an_empty_list_is_reported_as_empty(self, name: str, tmp_path: Path) -> None:
        records, problems = read_bytes(name, b"[]", tmp_path)

        assert not any(isinstance(record, ContentAdded | ModelCalled) for record in records)
        assert len(problems) == 1

    def test_deep_nesting_is_an_error(self, name: str, tmp_path: Path) -> None:
        for raw in (b"[" * 100_000, b'{"messages":' * 100_000, b"[" * 900 + b"]" * 900):
            _, problems = read_bytes(name, raw, tmp_path)
            assert problems

    def test_invalid_utf8_is_read_and_noted(self, name: str, tmp_path: Path) -> None:
        raw = json.dumps(DOCUMENTS[name]).encode().replace(b"a cat", b"a \xff cat")
        records, problems = read_bytes(name, raw, tmp_path)

        assert any(isinstance(record, ContentAdded) and record.text == "a \ufffd cat" for record in records)
        assert [(problem.severity, problem.line) for problem in problems] == [("odd", 1)]

    def test_a_byte_order_mark_and_utf16_are_read(self, name: str, tmp_path: Path) -> None:
        text = json.dumps(DOCUMENTS[name])
        expected, _ = read_bytes(name, text.encode(), tmp_path)

        for encoding in ("utf-8-sig", "utf-16"):
            records, problems = read_bytes(name, text.encode(encoding), tmp_path)
            assert (records, problems) == (expected, [])

    @given(data=st.data())
    def test_the_error_for_a_truncated_document_gives_the_position(
        self, name: str, tmp_path: Path, data: st.DataObject
    ) -> None:
        raw = json.dumps(DOCUMENTS[name], indent=1).encode()
        end = data.draw(st.integers(1, len(raw) - 1))
        records, problems = read_bytes(name, raw[:end], tmp_path)

        assert records == []
        assert "column" in problems[-1].problem
        assert problems[-1].line is not None

    @given(data=st.data())
    def test_no_flipped_bytes_crash_it(self, name: str, tmp_path: Path, data: st.DataObject) -> None:
        raw = bytearray(json.dumps(DOCUMENTS[name]).encode())
        for _ in range(data.draw(st.integers(1, 5))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))

        records, problems = read_bytes(name, bytes(raw), tmp_path)
        assert records or problems

    @given(raw=st.binary(max_size=300))
    def test_no_bytes_crash_recognition(self, name: str, tmp_path: Path, raw: bytes) -> None:
        for prefix in (b"", b"[", b'{"messages":[', b"[{"):
            assert READERS[name].recognizes(tmp_path / "x.traj", prefix + raw) in (True, False)


@pytest.mark.parametrize("name", FORMATS)
class TestStructure:
    @given(data=st.data())
    def test_a_field_may_be_of_any_type(self, name: str, tmp_path: Path, data: st.DataObject) -> None:
        document = DOCUMENTS[name]
        for _ in range(data.draw(st.integers(1, 3))):
            path = data.draw(st.sampled_from(paths_within(document)))
            document = replaced(document, path, data.draw(STRANGE))

        records, problems = read_bytes(name, json.dumps(document).encode(), tmp_path)
        assert records or problems

    def test_every_single_field_may_be_strange(self, name: str, tmp_path: Path) -> None:
        document = DOCUMENTS[name]
        for path in paths_within(document):
            for value in (None, True, -1, 2**70, float("nan"), "\ud800", [], [3], {}, {"x": 1}):
                raw = json.dumps(replaced(document, path, value)).encode()
                records, problems = read_bytes(name, raw, tmp_path)
                assert records or problems, (path, value)

    def test_one_bad_message_does_not_stop_the_rest(self, name: str, tmp_path: Path) -> None:
        text = json.dumps(DOCUMENTS[name])
        broken = json.loads(text.replace(json.dumps(MESSAGES[0]), "17"))
        if broken == DOCUMENTS[name]:
            broken["simulations"][0]["messages"][0] = 17
        whole, _ = read_bytes(name, text.encode(), tmp_path)
        records, problems = read_bytes(name, json.dumps(broken).encode(), tmp_path)

        assert all("expected an object, got a number" in problem.problem for problem in problems)
        assert problems
        assert sum(isinstance(r, ModelCalled) for r in records) == sum(isinstance(r, ModelCalled) for r in whole)

    def test_fields_named_twice_take_the_last(self, name: str, tmp_path: Path) -> None:
        raw = json.dumps(DOCUMENTS[name]).replace('"role":', '"role": "nobody", "role":').encode()
        _, problems = read_bytes(name, raw, tmp_path)

        assert problems == []


class TestFiles:
    def test_a_document_over_the_limit_is_skipped_unread(self, tmp_path: Path) -> None:
        path = tmp_path / "huge.json"
        with path.open("wb") as file:
            file.truncate(MAXIMUM_DOCUMENT_BYTES + 1)
        problems: list[Problem] = []

        with pytest.raises(SourceError, match="larger than 256 MB"):
            list(OpenAIChatReader().read(path, stats=FileStats(), problems=problems))
        assert len(problems) == 1

    @pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
    def test_a_path_that_is_not_a_file_is_an_error(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / kind
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)

        with pytest.raises(SourceError, match=r"no such file|not a file"):
            list(OpenAIChatReader().read(path, stats=FileStats(), problems=[]))

    def test_a_number_of_five_thousand_digits_costs_its_field(self, tmp_path: Path) -> None:
        path = tmp_path / "chat.json"
        path.write_text(f'[{{"role": "user", "content": "a"}}, {{"role": "user", "content": {"1" * 5_000}}}]')
        problems: list[Problem] = []
        reader = OpenAIChatReader()

        records = list(reader.read(path, stats=FileStats(), problems=problems))

        assert [record.text for record in records if isinstance(record, ContentAdded)] == ["a"]
        assert "a number out of range" in str(problems[0])

    def test_an_error_names_line_and_column(self, tmp_path: Path) -> None:
        path = tmp_path / "chat.json"
        path.write_text('[\n  {"role": "user",\n   "content": oops}\n]')
        problems: list[Problem] = []

        with pytest.raises(SourceError, match="line 3 column 15"):
            list(OpenAIChatReader().read(path, stats=FileStats(), problems=problems))
        assert str(problems[0]).startswith(f"{path}:3: line 3 column 15")

    def test_problems_are_bounded(self, tmp_path: Path) -> None:
        path = tmp_path / "chat.json"
        path.write_text(json.dumps([1] * 5000))
        stats, problems = FileStats(), []
        list(OpenAIChatReader().read(path, stats=stats, problems=problems))

        assert len(problems) == documents.MAXIMUM_PROBLEMS
        assert stats.bad_lines == 5000


def test_a_problem_never_quotes_the_recording(tmp_path: Path) -> None:
    problems: list[Problem] = []
    item = JsonObject({"usage": "my password"}, "messages[3]", DocumentLog(tmp_path / "x", FileStats(), problems))

    assert item.item("usage").value == {}
    assert str(problems[0]).endswith("messages[3].usage: expected an object, got text")
    assert "password" not in str(problems[0])
