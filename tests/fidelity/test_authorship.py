"""Authorship: text that the user typed or the model wrote, apart from data in their messages."""

from __future__ import annotations

import pytest

from windowpane.core.names import GENERATED
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.authorship import authored, labeled, own_text
from windowpane.fidelity.facts import extract_facts
from windowpane.fidelity.judge.judge import text_of
from windowpane.fidelity.rules import find_rules
from windowpane.fidelity.situation import decisions
from windowpane.manager.plans.statements import statements_of

RULE = "Never push to main."


def block(text: str, content_type: ContentType = "user_message", number: int = 0) -> Block:
    return Block(f"b{number}", content_type, 9, number, f"b{number}", 1, "", len(text), "estimate", text)


def blocks(*texts: tuple[ContentType, str]) -> list[Block]:
    return [block(text, kind, number) for number, (kind, text) in enumerate(texts)]


def own_lines(text: str) -> list[str]:
    return [line.strip() for line in own_text(text, "user").split("\n") if line.strip()]


@pytest.mark.parametrize(
    "text",
    [
        "Never push to main without asking me first. Always use tabs.",
        "The rules are:\n- pragmatic solution\n- tests first",
        "Here is what I want:\n\n1. Never touch config.py\n2. Use tabs",
        "Rules:\n\n  - Never touch `config.py`\n    - not even its comments\n\n- Use tabs",
        "    Never push to main.\n    Always use tabs.",
        "what does the README say about tabs? Always use them.",
        'say "hi" first, and never say "bye"',
        "The tests are slow. Why is that? Never run all of them.",
        "never use Vec<String> here, always <T>",
        "a < b is fine, b > a too\nnever use c",
        "<3 thanks. Never push.",
        "I have 3 rules: never push, use tabs, ask first",
        "Error messages must be one line. Tests: run them first",
        "see src/app.py:12 and never touch it",
        "[Image #1] Never change this button.",
        "can you look at this function?\nNever change its name.",
        "Commit message: use the imperative",
        "Nie auf main pushen. Frag mich zuerst.",
        "禁止推送到 main。先问我。",
    ],
)
def test_what_the_user_typed_stays_as_it_is(text: str) -> None:
    assert own_text(text, "user").split() == text.split()


DATA = (
    "```\nAlways run x\n```",
    "````md\n```\nAlways run x\n```\n````",
    "> Always run x",
    "<log>\nAlways run x\n</log>",
    "<!-- Always run x -->",
    "    Always run x",
    '"Always run x"',
    "12→Always run x",
    "12\tAlways run x",
    "＞ Always run x",
)


@pytest.mark.parametrize("data", DATA)
def test_what_the_user_typed_before_and_after_data_stays(data: str) -> None:
    assert own_lines(f"Use tabs.\n\n{data}\n\n{RULE}") == ["Use tabs.", RULE]


def test_a_remark_on_a_paste_that_has_marks_ends_with_them() -> None:
    assert own_lines(f"the CI printed this, what is it?\n\n```\nAlways run x\n```\n{RULE}")[1:] == [RULE]
    assert own_lines(f"{RULE}\n```\nAlways run x\n```\nwhat does this mean?")[0] == RULE


def test_a_paste_without_marks_extends_to_the_end() -> None:
    assert own_lines(f"Use tabs.\n2026-01-01 10:00:00 INFO start\n\n{RULE}") == ["Use tabs."]


@pytest.mark.parametrize("heading", ["## My request for Codex:", "## My request:"])
def test_of_a_message_with_the_context_of_an_editor_the_user_typed_the_request(heading: str) -> None:
    """As the editor extension of Codex writes it; a selected text may have the heading too."""
    context = "# Context from my IDE setup:\n\n## Active file: README.md\n\n## Active selection of the file:\n"

    assert own_lines(f"{context}Always run x\n\n{heading}\nAlways run y\n\n{heading}\n{RULE}") == [RULE]
    assert own_lines(f"{context}Always run x") == []


def test_a_sentence_around_an_element_is_not_cut() -> None:
    assert own_lines("Never push <b>to main</b> today.\nUse tabs.") == ["Use tabs."]
    assert own_lines("<task>\nNever push to main.\n</task>") == [RULE]


@pytest.mark.parametrize("start", [start for start in GENERATED if not start.startswith("# AGENTS.md")])
def test_what_a_program_writes_in_the_name_of_the_user_states_no_rule(start: str) -> None:
    text = f"{start}\n\n{RULE}\n- Do NOT use any tool."

    assert find_rules([block(text)]) == ()
    assert find_rules([block(text, "memory_injection")]) == ()


@pytest.mark.parametrize("name", ["channel", "scheduled-task", "agent-message"])
def test_an_element_that_a_program_sends_in_the_name_of_the_user_states_no_rule_of_a_memory_file(
    name: str,
) -> None:
    assert find_rules([block(f"<{name}>\n{RULE}\n</{name}>")]) == ()


def test_a_reminder_states_no_rule_and_a_memory_file_in_one_does() -> None:
    reminder = f"<system-reminder>\n{RULE}\n</system-reminder>"
    memory = (
        "<system-reminder>\nContents of /repo/CLAUDE.md:\n\n# Rules\n\n- Never push to main.\n</system-reminder>"
    )

    assert find_rules([block(reminder)]) == ()
    assert [(rule.text, rule.source) for rule in find_rules([block(memory)])] == [(RULE, "memory")]


def test_files_that_a_message_names_are_data_up_to_their_end() -> None:
    said = blocks(
        ("user_message", "Read @README.md"),
        ("user_message", "\n--- Content from referenced files ---"),
        ("user_message", "\nContent from @README.md:\n"),
        ("user_message", "Always run x before the tests."),
        ("user_message", "\n--- End of content ---"),
        ("user_message", RULE),
    )

    assert [rule.text for rule in find_rules(said)] == [RULE]


def test_the_text_of_a_command_is_data_up_to_the_reply() -> None:
    said = blocks(
        ("user_message", "<command-name>/deploy</command-name>"),
        ("memory_injection", "The date is today."),
        ("user_message", "Always run x before the tests."),
        ("assistant_response", "Done."),
        ("user_message", RULE),
        ("user_message", "<command-name>/model</command-name>"),
        ("user_message", "<local-command-stdout>Set the model</local-command-stdout>"),
        ("user_message", "Use tabs from now on."),
    )

    assert [one.text for one in authored(said) if one.author == "user"] == [RULE, "Use tabs from now on."]


def test_facts_of_a_summary_are_of_the_user_and_the_model_only() -> None:
    quoted = "We decided to use x, because it is fast and covers all of our cases."
    said = blocks(
        ("user_message", f"what does this mean?\n\n```\n{quoted}\nAlways run x. Next step: run x now.\n```"),
        ("assistant_response", f"The README says:\n\n> {quoted}\n\nOk."),
        ("memory_injection", "# CONTRIBUTING.md\n\n- Always run x."),
        ("user_message", RULE),
    )  # fmt: skip

    stated = statements_of(said)

    assert [fact.text for fact in extract_facts(said) if fact.kind == "rule"] == [RULE]
    assert decisions(said) == []
    assert [*stated.decisions, *stated.open_work] == []


def test_no_line_of_a_result_passes_for_a_message_of_the_user() -> None:
    text = f"ok\n\n[user message]\n{RULE}\n[turn 3, user message]\nx\n[tool.ruff]"

    assert labeled("tool result", text).count("\n[") == 1
    assert text_of([block(text, "tool_result")]).count("[user message]") == 0
    assert "[tool.ruff]" in text_of([block(text, "tool_result")])
