"""Probe fidelity: facts of removed text, looked up in what stays visible."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity import probe
from windowpane.fidelity.facts import Fact, extract_facts
from windowpane.fidelity.probe import evaluate
from windowpane.fidelity.tokens import TOKEN


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def block(
    text: str | None, content_type: ContentType = "assistant_response", *, tokens: int | None = None, n: int = 0
) -> Block:
    count = tokens if tokens is not None else max(1, len(text or "") // 4)
    return Block(
        f"b{n}", content_type, count, 1, f"b{n}", 1, digest(text or ""), len(text or ""), "estimate", text
    )


def outcomes(evaluated: object) -> dict[str, str]:
    return {fact.text: fact.outcome for fact in evaluated.facts}  # type: ignore[attr-defined]


HISTORY = (
    "We decided to use fetch instead of axios because the bundle must stay small.\n"
    "The file src/client/api.ts calls request_with_retry with timeout: 30\n"
    "Next: migrate src/client/auth.ts and run the remaining integration tests."
)


def test_everything_still_visible_scores_one() -> None:
    evaluated = evaluate([block(HISTORY)], [block(HISTORY, "summary")], digest=digest)

    assert evaluated.score == 1.0
    assert 0 == evaluated.facts_lost == evaluated.facts_contradicted
    assert evaluated.facts_total == evaluated.facts_kept > 5


def test_nothing_visible_scores_zero() -> None:
    evaluated = evaluate([block(HISTORY)], [], digest=digest)

    assert evaluated.score == 0.0
    assert evaluated.facts_lost == evaluated.facts_total


def test_a_fact_recoverable_by_handle_is_not_visible() -> None:
    evaluated = evaluate([block(HISTORY)], [], digest=digest, recoverable=True)

    assert evaluated.score == 0.0
    assert evaluated.facts_recoverable == evaluated.facts_total


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


def test_lost_names_are_distinguished_from_kept_ones() -> None:
    summary = block("Migrating src/client/api.ts; timeout: 30", "summary")

    found = outcomes(evaluate([block(HISTORY)], [summary], digest=digest))

    assert "kept" == found["src/client/api.ts"] == found["timeout=30"]
    assert "lost" == found["src/client/auth.ts"] == found["request_with_retry"]


def test_another_value_under_the_same_key_contradicts() -> None:
    found = outcomes(evaluate([block(HISTORY)], [block("timeout: 60", "summary")], digest=digest))

    assert found["timeout=30"] == "contradicted"


def test_several_other_values_under_the_key_are_no_contradiction() -> None:
    visible = block("timeout: 60\ntimeout: 90", "summary")

    assert outcomes(evaluate([block(HISTORY)], [visible], digest=digest))["timeout=30"] == "lost"


def test_a_counter_is_no_fact_to_contradict() -> None:
    removed = block("step: 1\nstep: 2\nretries: 3")

    found = outcomes(evaluate([removed], [block("step: 9\nretries: 3")], digest=digest))

    assert found == {"retries=3": "kept"}


def test_a_decision_is_kept_only_within_one_line() -> None:
    together = block("Decided: fetch instead of axios, because the bundle must stay small", "summary")
    scattered = block("decided\nfetch\naxios\nbundle must\nstay small instead", "summary")

    kept = evaluate([block(HISTORY)], [together], digest=digest)
    lost = evaluate([block(HISTORY)], [scattered], digest=digest)

    assert kept.decisions == 1.0
    assert lost.decisions is not None
    assert lost.decisions < 0.3
    assert {"lost"} == {fact.outcome for fact in lost.facts if fact.kind == "decision"}


def test_tool_output_names_count_only_when_used() -> None:
    output = block("alpha_one\nbeta_two\ngamma_three", "tool_result", n=1)
    said = block("I will rename beta_two", n=2)

    facts = {fact.text for fact in extract_facts([output, said]) if fact.kind == "identifier"}

    assert {"beta_two"} == facts


def test_little_coverage_gives_no_score_and_a_reason() -> None:
    evaluated = evaluate([block(HISTORY, tokens=40), block(None, tokens=60, n=1)], [], digest=digest)

    assert evaluated.score is None
    assert pytest.approx(0.4) == evaluated.coverage
    assert "40%" in evaluated.reason


def test_text_without_facts_is_unknown_not_perfect() -> None:
    evaluated = evaluate([block("well then, hello")], [block("hi")], digest=digest)

    assert evaluated.score is None
    assert "no facts" in evaluated.reason


def test_a_dimension_without_facts_gives_its_weight_up() -> None:
    removed = block("The module parse_records reads data/in.csv")

    evaluated = evaluate([removed], [removed], digest=digest)

    assert evaluated.decisions is None
    assert evaluated.score == 1.0


def test_outcomes_are_bounded_and_worst_first() -> None:
    """At most 200 outcomes are listed and a lost one is never pushed out by a kept one."""
    names = "\n".join(
        f"name_number_{n} must be used in src/file_{n}.py because of reasons {n}" for n in range(600)
    )
    kept = "\n".join(names.split("\n")[::2])

    evaluated = evaluate([block(names)], [block(kept)], digest=digest)

    assert len(evaluated.facts) <= 200
    order = [fact.outcome for fact in evaluated.facts]
    assert order == sorted(order, key=["contradicted", "lost", "recoverable", "kept"].index)


def test_a_path_known_by_its_unique_base_name_is_kept() -> None:
    found = outcomes(evaluate([block(HISTORY)], [block("edit api.ts", "summary")], digest=digest))

    assert found["src/client/api.ts"] == "kept"


@given(st.lists(st.text(max_size=300), max_size=6), st.lists(st.text(max_size=300), max_size=6))
def test_any_text_gives_a_score_in_range_or_a_reason(removed: list[str], visible: list[str]) -> None:
    evaluated = evaluate(
        [block(text, n=n) for n, text in enumerate(removed)],
        [block(text, n=n) for n, text in enumerate(visible)],
        digest=digest,
    )

    if evaluated.score is None:
        assert evaluated.reason
    else:
        assert 0.0 <= evaluated.score <= 1.0
        assert evaluated.facts_total == (
            evaluated.facts_kept
            + evaluated.facts_recoverable
            + evaluated.facts_lost
            + evaluated.facts_contradicted
        )


@given(st.lists(st.text(alphabet="abc_/.:= 123\nmustnext", max_size=200), max_size=5))
def test_keeping_everything_is_never_less_than_perfect(texts: list[str]) -> None:
    blocks = [block(text, n=n) for n, text in enumerate(texts)]

    evaluated = evaluate(blocks, blocks, digest=digest)

    assert evaluated.score in (None, 1.0)


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


STATEMENTS = (
    "The exporter must keep the old metric names because two dashboards read them.\n"
    "I moved the retry loop into src/client/retry.py and it now waits 250 milliseconds between attempts.\n"
    "The integration tests of the billing service are not finished yet, three fail on the staging host.\n"
    "- Never call the payment endpoint from a test\n"
    "- The cache in build_index is rebuilt at every start, which takes about 40 seconds on the large repository\n"
)


def score(visible: str, removed: str = STATEMENTS) -> float:
    value = evaluate([block(removed)], [block(visible, "summary")], digest=digest).score
    assert value is not None
    return value


@pytest.mark.parametrize("width", [40, 60, 80])
def test_wrapped_lines_are_one_sentence(width: int) -> None:
    wrapped = "\n".join(textwrap.fill(line, width, break_on_hyphens=False) for line in STATEMENTS.split("\n"))

    assert score(wrapped) == pytest.approx(1.0, abs=0.03)


def test_light_rewording_changes_little() -> None:
    reworded = (
        STATEMENTS.replace("because", "since")
        .replace("keep", "retain")
        .replace("moved", "have moved")
        .replace("waits", "is waiting")
        .replace("finished", "complete")
        .replace("- ", "* ")
    )

    assert score(reworded) == pytest.approx(1.0, abs=0.03)


def test_a_sentence_wrapped_before_a_name_or_a_mark_is_found_again() -> None:
    removed = (
        "Decided: the conflict is considered resolved in A since\n"
        "Session A keeps all of its checkpoints on the old head, not on the new one\n\n"
        "Decided: both numbers are read as one value, first_attempt\n"
        "+ second_attempt, and compared with the limit of the task\n"
    )
    whole = removed.replace("since\n", "since ").replace("first_attempt\n", "first_attempt ")

    assert score(removed, whole) == 1.0


def test_a_synonym_that_is_negated_does_not_contradict() -> None:
    removed = (
        "The test is failing because the writer doesn't create `content_hash.txt` in the folder of the store\n"
    )

    assert score(removed.replace("create", "make"), removed) == 1.0
    assert score(removed.replace("doesn't create", "does create"), removed) < 0.8


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("must keep", "must not keep"),
        ("are not finished", "are finished"),
        ("Never call", "Always call"),
        ("is rebuilt", "is never rebuilt"),
        ("waits 250", "waits 520"),
        ("about 40 seconds", "about 4 seconds"),
        ("src/client/retry.py", "src/client/entry.py"),
        ("build_index", "build_cache"),
    ],
)
def test_a_changed_negation_number_or_name_contradicts(before: str, after: str) -> None:
    changed = STATEMENTS.replace(before, after)
    assert changed != STATEMENTS
    evaluated = evaluate([block(STATEMENTS)], [block(changed, "summary")], digest=digest)

    assert evaluated.facts_contradicted > 0
    assert score(changed) < 0.93


def test_what_the_removed_text_does_not_state_lowers_the_score() -> None:
    """A name that occurs nowhere was invented, unless it belongs to the task."""
    invented = STATEMENTS + "The module src/ghost/phantom_writer.py writes the ledger every night.\n"
    removed, visible = [block(STATEMENTS)], [block(invented, "summary")]

    with_task = evaluate(removed, visible, digest=digest, task="Write src/ghost/phantom_writer.py").score

    assert score(invented) < 1.0
    assert with_task == 1.0


def test_names_in_use_weigh_more_than_old_ones() -> None:
    turns = [replace(block(f"Edited src/module_{n}.py for step {n}.", n=n), turn=n) for n in range(60)]
    old = " ".join(f"src/module_{n}.py" for n in range(30))
    new = " ".join(f"src/module_{n}.py" for n in range(30, 60))

    def key_facts(text: str) -> float:
        value = evaluate(turns, [block(text, "summary")], digest=digest).key_facts
        assert value is not None
        return value

    assert key_facts(new) > 2 * key_facts(old) > 0


def test_a_removed_sentence_within_a_longer_one_is_kept() -> None:
    decided = "We decided to store the parsed settings in cache.json because parsing takes seconds"
    longer = f"{decided}, and we do not write the parsed settings of broken files there."

    evaluated = evaluate([block(decided)], [block(longer, "summary")], digest=digest)

    assert evaluated.facts_contradicted == 0
    assert outcomes(evaluated)[decided] == "kept"


def test_a_decision_with_common_synonyms_is_kept() -> None:
    before = "Let me update these to use `GetCurrentHookAgent()` instead."
    after = "Let me change these to employ `GetCurrentHookAgent()` instead."

    evaluated = evaluate(
        [block(before + "\n" + HISTORY)], [block(after + "\n" + HISTORY, "summary")], digest=digest
    )

    assert evaluated.score == 1.0


def test_a_share_is_the_same_on_every_python() -> None:
    """The built-in sum of fractions rounds otherwise since Python 3.12, and a changed score is a changed past."""
    facts = [probe._Weighed(Fact("identifier", "a"), None, 0.1)] * 12
    sights = [probe._Sight("kept", 0.1)] * 12

    assert probe._share(facts, sights, "key_facts") == 0.1
