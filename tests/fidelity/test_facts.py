"""Facts of a conversation that summaries, checkpoints and questions are made from, and the names that stay."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fidelity_blocks import block

from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import extract_facts, names_kept
from windowpane.fidelity.tokens import TOKEN


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", [".", "-", "/", "~", "$", "+", "@", "a", "0", "_", ". ", "a.", "../", "=", "'", "é"]
)
def test_a_line_of_a_million_characters_is_read_like_any_other(unit: str) -> None:
    """Progress bars, rules and minified code cost what their length does; time that grows with its square would
    not end here.
    """
    line = unit * (1_000_000 // len(unit)) + " user_service"

    assert "user_service" in [fact.text for fact in extract_facts([block(line)])]


@pytest.mark.parametrize(
    "name", ["../../../../../paths.js", "--dry-run", "~/src/app.py", "$HOME/bin", "./run.sh"]
)
def test_the_characters_before_a_name_belong_to_it(name: str) -> None:
    assert TOKEN.findall(f"look at {name}, then") == ["look", "at", name, "then"]


def test_tool_output_names_count_only_when_used() -> None:
    output = block("alpha_one\nbeta_two\ngamma_three", "tool_result", n=1)
    said = block("I will rename beta_two", n=2)

    facts = {fact.text for fact in extract_facts([output, said]) if fact.kind == "identifier"}

    assert {"beta_two"} == facts


def facts_of(*blocks: Block) -> set[tuple[str, str]]:
    return {(fact.kind, fact.text) for fact in extract_facts(blocks)}


def test_alternatives_in_prose_are_no_path() -> None:
    said = facts_of(block("Use read/write or get/set in src/api.py"))

    assert said == {("path", "src/api.py")}
    assert ("path", "read/write") in facts_of(*(block("read/write", "tool_result", n=n) for n in range(2)))


def test_a_number_is_a_fact_under_the_key_it_is_set_to() -> None:
    assert facts_of(block("port: 8080, retries = 3")) == {("number", "port=8080"), ("number", "retries=3")}
    assert facts_of(block("we tried timeout 30 and 12:30 and id: 7")) == set()


def test_the_goal_is_the_first_line_of_the_first_user_message() -> None:
    found = facts_of(
        block("Port the exporter now\nand more of it", "user_message"),
        block("Rename another thing instead", "user_message", n=1),
    )

    assert {text for kind, text in found if kind == "goal"} == {"Port the exporter now"}


def test_sentences_that_tools_print_are_not_decisions() -> None:
    printed = facts_of(block("they decided to use nothing else\nValueError: no such table", "tool_result"))

    assert printed == {("error", "ValueError: no such table")}


def test_names_in_use_weigh_more_than_old_ones() -> None:
    turns = [replace(block(f"Edited src/module_{n}.py for step {n}.", n=n), turn=n) for n in range(60)]
    old, new = (" ".join(f"src/module_{n}.py" for n in part) for part in (range(30), range(30, 60)))

    newer, older = names_kept(turns, [block(new)]), names_kept(turns, [block(old)])

    assert newer is not None
    assert older is not None
    assert newer > 2 * older > 0


def test_without_names_their_share_is_unknown() -> None:
    assert names_kept([block("well then, hello")], [block("hi")]) is None
