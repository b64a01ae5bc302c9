"""The reference index: rare identifiers tie later content to the blocks it uses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.window.references import (
    IDENTIFIERS_PER_BLOCK,
    MAXIMUM_CANDIDATES,
    MAXIMUM_USED,
    ReferenceIndex,
    argument_values,
    identifiers,
)


def test_paths_numbers_names_and_ids_are_identifiers() -> None:
    text = (
        "see src/app/main.py, order 4711042, user_id, parseDate, os.path.join, 3f2a9c1b and 'retry' in 42 words"
    )

    assert identifiers(text) == [
        "src/app/main.py",
        "4711042",
        "user_id",
        "parseDate",
        "os.path.join",
        "3f2a9c1b",
        "retry",
    ]


def test_an_identifier_refers_to_the_block_that_contains_it() -> None:
    index = ReferenceIndex()
    index.add("a", "the file src/a.py holds parseDate")
    index.add("b", "the file src/b.py")

    assert index.referenced("open src/a.py and fix parseDate") == ("a",)
    assert index.referenced("nothing of it") == ()


def test_an_identifier_in_many_blocks_refers_to_none() -> None:
    index = ReferenceIndex()
    for name in "abc":
        index.add(name, "src/shared.py")
    assert index.referenced("src/shared.py") == ("a", "b", "c")

    index.add("d", "src/shared.py")
    assert index.referenced("src/shared.py") == ()


def test_removed_blocks_are_not_referenced() -> None:
    index = ReferenceIndex()
    for name in "abcd":
        index.add(name, "src/shared.py")
    index.discard("b")
    index.discard("unknown")

    assert index.referenced("src/shared.py") == ("a", "c", "d")
    index.clear()
    assert len(index) == 0
    assert index.referenced("src/shared.py") == ()


def test_a_block_is_indexed_by_its_rarest_identifiers() -> None:
    index = ReferenceIndex()
    common = " ".join(f"pkg/common_{number}.py" for number in range(IDENTIFIERS_PER_BLOCK))
    index.add("a", common)
    index.add("b", common + " pkg/only_here.py")

    assert index.referenced("pkg/only_here.py") == ("b",)


@given(
    st.lists(st.integers(0, 60), max_size=80),
    st.lists(st.integers(0, 200), max_size=150),
)
def test_the_rarest_identifiers_are_the_longest_of_those_in_the_fewest_blocks(
    held: list[int], numbers: list[int]
) -> None:
    names = [f"{'pkg/' * (number % 4)}n_{number}" for number in range(201)]
    index = ReferenceIndex()
    for block, number in enumerate(held):
        index.add(f"b{block}", names[number])
    text = " ".join(names[number] for number in numbers)
    rarest = sorted(identifiers(text), key=lambda name: (len(index.holders(name)), -len(name)))
    index.add("text", text)

    assert set(index.held("text")) == set(rarest[:IDENTIFIERS_PER_BLOCK])


def test_block_indexed_again_has_only_its_new_identifiers() -> None:
    index = ReferenceIndex()
    index.add("a", "src/old.py")
    index.add("a", "src/new.py")

    assert index.referenced("src/old.py src/new.py") == ("a",)
    assert index.referenced("src/old.py") == ()


def test_the_number_of_identifiers_is_bounded() -> None:
    for text in ("a" * 500_000, "a/" * 250_000, "'" * 500_000, "0-" * 250_000, "aB." * 150_000):
        assert len(identifiers(text)) <= MAXIMUM_CANDIDATES
    many = " ".join(f"pkg/file_{number}.py" for number in range(8_000))
    assert len(identifiers(many)) == MAXIMUM_CANDIDATES


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.text("ab/._1Z ", max_size=40)), max_size=30)
)
def test_the_index_contains_exactly_the_blocks_of_the_window(steps: list[tuple[str, bool, str]]) -> None:
    index = ReferenceIndex()
    texts: dict[str, str] = {}
    for name, add, text in steps:
        if add:
            index.add(name, text)
            if identifiers(text):
                texts[name] = text
        else:
            index.discard(name)
            texts.pop(name, None)

    assert len(index) == len(texts)
    for name, text in texts.items():
        for word in identifiers(text):
            holders = [other for other, held in texts.items() if word in identifiers(held)]
            assert (name in index.referenced(word)) == (len(holders) <= 3)


def test_used_identifiers_outlive_their_blocks() -> None:
    index = ReferenceIndex()
    index.add("a", "src/a.py holds parseDate")
    index.referenced("parseDate in src/a.py, and invented_name", turn=3)
    index.discard("a")
    index.referenced("parseDate once more", turn=5)

    assert index.used == ("src/a.py", "parseDate")
    assert index.held("a") == ()
    assert list(index.holders("parseDate")) == []


def test_blocks_are_in_use_by_recently_used_identifiers() -> None:
    index = ReferenceIndex()
    index.add("a", "src/a.py holds parseDate")
    index.add("b", "src/b.py")
    index.referenced("src/b.py", turn=1)
    index.referenced("src/a.py", turn=7)
    index.referenced("parseDate", turn=8)

    assert index.in_use(5) == {"a": ["parseDate", "src/a.py"]}
    assert index.in_use(1) == {"a": ["parseDate", "src/a.py"], "b": ["src/b.py"]}


def test_the_memory_of_used_identifiers_is_bounded() -> None:
    index = ReferenceIndex()
    for number in range(MAXIMUM_USED + 5):
        index.add(f"b{number}", f"file_{number}.py")
        index.referenced(f"file_{number}.py")

    assert len(index.used) == MAXIMUM_USED
    assert index.used[0] == "file_5.py"


def test_names_of_arguments_are_not_references() -> None:
    said = argument_values('{"file_path": "src/a.py", "edits": [{"new_text": "say \\"key\\": 1"}]}')

    assert identifiers(said) == ["src/a.py"]
    assert '\\"key\\": 1' in said
