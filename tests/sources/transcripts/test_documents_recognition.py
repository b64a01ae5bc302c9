"""Recognition of a document's format from its first bytes alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windowpane.sources.transcripts.formats.mini_swe_agent import MiniSweAgentReader
from windowpane.sources.transcripts.formats.openai_chat import OpenAIChatReader
from windowpane.sources.transcripts.formats.swe_agent import SweAgentReader
from windowpane.sources.transcripts.formats.tau_bench import Tau2Reader, TauBenchReader
from windowpane.sources.transcripts.json_document import shape_of

READERS = (MiniSweAgentReader(), OpenAIChatReader(), SweAgentReader(), TauBenchReader(), Tau2Reader())
MESSAGES = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "A cat."}]


def simulation(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "s1", "task_id": "t1", "trial": 0, "messages": list(messages), **fields}


@pytest.mark.parametrize(
    ("name", "document", "expected"),
    [
        ("chat.json", MESSAGES, ["openai_chat"]),
        ("chat.json", {"messages": MESSAGES}, ["openai_chat"]),
        ("run.traj.json", MESSAGES, ["mini_swe_agent"]),
        ("run.json", {"info": {"mini_version": "2"}, "messages": MESSAGES}, ["mini_swe_agent"]),
        ("run.traj", {"history": MESSAGES}, ["swe_agent"]),
        ("run.json", {"environment": "main", "trajectory": []}, ["swe_agent"]),
        ("tau.json", [{"task_id": 1, "traj": MESSAGES}], ["tau_bench"]),
        ("tau2.json", [simulation(termination_reason="user_stop")], ["tau2_bench"]),
        ("tau2.json", {"info": {"num_trials": 1}, "simulations": []}, ["tau2_bench"]),
        ("log.json", {"messages": MESSAGES, "response": {}}, []),
        ("other.json", {"messages": [{"type": "user", "text": "hi"}]}, []),
        ("list.json", [1, 2], []),
        ("empty.json", [], []),
        ("word.json", "messages", []),
    ],
)
def test_each_document_has_at_most_one_reader(name: str, document: object, expected: list[str]) -> None:
    for indent in (None, 2):
        head = json.dumps(document, indent=indent).encode()
        assert [r.format for r in READERS if r.recognizes(Path(name), head)] == expected


def test_json_lines_are_not_a_document() -> None:
    line = json.dumps({"messages": MESSAGES})

    assert shape_of(f"{line}\n{line}\n".encode()) == frozenset()


def test_a_truncated_head_is_recognized_without_an_error() -> None:
    whole = json.dumps({"a": 'b"\\ü', "messages": [{"role": "ü\\"}]}, ensure_ascii=False).encode()

    for end in range(len(whole)):
        assert shape_of(whole[:end]) <= {"a", "messages", "messages[].role"}
    assert shape_of(whole) == {"a", "messages", "messages[].role"}


@pytest.mark.parametrize("head", [b"", b"\x00\x01\xff", b"}{", b"]]", b'"', b"\xef\xbb\xbf[{", b"not json"])
def test_no_bytes_are_too_strange(head: bytes) -> None:
    assert [reader.recognizes(Path("x.traj.json"), head) for reader in READERS] == [False] * 5
