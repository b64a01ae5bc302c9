"""The probe: where the agent was, what stays visible of it, and what cannot be measured."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace

import msgspec
import pytest
from fidelity_blocks import block, digest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import FidelityEvaluated
from windowpane.core.window.blocks import Block
from windowpane.fidelity.probe import evaluate
from windowpane.text.losses import soundness_text

DECISION = "We decided to use fetch instead of axios because the bundle of src/app.ts must stay small."


def call(n: int, tool: str, arguments: str, target: str | None) -> Block:
    return Block(
        f"c{n}", "tool_call", 20, n, f"g{n}", 1, f"d{n}", len(arguments), "estimate", arguments,
        tool_call_id=f"t{n}", tool_name=tool, target=target,
    )  # fmt: skip


def result(n: int, tool: str, text: str, target: str | None) -> Block:
    return Block(
        f"r{n}", "tool_result", 20, n, f"g{n}", 1, f"e{n}", len(text), "estimate", text,
        tool_call_id=f"t{n}", tool_name=tool, target=target,
    )  # fmt: skip


SESSION = (
    block("Port the client of the billing service to httpx.", "user_message"),
    call(1, "Read", '{"file_path": "src/client/api.py"}', "src/client/api.py"),
    result(1, "Read", "import requests\n", "src/client/api.py"),
    call(2, "Edit", '{"file_path": "src/client/auth.py"}', "src/client/auth.py"),
    result(2, "Edit", "ok", "src/client/auth.py"),
    call(3, "Bash", '{"command": "pytest tests/client"}', "pytest"),
    result(3, "Bash", "Exit code 1\nTraceback\nexcept ImportError:\nERROR ERR-1572 token expired", "pytest"),
    call(
        4,
        "TodoWrite",
        '{"todos": [{"content": "Migrate the upload of invoices", "status": "pending"},'
        ' {"content": "Migrate the login form", "status": "completed"}]}',
        None,
    ),
    block(DECISION, n=5),
)


def judged(summary: str, removed: tuple[Block, ...] = SESSION, **options: object) -> FidelityEvaluated:
    return evaluate(removed, [block(summary, "summary", n=99)], digest=digest, **options)  # type: ignore[arg-type]


def test_the_form_of_a_summary_is_judged_and_not_that_of_a_message_beside_it() -> None:
    message = block("Use one color for the heading (as in bash and read. Investigate", "user_message", n=98)
    cut = msgspec.structs.replace(message, replaces="b1")

    def form(summary: str) -> tuple[str, ...]:
        return evaluate(SESSION, [cut, block(summary, "summary", n=99)], digest=digest).form

    assert form("The client was ported.") == ()
    assert form("The client was ported (see") == ("it ends within a sentence",)


def fates(evaluated: FidelityEvaluated) -> dict[str, str]:
    return {f"{fact.kind}: {fact.text}": fact.outcome for fact in evaluated.facts}


EVERYTHING = f"""\
Port the client of the billing service to httpx.
Changed src/client/auth.py, read api.py.
pytest tests/client fails with ERROR ERR-1572 token expired.
Open: migrate the upload of invoices.
{DECISION}"""


def test_what_the_user_wrote_behind_a_command_is_compared() -> None:
    arguments = "<command-args>https://example.com/team/app/pull/2</command-args>"
    command = block(f"<command-name>/review</command-name>\n{arguments}", "user_message", n=90)

    evaluated = judged("The user reviews https://example.com/team/app/pr/2.", (command, *SESSION))

    assert ("wrong_name", "contradicted") in {(fact.kind, fact.outcome) for fact in evaluated.facts}


def test_where_the_agent_was_is_taken_from_what_it_did() -> None:
    assert fates(judged("nothing of it")) == {
        "goal: Port the client of the billing service to httpx.": "lost",
        f"decision: {DECISION}": "lost",
        "open_work: Migrate the upload of invoices": "lost",
        "failed_command: pytest tests/client: ERROR ERR-1572 token expired": "lost",
        "changed_file: src/client/auth.py": "lost",
        "read_file: src/client/api.py": "lost",
    }


def test_a_summary_of_everything_keeps_everything() -> None:
    evaluated = judged(EVERYTHING)

    assert set(fates(evaluated).values()) == {"kept"}
    assert evaluated.score == 1.0
    assert soundness_text(evaluated) == "no fault found; not checked by a model"


def test_a_handle_or_a_transcript_makes_facts_recoverable() -> None:
    assert set(fates(judged("nothing", recoverable=True)).values()) == {"recoverable"}
    noted = judged("nothing\nread the full transcript at: /home/a/session.jsonl")
    assert set(fates(noted).values()) == {"recoverable"}
    assert noted.score == 0.0


def test_a_fact_in_a_written_file_is_recoverable_where_the_file_is_named() -> None:
    notes = call(9, "Write", f'{{"file_path": "NOTES.md", "content": "{DECISION}"}}', "NOTES.md")

    assert fates(judged("See NOTES.md", (*SESSION, notes)))[f"decision: {DECISION}"] == "recoverable"


def test_a_command_that_succeeded_later_has_not_failed() -> None:
    again = (
        call(7, "Bash", '{"command": "pytest tests/client"}', "pytest"),
        result(7, "Bash", "4 passed", "pytest"),
    )

    assert not [fact for fact in judged("x", (*SESSION, *again)).facts if fact.kind == "failed_command"]


def test_the_same_command_behind_another_one_succeeded_later() -> None:
    def run(n: int, command: str, output: str) -> tuple[Block, Block]:
        return call(n, "Bash", json.dumps({"command": command}), "git"), result(n, "Bash", output, "git")

    failed = run(7, "git add a.py && git rebase --continue", "Exit code 1\nerror: could not apply 4751067")
    hint = "Exit code 1\nmise ERROR no task lint:full\nmise ERROR run with MISE_VERBOSE=1"
    again = run(8, "cd src && git rebase --continue", "Successfully rebased")
    missing = run(9, "mise run lint:full", hint)

    facts = judged("x", (*SESSION, *failed, *again, *missing)).facts
    assert [fact.text for fact in facts if fact.kind == "failed_command"] == [
        "mise run lint:full: mise ERROR no task lint:full",
        "pytest tests/client: ERROR ERR-1572 token expired",
    ]


@pytest.mark.parametrize(
    ("summary", "fate"),
    [
        ("Read api.py.", "kept"),
        ("Read `client/api.py`.", "kept"),
        ("Read C:\\src\\client\\api.py.", "kept"),
        ("Read server/api.py.", "lost"),
        ("Read the_api.py.", "lost"),
        ("Read api.pyi.", "lost"),
    ],
)
def test_a_file_is_kept_by_its_name_or_folder_and_not_by_another_file(summary: str, fate: str) -> None:
    assert fates(judged(summary))["read_file: src/client/api.py"] == fate


def test_one_file_is_listed_once_and_files_of_windows_too() -> None:
    session = (
        call(1, "Edit", "{}", "D:\\app\\main.js"),
        call(2, "Edit", "{}", "src/auth.py"),
        call(3, "Edit", "{}", "/home/a/src/auth.py"),
    )

    files = [fact.text for fact in judged("x", session).facts if fact.kind == "changed_file"]

    assert files == ["/home/a/src/auth.py", "D:\\app\\main.js"]


def test_an_old_plan_is_not_open_work() -> None:
    later = tuple(block(f"Step {n} is done.", n=n) for n in range(10, 31))

    assert not [fact for fact in judged("x", (*SESSION, *later)).facts if fact.kind == "open_work"]


def test_a_decision_whose_reason_follows_in_a_list_is_not_one_with_a_reason() -> None:
    session = (block("I decided to go with **per-file pools** because:", n=1),)

    assert not [fact for fact in judged("x", session).facts if fact.kind == "decision"]


def test_musings_of_the_model_are_no_decisions_and_no_rules() -> None:
    musings = block(
        "Maybe we must always use axios because it never fails, or should I decide otherwise?", "thinking"
    )

    evaluated = judged("x", (musings,))

    assert evaluated.score is None
    assert evaluated.reason == "a score needs 5 facts, 0 were found"


def test_a_lost_rule_is_listed_before_a_lost_file() -> None:
    rule = block("Never push to the main branch without my approval.", "user_message", n=8)

    facts = judged("Port the client", (*SESSION, rule)).facts

    assert [facts[0].kind, facts[0].outcome] == ["rule", "lost"]


def test_the_file_that_was_read_is_named_by_the_block_that_has_its_content() -> None:
    (read,) = [fact for fact in judged("x").facts if fact.kind == "read_file"]

    assert read.block == "r1"


def wrapped(text: str) -> str:
    return "\n".join(textwrap.fill(line, 40, break_on_hyphens=False) for line in text.split("\n"))


def joined(text: str) -> str:
    return " ".join(text.split("\n"))


def reworded(text: str) -> str:
    return (
        text.replace("decided to use", "chose to employ").replace("because", "since").replace("Changed", "Edited")
        .replace("fails with", "ends in").replace("Open: migrate", "Still to be migrated:")
    )  # fmt: skip


@pytest.mark.parametrize("harmless", [wrapped, joined, reworded])
def test_harmless_changes_leave_the_score_alone(harmless) -> None:
    assert judged(harmless(EVERYTHING)).score == pytest.approx(1.0, abs=0.01)


def test_little_coverage_gives_no_score_and_a_reason() -> None:
    evaluated = evaluate([block("Fix it", tokens=40), block(None, tokens=60, n=1)], [], digest=digest)

    assert evaluated.score is None
    assert pytest.approx(0.4) == evaluated.coverage
    assert "40%" in evaluated.reason


def test_outcomes_are_bounded_and_counted() -> None:
    rules = "\n".join(f"- Never change the file src/part_{n}.py without asking me." for n in range(400))

    evaluated = judged("x", (block(rules, "user_message"),))

    assert len(evaluated.facts) <= 200
    assert evaluated.facts_total == evaluated.facts_kept + evaluated.facts_recoverable + evaluated.facts_lost > 50


POLISH = (
    "Proszę przenieść klienta usługi rozliczeń do nowej biblioteki, zachowując wszystkie dotychczasowe nazwy"
    " metryk, ponieważ dwa pulpity wciąż je odczytują, a następnie uruchomić testy integracyjne i naprawić błędy."
)


def test_an_unknown_language_is_reported_as_not_measured() -> None:
    polish = block(POLISH, "user_message")

    assert "no words for them are known" in judged("x", (polish, *SESSION[1:4])).unmeasured[0]
    assert not judged("x").unmeasured


@pytest.mark.parametrize(
    "removed",
    [
        "word " * 60_000,
        "retries at 17, " * 20_000,
        "\n".join(f"2026-01-01 12:00:00 INFO request {n} took {n % 97} ms" for n in range(8_000)),
        "." * 300_000,
        "不要推送到main分支。" * 20_000,
    ],
    ids=["few words", "repeated numbers", "log", "dots", "no spaces"],
)
@pytest.mark.timeout(60)
def test_the_work_is_bounded_whatever_the_text_is_like(removed: str) -> None:
    blocks = [block(removed, "user_message"), block(removed, n=1), *SESSION]

    evaluate(blocks, [block(removed[:60_000] + EVERYTHING, "summary", n=99)], digest=digest)


@given(st.lists(st.text(max_size=300), max_size=6), st.lists(st.text(max_size=300), max_size=6))
def test_any_text_gives_a_score_in_range_or_a_reason(removed: list[str], visible: list[str]) -> None:
    evaluated = evaluate(
        [block(text, "user_message", n=n) for n, text in enumerate(removed)],
        [block(text, "summary", n=n) for n, text in enumerate(visible)],
        digest=digest,
    )

    if evaluated.score is None:
        assert evaluated.reason
    else:
        assert 0.0 <= evaluated.score <= 1.0


@pytest.mark.parametrize("handle", ["wp:b0", None])
def test_a_message_that_was_cut_is_kept_in_part_and_its_rest_recoverable_by_its_handle(
    handle: str | None,
) -> None:
    start, end = (
        "Move the invoices of March into the archive of the ledger.",
        "Never delete the table ledger_copy.",
    )
    message = block(f"{start} Compare their sums with the accountant.\n{end}", "user_message")
    cut = replace(
        message, id="cut", text=f"{start}\n[… 14 tokens left out …]\n", replaces=message.id, handle=handle
    )

    found = evaluate([message], [cut], digest=str)

    assert {fact.text: fact.outcome for fact in found.facts} == {
        start: "kept",
        end: "recoverable" if handle else "lost",
    }
