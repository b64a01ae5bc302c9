"""The counter of a model: exact or labeled an estimate, and never blocking the agent."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.protocols import TokenCounter
from windowpane.exceptions import VocabularyError
from windowpane.models.tokens import counter_for, image_tokens
from windowpane.models.tokens.encodings import CL100K, O200K, EncodingSpec, encoding_of
from windowpane.models.tokens.exact_counter import ExactCounter, TokenCount, Vocabulary, load_for_bulk
from windowpane.models.tokens.heuristic import (
    CLAUDE,
    CLAUDE_4_7,
    GEMINI,
    OTHER,
    HeuristicCounter,
    TokenizerFamily,
    family_of,
)

PROSE = "The agent read the file and decided that nothing in it had to change. "
CODE = 'if (node["kind"] == "call") { return visit(node["args"][0], depth + 1); }\n'


class GatedLoad:
    """A loader that waits for permission, so that a test decides when loading ends."""

    def __init__(self) -> None:
        self.permission = threading.Event()
        self.calls = 0

    def __call__(self, spec: EncodingSpec) -> TokenCount:
        self.calls += 1
        assert self.permission.wait(30)
        return load_for_bulk(spec)


def broken(spec: EncodingSpec) -> TokenCount:
    raise VocabularyError(spec.name, "was damaged on purpose")


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", O200K),
        ("gpt-4o-mini-2024-07-18", O200K),
        ("openai/gpt-4.1", O200K),
        ("litellm_proxy/azure/gpt-5", O200K),
        ("gpt-5.3-codex-spark", O200K),
        ("GPT-5.4", O200K),
        ("o3", O200K),
        ("o1-preview", O200K),
        ("gpt-oss-120b", O200K),
        ("ft:gpt-4o-mini-2024-07-18:acme", O200K),
        ("gpt-4", CL100K),
        ("gpt-4-turbo", CL100K),
        ("gpt-3.5-turbo-0125", CL100K),
        ("claude-sonnet-4-5", None),
        ("gemini-2.5-flash", None),
        ("deepseek-chat", None),
        ("gpt-4.9", None),
        ("gpt-50", None),
        ("gpt-9", None),
        ("acme/gpt-4o", None),
        ("o1x", None),
        ("", None),
    ],
)
def test_only_openai_names_have_an_encoding(model: str, encoding: EncodingSpec | None) -> None:
    assert encoding_of(model) is encoding


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-3-5-sonnet-20240620", CLAUDE),
        ("claude-sonnet-4-20250514", CLAUDE),
        ("litellm_proxy/anthropic/claude-sonnet-4-5-20250929", CLAUDE),
        ("us.anthropic.claude-opus-4-6-v1:0", CLAUDE),
        ("claude-sonnet-4.6", CLAUDE),
        ("claude-opus-4-7", CLAUDE_4_7),
        ("claude-opus-4.8", CLAUDE_4_7),
        ("claude-sonnet-5", CLAUDE_4_7),
        ("sonnet", CLAUDE),
        ("gemini-2.5-flash", GEMINI),
        ("google/gemma-3-27b", GEMINI),
        ("deepseek-reasoner", OTHER),
        ("minimax-m2.7", OTHER),
        ("claudette", OTHER),
    ],
)
def test_a_family_is_read_from_the_name(model: str, family: TokenizerFamily) -> None:
    assert family_of(model) is family


def test_known_counts_are_exact() -> None:
    text = "antidisestablishmentarianism"

    assert counter_for("gpt-4o", wait=True).count(text) == 6
    assert counter_for("gpt-4", wait=True).count(text) == 6
    assert counter_for("gpt-4o", wait=True).source == "exact"
    assert counter_for("gpt-4", wait=True).count("お誕生日おめでとう") == 9
    assert counter_for("gpt-4o", wait=True).count("お誕生日おめでとう") == 8


def test_special_tokens_in_text_are_ordinary_text() -> None:
    counter = counter_for("gpt-4o", wait=True)

    assert counter.count("<|endoftext|>") > 1
    assert counter.count("<|im_start|>system") > 1


def test_counting_never_waits_for_the_vocabulary() -> None:
    load = GatedLoad()
    counter = ExactCounter(Vocabulary(O200K, load=load))

    assert counter.ready(timeout_seconds=0.01) is False
    assert counter.source == "estimate"
    assert counter.count(PROSE) > 0

    load.permission.set()

    assert counter.ready(timeout_seconds=30) is True
    assert counter.source == "exact"
    assert counter.count(PROSE) == 16


def test_threads_that_start_together_load_once(monkeypatch: pytest.MonkeyPatch) -> None:
    load = GatedLoad()
    load.permission.set()
    vocabulary = Vocabulary(O200K, load=load)
    another = threading.Thread(target=lambda: exact.append(vocabulary.wait()))
    exact: list[bool] = []

    class Overtaken(threading.Thread):
        """A loading thread that another caller sees just before it runs."""

        def start(self) -> None:
            if another.ident is None:
                another.start()
                another.join(0.2)
            super().start()

    monkeypatch.setattr(threading, "Thread", Overtaken)

    assert vocabulary.wait()
    another.join()
    assert exact == [True]
    assert load.calls == 1


def test_a_damaged_vocabulary_falls_back_to_estimates(caplog: pytest.LogCaptureFixture) -> None:
    vocabulary = Vocabulary(O200K, load=broken)
    counter = ExactCounter(vocabulary)

    assert counter.ready(timeout_seconds=30) is False
    assert counter.ready(timeout_seconds=30) is False
    assert counter.source == "estimate"
    assert counter.count(PROSE) > 0
    assert len(caplog.records) == 1
    with pytest.raises(VocabularyError, match="damaged on purpose"):
        vocabulary.require()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_loading_affects_neither_process() -> None:
    program = (
        "import os\n"
        "from windowpane.models.tokens import counter_for\n"
        "counter = counter_for('gpt-5')\n"
        "child = os.fork()\n"
        "os.write(1, f\"{counter.ready(30)} {counter.count('hello world')}\\n\".encode())  # one write a line\n"
        "if child: os.waitpid(child, 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "True 2\nTrue 2\n"
    assert done.stderr == ""


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gemini-2.5-pro", "deepseek-chat", "mystery"])
def test_other_models_are_estimated_from_o200k(model: str) -> None:
    """The count is o200k's times the family's ratio for prose or code, labeled an estimate."""
    counter = counter_for(model, wait=True)
    exact = counter_for("gpt-4o", wait=True)
    family = family_of(model)

    assert counter.source == "estimate"
    assert counter.count(PROSE * 50) == round(exact.count(PROSE * 50) * family.prose_ratio)
    assert counter.count(CODE * 50) == round(exact.count(CODE * 50) * family.code_ratio)


def test_both_counters_satisfy_the_protocol() -> None:
    assert isinstance(counter_for("gpt-4o"), TokenCounter)
    assert isinstance(counter_for("claude-sonnet-4-5"), TokenCounter)


@given(text=st.text(max_size=300))
def test_counts_are_deterministic_and_zero_only_for_empty_text(text: str) -> None:
    for model in ("gpt-4o", "gpt-4", "claude-opus-4-7", "gemini-2.5-pro", "mystery"):
        count = counter_for(model, wait=True).count(text)

        assert count == counter_for(model, wait=True).count(text)
        assert (count == 0) == (text == "")


@given(text=st.text(st.characters(codec=None, categories=None), max_size=100))
def test_any_string_can_be_counted(text: str) -> None:
    unloaded = HeuristicCounter(CLAUDE, Vocabulary(O200K, load=broken))

    assert counter_for("gpt-4o", wait=True).count(text) >= (text != "")
    assert unloaded.count(text) >= (text != "")


def test_an_image_has_a_flat_cost() -> None:
    assert image_tokens("claude-sonnet-4-5") == 1_600
    assert image_tokens("gpt-4o") == 765
    assert image_tokens("gemini-2.5-flash") == 258
    assert image_tokens("mystery") == 1_000
