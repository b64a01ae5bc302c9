"""Names worth keeping: what the agent called things by stays visible when the things are removed."""

from __future__ import annotations

from builders import item, manager, snapshot, tool_items

from windowpane.core.events import ContentCompressed
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import ReferenceIndex
from windowpane.fidelity.facts import extract_facts
from windowpane.fidelity.form import form_faults
from windowpane.fidelity.situation import Fact
from windowpane.manager.plans.eviction import plan_eviction
from windowpane.manager.plans.placeholders import MAXIMUM_TOKENS, placeholder_text
from windowpane.manager.plans.policies import POLICIES
from windowpane.manager.plans.statements import statements_of
from windowpane.manager.plans.summary import (
    MAXIMUM_NAMES,
    Names,
    measures_of,
    names_to_keep,
    newest_measures,
    parse_sections,
    summarize,
)
from windowpane.testing import CharacterCounter, RecordingSink, chat_reply

COUNTER = CharacterCounter()


def index_of(texts: dict[str, str]) -> ReferenceIndex:
    """An index that holds these blocks."""
    index = ReferenceIndex()
    for name, text in texts.items():
        index.add(name, text)
    return index


def test_the_names_the_agent_used_come_last_and_so_stay_longest() -> None:
    index = index_of({"a": "src/one.py src/two.py src/three.py", "b": "src/four.py"})
    index.referenced("src/two.py")
    index.referenced("src/one.py")
    removed = [item("a", "tool_result", 500).block, item("b", "tool_result", 500).block]

    names = names_to_keep(index, removed)

    assert names.used == ["src/two.py", "src/one.py"]
    assert set(names.seen) == {"src/three.py", "src/four.py"}


def test_a_name_that_stays_visible_is_not_repeated() -> None:
    index = index_of({"a": "src/shared.py src/alone.py", "b": "src/shared.py"})
    index.referenced("src/shared.py")

    assert names_to_keep(index, [item("a", "tool_result", 500).block]).seen == ["src/alone.py"]


def test_a_used_name_is_carried_from_summary_to_summary() -> None:
    index = index_of({"a": "src/kept.py src/lost.py"})
    index.referenced("src/kept.py and src/lost.py")
    index.discard("a")

    assert names_to_keep(index, [item("s", "summary", 100).block], ["- src/kept.py"]).used == ["src/kept.py"]


def test_the_first_names_of_every_block_come_before_the_last_of_any() -> None:
    texts = {f"b{n}": " ".join(f"dir_{n}/file_{k}.py" for k in range(32)) for n in range(20)}
    names = names_to_keep(index_of(texts), [item(name, "tool_result", 500).block for name in texts]).seen

    assert len(names) == MAXIMUM_NAMES
    assert {name.split("/")[0] for name in names[-20:]} == {f"dir_{n}" for n in range(20)}


def test_a_summary_under_pressure_keeps_the_names_in_use() -> None:
    facts = [Fact("name", f"src/fact_{n}.py") for n in range(200)]
    earlier = "## Artifacts, paths and values\n- old/name.py, old/other.py\n- Prose about the build"
    text = summarize(
        facts,
        goal="",
        previous=[earlier],
        names=Names(["used/late.py", "used/last.py"], [f"seen/f{n}.py" for n in range(50)]),
        max_tokens=200,
        counter=COUNTER,
    )
    lines = parse_sections(text)["artifacts"]

    assert lines[-1].endswith("used/late.py, used/last.py")
    assert "old/name.py" in text
    assert "seen/f0.py" not in text
    assert COUNTER.count(text) <= 210


def test_a_summary_contains_a_sentence_and_a_name_once() -> None:
    sentence = "We decided that the index must never be rebuilt"
    facts = [
        Fact("name", "src/a.py"),
        Fact("decision", sentence),
        Fact("rule", sentence),
    ]
    text = summarize(facts, goal="", names=Names(["a.py", "src/a.py"], []), max_tokens=500, counter=COUNTER)

    assert text.count(sentence) == 1
    assert text.count("a.py") == 1


def test_a_summary_prefers_names_of_messages_to_names_that_tools_printed() -> None:
    measures = measures_of("The port is 8443, in 3 files.")
    names = Names([], [f"seen/f{n}.py" for n in range(200)], ["src/said.py"], measures)
    first = summarize([], goal="", names=names, max_tokens=200, counter=COUNTER)
    newer = Names([], [], [], measures_of("The port is 9443."))
    second = summarize([], goal="", previous=[first], names=newer, max_tokens=200, counter=COUNTER)

    assert "The port is 8443" in first
    assert "src/said.py" in second
    assert ("The port is 9443" in second, "8443" in second) == (True, False)


def test_a_number_is_kept_in_its_last_telling_phrases() -> None:
    text = "These are 256. we're handling 256, colors 256, map to 256, limit 500 ms, in the 256."
    measures = measures_of(text)

    assert measures == ["handling 256", "colors 256", "map to 256", "limit 500 ms"]
    assert newest_measures(measures) == ["colors 256", "map to 256", "limit 500 ms"]


def test_headings_of_a_summary_and_alternatives_in_prose_are_not_facts() -> None:
    """They would be carried from summary to summary for ever."""
    blocks = [
        item("s", "summary", 50, text="## State and next steps\n- remaining work on the parser").block,
        item("m", "memory_injection", 50, text="Drop a/an/the and sure/certainly.").block,
        item("n", "memory_injection", 50, text="Drop a/an/the and sure/certainly again.").block,
    ]
    said = {fact.text for fact in extract_facts(blocks)}

    assert "a/an/the" not in said
    assert not any("State and next steps" in text for text in said)


def test_a_placeholder_lists_names_in_use_before_the_rest_of_the_finding() -> None:
    block = item("b7", "tool_result", 3_000, 7).block
    text = placeholder_text(block, "x" * 400, "wp:b7", COUNTER, names=["src/a.py", "parseDate", "y" * 200])

    assert "Names: src/a.py, parseDate." in text
    assert "wp:b7" in text
    assert COUNTER.count(text) <= MAXIMUM_TOKENS


def test_the_plan_lists_names_in_use() -> None:
    items = [one for n in range(8) for one in tool_items(n, 2_000, n + 1)]
    view = snapshot(items, limit=20_000, in_use={"result0": ["src/used.py"]})
    plan = plan_eviction(view, 1_000, policy=POLICIES["hybrid"], counter=COUNTER)

    assert [removal.blocks[0].id for removal in plan.removals] == ["result0"]
    assert "src/used.py" in (plan.removals[0].placeholder or "")


def test_a_managed_session_keeps_a_used_name_when_the_result_is_summarized() -> None:
    sink = RecordingSink()
    with manager(sink, limit=8_192) as window:
        window.add_user("find the place")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("c0", "list", "{}")]))
        listing = "\n".join(f"packages/core/module_{n}.py" for n in range(30))
        window.on_tool_result("list", listing, "c0")
        window.on_turn_start()
        call = '{"path": "packages/core/module_17.py"}'
        window.on_turn_end(chat_reply(None, calls=[("c1", "read", call)]))
        window.on_tool_result("read", "x = 1\n" * 400, "c1")
        for n in range(7):
            window.on_turn_start()
            window.on_turn_end(chat_reply("thinking aloud " * 280, calls=[(f"d{n}", "run", "{}")]))
            window.on_tool_result("run", f"step {n}", f"d{n}")
        window.flush()
        summaries = [block.text or "" for block in window.blocks() if block.content_type == "summary"]

    assert [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]
    assert any("packages/core/module_17.py" in text for text in summaries)


def replies(*texts: str) -> list[Block]:
    return [item(f"a{n}", "assistant_response", 50, n, text=text).block for n, text in enumerate(texts)]


def test_what_was_decided_and_what_remains_is_repeated_word_for_word() -> None:
    statements = statements_of(
        replies(
            "The tests pass now. We keep the old parser, because the new one drops comments.",
            "Remaining: migrate the tenant tables. I looked at the tables of the store.",
        )
    )
    text = summarize([], goal="", statements=statements, max_tokens=400, counter=COUNTER)
    sections = parse_sections(text)

    assert sections["decisions"] == ["We keep the old parser, because the new one drops comments."]
    assert sections["state"] == ["Remaining: migrate the tenant tables."]
    assert sections["messages"] == ["I looked at the tables of the store."]


def test_a_repeated_line_announces_nothing_and_closes_its_marks() -> None:
    long = "We keep the parser of `" + "the_tables " * 40 + "` because it works."
    bold = "**Parser**: it reads `a_table` and **no** other."
    texts = replies(
        "We chose these because order matters:", "**Next steps:**", "Remaining: the `tables.", long, bold
    )
    text = summarize(
        [],
        goal="",
        statements=statements_of(texts),
        failures=["Traceback (most recent call last):"],
        max_tokens=400,
        counter=COUNTER,
    )

    assert "We chose these because order matters\n" in text
    assert bold in text
    assert form_faults(text) == ()


def test_no_section_displaces_another() -> None:
    chatter = [f"I looked at the table number {n} of the store, as it was written there." for n in range(300)]
    statements = statements_of(
        replies("We chose a queue because order matters here.", *chatter, "Next: write the docs.")
    )
    names = Names([f"src/used_{n}.py" for n in range(300)], [])
    failures = [f"ERROR {chr(97 + n)}-failure of another kind" for n in range(20)]
    text = summarize(
        [], goal="", statements=statements, names=names, failures=failures, max_tokens=600, counter=COUNTER
    )

    assert "We chose a queue because order matters here." in text
    assert "Next: write the docs." in text
    assert failures[-1] in text
    assert "src/used_299.py" in text


def test_a_name_stays_when_the_sentence_that_had_it_is_displaced() -> None:
    first = summarize(
        [], goal="", statements=statements_of(replies("The schema is in src/tables/first.py now.")),
        max_tokens=400, counter=COUNTER,
    )  # fmt: skip
    chatter = [f"I looked at the table number {n} of the store." for n in range(100)]
    second = summarize(
        [],
        goal="",
        previous=[first],
        statements=statements_of(replies(*chatter)),
        max_tokens=300,
        counter=COUNTER,
    )

    assert "The schema is in" not in second
    assert "src/tables/first.py" in second
