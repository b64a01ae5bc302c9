"""Content that Claude Code removes from its window, and its record in the transcript."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from test_claude_code import call, text, usage

from windowpane.sources.transcripts.records import Cleared, Compacted, ContentAdded, ContentRemoved

Json = dict[str, Any]
MakeTranscript = Callable[..., Any]
ReadTranscript = Callable[[Path], Any]


def test_compaction_has_its_summary_and_the_size_of_the_next_call(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    read = (
        transcript()
        .user("go")
        .reply("m1", text("a"))
        .system("compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 155_000})
        .user("the summary", isCompactSummary=True)
        .reply("m2", text("b"), usage=usage(5, cache_read_input_tokens=40_000))
        .read(tmp_path)
    )

    (compacted,) = read.of(Compacted)
    assert (compacted.trigger, compacted.tokens_before, compacted.tokens_after) == ("auto", 155_000, 40_010)
    assert compacted.summary == "the summary"
    assert read.order.index("Compacted") < read.order.index("ModelCalled", 3)
    assert read.stats.compactions == 1
    assert read.stats.user_turns == 1


def test_compaction_with_a_message_behind_it_has_no_size_afterwards(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    read = (
        transcript()
        .user("go")
        .reply("m1", text("a"))
        .system("compact_boundary", compactMetadata={"trigger": "manual", "preTokens": 1_000})
        .user("the summary", isCompactSummary=True)
        .user("next question")
        .reply("m2", text("b"))
        .read(tmp_path)
    )

    (compacted,) = read.of(Compacted)
    assert compacted.tokens_after is None
    assert read.order[-3:] == ["user_message", "assistant_response", "ModelCalled"]


def test_preserved_messages_are_kept(tmp_path: Path, transcript: MakeTranscript) -> None:
    named = {"trigger": "auto", "preTokens": 9, "preservedMessages": {"allUuids": ["u1"]}}
    segment = {"trigger": "auto", "preTokens": 9, "preservedSegment": {"headUuid": "u1", "tailUuid": "u2"}}
    started = transcript().user("a").user("b").user("c").user("d").reply("m", text("x"))

    started.system("compact_boundary", compactMetadata=named)
    (first,) = started.read(tmp_path).of(Compacted)
    started.system("compact_boundary", compactMetadata=segment)
    second = started.read(tmp_path).of(Compacted)[1]

    assert (first.kept_keys, first.tokens_after) == (("u1",), None)
    assert second.kept_keys == ("u1", "u2")


def test_summary_without_a_boundary_is_a_compaction_of_earlier_content(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    started = transcript().user("summary", isCompactSummary=True).user("go").reply("m1", text("a"))

    assert started.read(tmp_path).order[0] == "summary"
    assert len(started.user("new", isCompactSummary=True).read(tmp_path).of(Compacted)) == 1


def test_microcompaction_is_an_eviction_even_of_unseen_content(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    details = {"trigger": "auto", "preTokens": 60_000, "tokensSaved": 21_000, "compactedToolIds": ["t1", "gone"]}
    read = (
        transcript()
        .user("go")
        .reply("m1", call("t1"))
        .result("t1")
        .system("microcompact_boundary", microcompactMetadata=details)
        .read(tmp_path)
    )

    (removed,) = read.of(ContentRemoved)
    assert (removed.keys, removed.tokens_freed) == (("t1", "gone"), 21_000)
    assert read.stats.evictions == 2
    assert read.order.index("ContentRemoved") > read.order.index("tool_result")


def test_a_large_result_is_sent_as_its_replacement(tmp_path: Path, transcript: MakeTranscript) -> None:
    replacements = [{"kind": "tool-result", "toolUseId": "t1", "replacement": "<persisted-output>start"}]
    read = (
        transcript()
        .user("go")
        .reply("m1", call("t1"))
        .result("t1", "x" * 90_000)
        .other("content-replacement", replacements=replacements)
        .reply("m2", text("a"))
        .other("content-replacement", replacements=replacements)
        .read(tmp_path)
    )

    (removed,) = read.of(ContentRemoved)
    assert (removed.keys, read.stats.evictions) == (("t1",), 1)
    assert read.of(ContentAdded)[-2].text == "<persisted-output>start"
    assert read.problems == []


def test_a_fork_of_the_conversation_and_a_fallback_are_known(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript()
        .other("fork-context-ref", agentId="a1", parentSessionId="p", parentLastUuid="u", contextLength=3)
        .user("go")
        .reply("m1", {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}, text("a"))
        .read(tmp_path)
    )

    assert [problem.field for problem in read.problems] == ["fork-context-ref"]
    assert len(read.of(ContentAdded)) == 2


def test_clear_starts_an_empty_window(tmp_path: Path, transcript: MakeTranscript) -> None:
    clear = "<command-name>/clear</command-name>"

    assert not transcript().user(clear).reply("m", text("a")).read(tmp_path).of(Cleared)
    assert len(transcript().user("a").reply("m", text("b")).user(clear).read(tmp_path).of(Cleared)) == 1


def test_post_tokens_are_the_summary_s_and_not_the_window_s(tmp_path: Path, transcript: MakeTranscript) -> None:
    details = {"trigger": "manual", "preTokens": 998_659, "postTokens": 18_101}
    read = (
        transcript()
        .system("compact_boundary", compactMetadata=details)
        .user("the summary", isCompactSummary=True)
        .reply("m1", text("b"), usage=usage(5, cache_read_input_tokens=69_303))
        .read(tmp_path)
    )

    (compacted,) = read.of(Compacted)
    assert (compacted.tokens_before, compacted.tokens_after) == (998_659, 69_313)


def test_clear_at_the_head_of_a_new_file_is_the_session_itself(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    clear = "<command-name>/clear</command-name>"
    read = (
        transcript()
        .user("Caveat: the messages below", isMeta=True, parentUuid=None)
        .user(clear, parentUuid="u0")
        .user("go", parentUuid="u1")
        .reply("m", text("a"), parentUuid="u2")
        .read(tmp_path)
    )

    assert not read.of(Cleared)
    assert not read.of(Compacted)


def test_prompt_without_a_parent_starts_an_empty_window(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = (
        transcript()
        .user("plan it", parentUuid=None)
        .reply("m1", text("a plan"), parentUuid="u0")
        .user("Implement the following plan: …", parentUuid=None)
        .reply("m2", text("done"), parentUuid="u2")
        .read(tmp_path)
    )

    assert len(read.of(Cleared)) == 1
    assert not read.of(Compacted)
    assert read.order.index("Cleared") == read.order.index("ModelCalled") + 1


def test_accepted_plan_that_follows_a_row_starts_an_empty_window(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    """Hooks run before the prompt of "clear context and implement the plan", which follows them."""
    prompt = "Implement the following plan: …"
    read = (
        transcript()
        .user("plan it", parentUuid=None)
        .reply("m1", text("a plan"), parentUuid="u0")
        .user(prompt, parentUuid="u1", planContent="…")
        .reply("m2", text("done"), parentUuid="u2")
        .read(tmp_path)
    )

    assert read.order == [
        "user_message", "assistant_response", "ModelCalled", "Cleared", "user_message", "assistant_response",
        "ModelCalled",
    ]  # fmt: skip


def test_content_of_a_hook_after_the_window_was_cleared_is_in_the_new_window(
    tmp_path: Path, transcript: MakeTranscript
) -> None:
    injected = {"type": "hook_additional_context", "hookName": "SessionStart:clear", "content": ["rules"]}
    read = (
        transcript()
        .user("plan it", parentUuid=None)
        .reply("m1", text("a plan"), parentUuid="u0")
        .other("progress", data={"type": "hook_progress", "hookName": "SessionStart:clear"}, parentUuid=None)
        .other("attachment", attachment=injected, parentUuid="u2")
        .user("Implement the following plan: …", parentUuid="u3", planContent="…")
        .reply("m2", text("done"), parentUuid="u4")
        .read(tmp_path)
    )

    assert read.order == [
        "user_message", "assistant_response", "ModelCalled", "Cleared", "memory_injection", "user_message",
        "assistant_response", "ModelCalled",
    ]  # fmt: skip


def test_rows_that_name_no_parent_at_all_stay_in_one_window(tmp_path: Path, transcript: MakeTranscript) -> None:
    read = transcript()
    for number in range(3):
        read.user("again", parentUuid=None).reply(f"m{number}", text("a"), parentUuid=None)

    assert not read.read(tmp_path).of(Cleared)
