"""The second table of window sizes, and its place behind the first."""

from __future__ import annotations

import pytest

from windowpane.models.catalog import PackagedCatalog, window_sizes


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gemini-2.5-pro", 1_048_576),
        ("google/gemini-2.5-pro", 1_048_576),
        ("models/gemini-3-pro-preview", 1_048_576),
        ("Qwen3-Coder-Plus", 997_952),
        ("moonshotai/kimi-k2", 131_072),
        ("mistral-large-latest", 262_144),
        ("llama-3.3-70b-versatile", 131_072),
    ],
)
def test_models_that_the_first_table_has_no_size_of(model: str, tokens: int) -> None:
    info = PackagedCatalog().lookup(model)

    assert info is not None
    assert (info.limit_tokens, info.limit_source) == (tokens, "catalogue")


def test_a_size_that_providers_differ_on_is_assumed() -> None:
    model = "meta-llama/Llama-3.3-70B-Instruct"
    sizes, catalog = window_sizes(model), PackagedCatalog()
    assert sizes is not None
    assert not sizes.is_certain

    info = catalog.lookup(model)
    assert info is not None
    assert (info.limit_tokens, info.limit_source) == (sizes.tokens, "assumed")
    assert [catalog.next_limit(model, sizes.tokens + 1)] == [*sizes.larger[:1], None][:1]
    assert catalog.next_limit(model, 100_000_000) is None


def test_what_comes_first_stays_first() -> None:
    given = PackagedCatalog(limits={"gemini-2.5-pro": 50_000}).lookup("gemini-2.5-pro")
    first = PackagedCatalog().lookup("gpt-4o")

    assert given is not None
    assert (given.limit_tokens, given.limit_source) == (50_000, "given")
    assert first is not None
    assert first.limit_tokens == 128_000


@pytest.mark.parametrize("model", ["acme/gemini-2.5-pro", "qwen3-coder-pluses", "", "x" * 1_000, "gemini"])
def test_another_name_has_no_size(model: str) -> None:
    assert PackagedCatalog().lookup(model) is None
