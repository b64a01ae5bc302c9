"""Rules: standing instructions of the user, the system prompt and memory files."""

from __future__ import annotations

import pytest

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.rules import find_rules


def block(text: str, content_type: ContentType = "user_message", name: str = "b0") -> Block:
    return Block(name, content_type, 9, 1, name, 1, name, len(text), "estimate", text)


def rules(text: str, content_type: ContentType = "user_message") -> list[str]:
    return [rule.text for rule in find_rules([block(text, content_type)])]


@pytest.mark.parametrize(
    "text",
    [
        "Never push to main.",
        "Please ask before you delete a branch.",
        "You must not edit generated files.",
        "Only change files below src/api.",
        "From now on, run the linter after every edit.",
        "from now on answer in short sentences",
        "let's not touch the interface for now",
        "for the rest of this session only use the test database",
        "run the linter before each commit",
        "stop adding comments to the code",
        "leave the formatting alone",
        "if you're unsure ask",
        "Propose the groups first, you can start once agreed.",
        "Otherwise answer only with a line of code.",
        "Can we stick to pnpm?",
        "why did you use npm when i told you to use pnpm?",
        "so pls dont commit yet",
        "commit every fix atomically",
        "no console logs!",
        "deploy it without touching the database",
        "we should first agree on the design",
        "we won't deploy until the tests pass",
        "generated files are off limits",
        "whenever you add a command it needs to be in the manual",
        "one commit per change",
        "I'd rather you wrote a test first",
        "if you change the schema, run the migration test",
        "Every commit message must name a ticket.",
        "Do not merge without my approval.",
        "DO NOT MODIFY: tests and configuration files.",
        "Return CLEAN if no defect is left; otherwise list each one with its line.",
        "Committe niemals direkt auf main.",
        "Frag mich bitte, bevor du etwas löschst.",
        "Du darfst nur Dateien in src/ ändern.",
        "Ne pousse jamais sur la branche main.",
        "Tu dois toujours lancer les tests avant de commiter.",
        "Demande avant de supprimer un fichier.",
        "Nunca hagas push a la rama main.",
        "No borres archivos sin preguntarme.",
        "Siempre ejecuta los tests antes de hacer commit.",
        "schreib ab jetzt die Kommentare bitte auf Deutsch",
        "désormais on écrit les messages en anglais",
        "de ahora en adelante un commit por cambio, por favor",
        "千万别改这个文件",
        "今後はコメントを英語で書いてください",
        "不要推送到 main 分支。",
        "删除文件之前必须先问我。",
        "只能修改 src 目录下的文件。",
        "mainブランチに直接プッシュしないでください。",
        "ファイルを削除する前に必ず確認してください。",
        "テストは毎回必ず実行すること。",
    ],
)
def test_an_instruction_that_holds_on_is_a_rule_in_six_languages(text: str) -> None:
    assert rules(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Never mind, we'll look at it later.",
        "I don't want any padding.",
        "You must have misread the line.",
        "let's focus on the second option",
        "Leave a note that the branch is untouched.",
        "Don't worry about the token.",
        "I don't know where the file is.",
        "Fix the failing test in src/api.",
        "Why does the hook never fire?",
        "The hook never fires when the branch is new.",
        "Should we only log errors?",
        "```\nnever push to main\n```",
        "> Never push to main.",
        "Kannst du bitte den Test reparieren?",
        "Warum wird der Test nie ausgeführt?",
        "Pourquoi le test ne passe pas ?",
        "Arregla el test que falla, por favor.",
        "every time I log in I get three popups",
        "Only one fix needed in the loader.",
        "Ask me any questions you need to.",
        "can we not just use a set here?",
        "Any fix needs a rewrite of the parser.",
        "Der Spieler darf nie durch die Wand fallen.",
        "El stock nunca puede quedar en negativo.",
        "现在能不能看一下日志",
        "第一次点击的时候只能 focus 元素",
        "请修复这个测试。",
        "このテストを直してください。",
    ],
)
def test_requests_questions_reports_and_quotations_are_no_rules(text: str) -> None:
    assert rules(text) == []


def test_a_sentence_of_chat_may_start_with_a_small_letter() -> None:
    assert rules("can you check the hook? don't fix anything, e.g. no edits") == [
        "don't fix anything, e.g. no edits"
    ]


def test_each_item_under_a_heading_of_rules_is_one() -> None:
    assert rules("The rules are:\n- pragmatic solution\n- tests first") == ["pragmatic solution", "tests first"]


def test_the_report_of_a_subagent_states_no_rules() -> None:
    text = '<subagent_notification>\n{"status": "This should never be done without validation."}'

    assert not rules(text)


def test_a_plain_imperative_is_a_rule_in_a_memory_file_and_a_request_in_a_message() -> None:
    text = "Use tabs for indentation."

    assert rules(text) == []
    assert rules(f"# AGENTS.md\n\n- {text}", "memory_injection") == [text]
    assert rules(text, "system_prompt") == [text]


def test_a_text_of_the_model_or_a_tool_is_never_a_rule() -> None:
    text = "Never push to main."

    assert [rules(text, kind) for kind in ("assistant_response", "thinking", "tool_result", "summary")] == [
        []
    ] * 4


def test_the_steps_of_a_skill_or_command_are_not_read() -> None:
    command = block("<command-name>/review</command-name>", name="b0")
    steps = block("Never skip a step.", "memory_injection", "b1")

    assert find_rules([command, steps]) == ()
    assert [rule.block for rule in find_rules([steps])] == ["b1"]


def test_a_heading_that_forbids_is_part_of_its_items() -> None:
    assert rules("Never:\n- skip reviews of code\n- push to main", "memory_injection") == [
        "Never: skip reviews of code",
        "Never: push to main",
    ]


def test_a_list_of_what_must_not_be_done_is_read_with_its_long_heading() -> None:
    heading = "Do not submit file creations or changes to any of the following files:"

    assert rules(f"{heading}\n\n- helper scripts that you created") == [
        heading,
        f"{heading.removesuffix(':')}: helper scripts that you created",
    ]


def test_a_heading_that_permits_or_counts_steps_makes_no_rules_of_its_items() -> None:
    item = "- Use the API to fetch issues, unless the user asks otherwise"

    assert rules(f"## OK to do without asking\n\n{item}", "system_prompt") == []
    assert rules("To refuel, follow these steps:\n- Ask them how much data they want", "system_prompt") == []
    assert any("Use the API" in rule for rule in rules(f"## Never do without asking\n\n{item}", "system_prompt"))


@pytest.mark.parametrize(
    "text",
    [
        "All of the tools you need are listed for your reference.",
        "Should be addressed in the next cycle.",
        "Tag push matching `v*` → triggers the release.",
        "You struggle with interactive consoles.",
    ],
)
def test_descriptions_and_states_in_a_prompt_are_no_rules(text: str) -> None:
    assert rules(text, "system_prompt") == []


def test_a_rule_has_its_source_and_block() -> None:
    (rule,) = find_rules([block("Never let `retry` run more than 17 times in src/api.py.", name="b7")])

    assert (rule.source, rule.block) == ("user", "b7")


def test_each_wording_counts_once() -> None:
    blocks = [block("Never push to main.", name=f"b{number}") for number in range(3)]

    assert len(find_rules(blocks)) == 1


@pytest.mark.parametrize(
    "text", ["never ", "we use it, and whenever we look ", "这个页面显示的数据和后台返回的内容"]
)
def test_a_long_text_without_sentences_takes_bounded_time(text: str) -> None:
    assert rules(text * 50_000) == []
