"""Windows and prices of models, and models that are unknown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from genai_prices.data import providers
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.agents import window_of
from windowpane.core.events import Usage
from windowpane.core.protocols import ModelCatalog
from windowpane.exceptions import ConfigurationError
from windowpane.models.catalog import PackagedCatalog, own_windows

RECORDED_KNOWN = {
    "claude-3-5-sonnet-20240620": 200_000,
    "claude-3-5-sonnet-20241022": 200_000,
    "claude-3-sonnet-20240229": 200_000,
    "claude-opus-4-5-20251101": 200_000,
    "claude-opus-4-6": 1_000_000,
    "claude-sonnet-4": 200_000,
    "claude-sonnet-4-5": 200_000,
    "claude-sonnet-4-5-20250929": 200_000,
    "claude-sonnet-4-6": 1_000_000,
    "claude-sonnet-4.6": 1_000_000,
    "claude-sonnet-5": 1_000_000,
    "deepseek-chat": 64_000,
    "deepseek-reasoner": 64_000,
    "deepseek/deepseek-chat": 64_000,
    "deepseek/deepseek-reasoner": 64_000,
    "gemini-2.5-flash": 1_048_576,
    "gpt-4o": 128_000,
    "gpt-4o-2024-08-06": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4o-mini-2024-07-18": 128_000,
    "gpt-5": 400_000,
    "gpt-5.1-codex": 400_000,
    "gpt-5.3-codex": 400_000,
    "gpt-5.3-codex-spark": 128_000,
    "gpt-5.4": 1_050_000,
    "litellm_proxy/claude-sonnet-4-20250514": 200_000,
    "litellm_proxy/minimax-m2.7": 204_800,
    "openai/gpt-4o-mini": 128_000,
}
"""Models named in the recorded sessions that the catalog of genai-prices 0.2.3 or the second table knows."""

RECORDED_UNKNOWN = {"<synthetic>", "fable", "haiku", "sonnet"}
"""Names in the recorded sessions that name no model, or one that the catalog does not contain."""


def catalog(limits: Mapping[str, int] | None = None) -> PackagedCatalog:
    return PackagedCatalog(limits=limits)


def limit_of(model: str) -> int | None:
    info = catalog().lookup(model)
    return info.limit_tokens if info else None


@pytest.mark.parametrize(("model", "tokens"), RECORDED_KNOWN.items())
def test_recorded_models_have_their_window(model: str, tokens: int) -> None:
    assert limit_of(model) == tokens


@pytest.mark.parametrize(
    "model", ["claude-opus-4-6", "anthropic/claude-sonnet-5", "us.anthropic.claude-opus-4-6-v1:0"]
)
def test_a_claude_model_without_a_marker_is_assumed_to_have_its_larger_window(model: str) -> None:
    info = catalog().lookup(model)

    assert info is not None
    assert (info.limit_tokens, info.limit_source, info.smaller_tokens) == (1_000_000, "assumed", 200_000)
    assert catalog().limit_source(model) == "assumed"
    assert catalog().next_limit(model, above=200_001) == 1_000_000
    assert catalog().smaller_limit(model, used=167_000) == 200_000
    assert catalog().smaller_limit(model, used=200_001) is None


def test_a_marked_claude_model_has_its_larger_window_until_a_compaction_refutes_it() -> None:
    info = catalog().lookup("claude-opus-4-6[1m]")

    assert info is not None
    assert (info.limit_tokens, info.limit_source) == (1_000_000, "catalogue")
    assert catalog().smaller_limit("claude-opus-4-6[1m]", used=167_000) == 200_000


def test_other_models_have_one_window() -> None:
    info = catalog().lookup("gpt-5.4")

    assert info is not None
    assert (info.limit_tokens, info.limit_source) == (1_050_000, "catalogue")
    assert catalog().smaller_limit("gpt-5.4", used=1) is None


@pytest.mark.parametrize("model", sorted(RECORDED_UNKNOWN))
def test_recorded_names_that_are_unknown_stay_unknown(model: str) -> None:
    assert catalog().lookup(model) is None
    assert catalog().limit_source(model) is None
    assert catalog().next_limit(model, above=1) is None
    assert catalog().cost_dollars(model, Usage(input_tokens=1_000), at=None) is None


def test_the_lists_contain_every_recorded_model(sessions_dir: Path) -> None:
    """No name in the recorded sessions is missing from the two lists above."""
    pattern = re.compile(r'"(?:model|model_name|modelID)": ?"([^"\\]{2,80})"')
    texts = (path.read_text(errors="replace") for path in sessions_dir.rglob("*.json*"))
    found = {name for text in texts for name in pattern.findall(text)}

    assert found - RECORDED_UNKNOWN == set(RECORDED_KNOWN)


@pytest.mark.parametrize(
    ("model", "provider", "tokens"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic", 200_000),
        ("vertex_ai/claude-sonnet-4-5@20250929", "google", 200_000),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws", 200_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws", 200_000),
        ("azure/gpt-4o", "azure", 128_000),
        ("openrouter/openai/gpt-4o", "openrouter", 128_000),
        ("gpt-5.2-20251211", "openai", 400_000),
        (" GPT-4o ", "openai", 128_000),
        ("claude-sonnet-4-5[1m]", "anthropic", 1_000_000),
    ],
)
def test_a_prefix_names_the_provider(model: str, provider: str, tokens: int) -> None:
    info = catalog().lookup(model)

    assert info is not None
    assert (info.provider, info.limit_tokens) == (provider, tokens)


@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-4-50",
        "claude-opus-4-1.5",
        "my-claude-sonnet-4-5",
        "gpt-4o-clone",
        "acme/gpt-4o",
        "openai/claude-sonnet-4-5",
        "kimi-k2.55",
        "gpt-99",
        "",
        " ",
        "/",
        "///",
        "x" * 10_000,
    ],
)
def test_a_similar_name_is_not_a_match(model: str) -> None:
    assert catalog().lookup(model) is None


def test_the_version_check_accepts_the_catalogs_names() -> None:
    subject = catalog()
    lost = [
        f"{provider.id}/{model.id}"
        for provider in providers
        for model in provider.models
        if provider.find_model(model.id) is model
        and subject.lookup(f"{provider.id}/{model.id}") is None
        and not model.id.startswith("@")
    ]

    assert lost == []


def test_a_users_limit_overrides_the_catalog() -> None:
    """It also makes an unknown model known, with the source `given`."""
    subject = catalog({"gpt-4o": 32_000, "Acme-7B": 8_192})
    info, own = subject.lookup("GPT-4o"), subject.lookup("acme-7b")

    assert info is not None
    assert own is not None
    assert (info.name, info.limit_tokens, info.provider) == ("gpt-4o", 32_000, "openai")
    assert (own.name, own.limit_tokens, own.provider) == ("Acme-7B", 8_192, "")
    assert subject.limit_source("gpt-4o") == "given"
    assert subject.limit_source("gpt-4o-mini") == "catalogue"
    assert subject.limit_source("gpt-99") is None


@pytest.mark.parametrize("tokens", [0, -1, True, 1.5, "128k"])
def test_an_invalid_limit_is_rejected(tokens: object) -> None:
    with pytest.raises(ConfigurationError, match=r"limits\.acme"):
        PackagedCatalog(limits={"acme": tokens})  # type: ignore[dict-item]


def test_the_next_limit_is_sold_by_the_same_provider() -> None:
    assert catalog().next_limit("claude-sonnet-4-5", above=200_001) == 1_000_000
    assert catalog().next_limit("claude-sonnet-4-5", above=200_000) == 200_000
    assert catalog().next_limit("claude-sonnet-4-5", above=2_000_000) is None


def test_a_call_costs_the_list_price() -> None:
    usage = Usage(
        input_tokens=19_000,
        cache_read_tokens=30_000,
        cache_write_tokens=1_000,
        output_tokens=500,
        reasoning_tokens=400,
    )
    expected = (19_000 * 3 + 30_000 * 0.30 + 1_000 * 3.75 + 500 * 15) / 1_000_000

    assert catalog().cost_dollars("claude-sonnet-4-5-20250929", usage, at=1_767_225_600) == pytest.approx(
        expected
    )


def test_a_changed_price_is_selected_by_date() -> None:
    dated = catalog().cost_dollars("o3", Usage(input_tokens=1_000_000), at=1_746_000_000)
    newest = catalog().cost_dollars("o3", Usage(input_tokens=1_000_000), at=None)

    assert dated == pytest.approx(10)
    assert newest == pytest.approx(2)


def test_an_unpriced_model_has_no_cost() -> None:
    assert catalog().lookup("github-copilot/gpt-4o") is not None
    assert catalog().cost_dollars("github-copilot/gpt-4o", Usage(input_tokens=1_000), at=None) is None


@given(
    counts=st.tuples(*[st.integers(-5, 10**9)] * 4),
    at=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    model=st.sampled_from([*RECORDED_KNOWN, *RECORDED_UNKNOWN]) | st.text(max_size=30),
)
def test_lookups_and_prices_never_raise(counts: tuple[int, int, int, int], at: float | None, model: str) -> None:
    plain, output, read, write = counts
    usage = Usage(input_tokens=plain, output_tokens=output, cache_read_tokens=read, cache_write_tokens=write)
    cost = catalog().cost_dollars(model, usage, at)

    assert cost is None or cost >= 0
    catalog().lookup(model)


def test_the_catalog_fits_the_protocol() -> None:
    subject: ModelCatalog = catalog()

    assert subject.lookup("gpt-4o") is not None


def test_the_price_data_is_loaded_at_the_first_lookup() -> None:
    program = (
        "import json, windowpane.models.catalog as l\n"
        "before = l.providers.cache_info().currsize\n"
        "l.PackagedCatalog().lookup('gpt-4o')\n"
        "print(json.dumps([before, l.providers.cache_info().currsize]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == [0, 1]


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("gpt-5.6-codex", 400_000), ("gemini-3.5-pro", 1_048_576), ("claude-haiku-5", 1_000_000)],
)
def test_an_unknown_model_has_the_window_of_its_family(model: str, tokens: int) -> None:
    assert catalog().lookup(model) is None
    assert catalog().family_limit(model) == tokens
    assert window_of(catalog(), model) == (tokens, "assumed")


@pytest.mark.parametrize(
    "model", ["gpt-5.3-codex-sparkle", "haiku", "<synthetic>", "no-such-model", "gpt-99", ""]
)
def test_a_model_without_a_family_has_no_window(model: str) -> None:
    assert window_of(catalog(), model) is None


@pytest.fixture
def models_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr("windowpane.models.catalog.data_folder", lambda: tmp_path)
    own_windows.cache_clear()
    yield tmp_path / "models.json"
    own_windows.cache_clear()


def test_the_user_s_file_adds_models(models_file: Path) -> None:
    models_file.write_text('{"Our-Model": 64000, "gpt-4o": 100000}', encoding="utf-8")

    assert window_of(catalog(), "our-model") == (64_000, "catalogue")
    assert window_of(catalog(), "gpt-4o") == (100_000, "catalogue")


@pytest.mark.parametrize("content", ["[1]", "{", '{"a": "large"}', '{"a": -1}', '{"a": true}'])
def test_a_file_of_models_that_cannot_be_used_is_reported(
    models_file: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    models_file.write_text(content, encoding="utf-8")

    assert window_of(catalog(), "gpt-4o") == (128_000, "catalogue")
    assert str(models_file) in caplog.text
