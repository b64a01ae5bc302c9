"""Facts that summaries, checkpoints and questions are made from, and the names that stay."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from fidelity_blocks import block

from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import extract_facts, names_kept, names_of
from windowpane.fidelity.passages import TOKEN


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


@pytest.mark.parametrize("name", ["../paths.js", "--dry-run", "~/src/app.py", "$HOME/bin", "./run.sh"])
def test_the_characters_before_a_name_belong_to_it(name: str) -> None:
    assert TOKEN.findall(f"look at {name}, then") == ["look", "at", name, "then"]


def facts_of(*blocks: Block) -> set[tuple[str, str]]:
    return {(fact.kind, fact.text) for fact in extract_facts(blocks)}


def test_tool_output_names_count_only_when_used() -> None:
    output = block("alpha_one\nbeta_two\ngamma_three", "tool_result", n=1)
    said = block("I will rename beta_two", n=2)

    assert facts_of(output, said) == {("name", "beta_two")}


def test_a_number_is_a_fact_under_the_key_it_is_set_to() -> None:
    assert facts_of(block("port: 8080, retries = 3")) == {("setting", "port=8080"), ("setting", "retries=3")}
    assert facts_of(block("we tried timeout 30 at 12:30 and id: 7")) == set()
    assert not facts_of(block("retries = 3")) & facts_of(block("retries = 3"), block("retries = 4", n=1))


def test_rules_decisions_and_the_goal_are_facts() -> None:
    found = facts_of(
        block("Port the metrics exporter now. Never push to main.", "user_message"),
        block("We chose SQLite because it needs no server.", n=1),
        block("they decided to use nothing else because of it", "tool_result", n=2),
    )

    assert found >= {
        ("goal", "Port the metrics exporter now."),
        ("rule", "Never push to main."),
        ("decision", "We chose SQLite because it needs no server."),
    }
    assert [text for kind, text in found if kind == "decision"] == ["We chose SQLite because it needs no server."]


def test_names_in_use_weigh_more_than_old_ones() -> None:
    turns = [replace(block(f"Edited src/module_{n}.py for step {n}.", n=n), turn=n) for n in range(60)]
    old, new = (" ".join(f"src/module_{n}.py" for n in part) for part in (range(30), range(30, 60)))

    newer, older = names_kept(turns, [block(new)]), names_kept(turns, [block(old)])

    assert newer is not None
    assert older is not None
    assert newer > 2 * older > 0


def test_without_names_their_share_is_unknown() -> None:
    assert names_kept([block("well then, hello")], [block("hi")]) is None


def test_what_is_remembered_of_texts_is_no_work_for_pythons_search_for_cycles() -> None:
    """It comes at any time, also in a hook, and looks at all that it tracks: of each name in a window 20 ms."""
    gc.collect()
    before = len(gc.get_objects())
    readings = [
        names_of("\n".join(f"read_{n}_{line}(key_{n}_{line}=7)" for line in range(100))) for n in range(50)
    ]
    gc.collect()

    assert sum(map(len, readings)) >= 10_000
    assert len(gc.get_objects()) - before < 1_000
