"""Logs of inspect_ai: a real one, pooled messages, attachments, sub-agents, and damaged archives."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from reads import Read

from windowpane.exceptions import SourceError
from windowpane.models.wire.calls import message_blocks
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.exchanges import inspect_ai
from windowpane.sources.transcripts.formats.exchanges.inspect_ai import InspectReader
from windowpane.sources.transcripts.records import (
    CallSent,
    ReplyReceived,
    SessionClosed,
    SessionDescribed,
    SessionOpened,
)

Json = dict[str, Any]
LOG = "inspect_ai/popularity_gpt-4o-mini.json"


def test_counts_are_those_of_the_manifest(sessions_dir: Path) -> None:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    expected = next(entry["stats"] for entry in entries if entry["file"] == LOG)
    stats = Read(InspectReader(), sessions_dir / LOG).stats

    assert (stats.messages, stats.user_turns, stats.content_chars) == (
        expected["messages"], expected["turns"], expected["content_chars"],
    )  # fmt: skip
    assert stats.usage == expected["usage"]["openai/gpt-4o-mini"]
    assert stats.sessions == 3


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def called(number: int, sent: list[Json], answer: Json, **more: Any) -> Json:
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 112, "input_tokens_cache_read": 100}
    output = {"choices": [{"message": answer, "stop_reason": "stop"}], "usage": usage, "time": 0.5}
    return {
        "event": "model", "uuid": f"m{number}", "timestamp": f"2026-01-01T00:00:{number:02}+00:00",
        "model": "openai/gpt-5", "input": sent, "tools": [], "output": output,
    } | more  # fmt: skip


ANSWER = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}}],
}
RESULT = {"role": "tool", "content": "a.py", "tool_call_id": "c1", "function": "bash"}
SPEC = {"task": "shop", "model": "openai/gpt-5", "eval_id": "e", "revision": {"origin": "git@host:shop.git"}}


def sample(events: list[Json], **more: Any) -> Json:
    return {"id": 1, "epoch": 1, "uuid": "u1", "messages": [user("do it")], "events": events} | more


def log(samples: list[Json]) -> Json:
    return {"version": 2, "status": "success", "eval": SPEC, "samples": samples}


def archive(path: Path, samples: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps({"version": 2, "eval": SPEC}))
        for name, content in samples.items():
            packed.writestr(f"samples/{name}", content)
    return path


def sent_texts(read: Read) -> list[list[str]]:
    return [[text_of(message) for message in sent.call.messages] for sent in read.of(CallSent)]


def text_of(message: Any) -> str:
    specs = message_blocks("chat", message)
    return "".join(spec.text or "" for spec in specs if spec.content_type != "tool_call")


def test_an_archive_holds_the_same_as_the_document(tmp_path: Path) -> None:
    one = sample([called(1, [user("do it")], ANSWER), called(2, [user("do it"), ANSWER, RESULT], ANSWER)])
    whole = tmp_path / "log.json"
    whole.write_text(json.dumps(log([one])))
    packed = archive(tmp_path / "log.eval", {"1_epoch_1.json": json.dumps(one)})
    readers = all_readers(complete=True)

    assert list(files_of([tmp_path])) == [packed, whole]
    assert isinstance(reader_for(packed, readers), InspectReader)
    assert Read(InspectReader(), packed).records == Read(InspectReader(), whole).records
    read = Read(InspectReader(), packed)
    assert read.of(SessionDescribed) == [SessionDescribed(label="shop-1", repository="git@host:shop.git")]
    assert {received.reply.usage.input_total for received in read.of(ReplyReceived)} == {110}
    assert read.of(SessionClosed) == [SessionClosed("completed")]


def test_pooled_messages_and_attachments_are_resolved(tmp_path: Path) -> None:
    pool = [user("attachment://abc"), ANSWER, RESULT]
    events = [
        called(1, [], ANSWER, input_refs=[[0, 1]]),
        called(2, [], ANSWER, input_refs=[[0, 1], [1, 3], [7, 9]]),
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log([sample(events, message_pool=pool, attachments={"abc": "a long task"})])))

    assert sent_texts(Read(InspectReader(), path)) == [["a long task"], ["a long task", "", "a.py"]]


def test_a_sub_agent_is_a_child_session(tmp_path: Path) -> None:
    events = [
        called(1, [user("do it")], ANSWER),
        called(2, [user("look at this part alone")], {"role": "assistant", "content": "ok"}),
        called(3, [user("do it"), ANSWER, RESULT], ANSWER),
    ]  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log([sample(events)])))
    opened = {one.session_key: one.parent_key for one in Read(InspectReader(), path).of(SessionOpened)}

    assert opened == {"u1": None, "u1/m2": "u1"}


def test_a_sample_without_events_is_read_by_its_messages(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps(log([sample([], messages=[user("one"), {"role": "assistant", "content": "two"}])]))
    )
    read = Read(InspectReader(), path)

    assert read.order == ["user_message", "assistant_response", "ModelCalled", "SessionClosed"]
    assert len([problem for problem in read.problems if "does not state" in problem.problem]) == 1


def test_a_damaged_sample_costs_itself_only(tmp_path: Path) -> None:
    whole = json.dumps(sample([called(1, [user("do it")], ANSWER)]))
    packed = archive(tmp_path / "log.eval", {"1_epoch_1.json": whole[:50], "2_epoch_1.json": whole})
    read = Read(InspectReader(), packed)

    assert len(read.of(CallSent)) == 1
    assert [problem.field for problem in read.problems if problem.severity == "bad"] == ["samples/1_epoch_1.json"]


def test_an_archive_that_is_still_written_is_refused_clearly(tmp_path: Path) -> None:
    packed = archive(tmp_path / "log.eval", {"1_epoch_1.json": "{}"})
    packed.write_bytes(packed.read_bytes()[:-40])

    with pytest.raises(SourceError, match="not a whole archive"):
        Read(InspectReader(), packed)


def test_an_archive_cannot_unpack_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_ai, "MAXIMUM_ARCHIVE_BYTES", 2 * 2**20)
    packed = archive(tmp_path / "log.eval", {f"{number}_epoch_1.json": b" " * 2**20 for number in range(1, 9)})
    read = Read(InspectReader(), packed)

    assert packed.stat().st_size < 20_000
    assert sum("MB unpacked" in problem.problem for problem in read.problems) == 7
