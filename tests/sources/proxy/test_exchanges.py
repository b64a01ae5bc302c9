"""The calls of real clients, observed as they pass through the proxy."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from observed_calls import post, recorded  # type: ignore[import-not-found]
from scripted_upstream import Answer, UpstreamServer  # type: ignore[import-not-found]
from tests.providers.loopback import loopback_provider

import windowpane
from windowpane.core.events import BlockAdded, OverflowDetected, TurnEnded
from windowpane.models.tokens import counter_for
from windowpane.outputs.runtime.start import Runtime
from windowpane.sources.proxy.server import ProxyServer
from windowpane.store.embedded import SqliteStore

TOOLS = [{"type": "function", "function": {"name": "read", "description": "Read.", "parameters": {}}}]
QUESTION: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]


def content(payloads: list[Any]) -> list[tuple[str, str | None, int]]:
    return [
        (data.block.content_type, data.block.tool_name, data.block.tokens)
        for data in payloads
        if isinstance(data, BlockAdded)
    ]


@contextmanager
def client_of(base_url: str, shape: str) -> Iterator[Any]:
    """A provider's client, whose connections are closed at the end of the block."""
    kind: Any = anthropic.Anthropic if shape == "anthropic" else openai.OpenAI
    with kind(base_url=base_url, api_key="sk-secret-of-tests", max_retries=0) as client:
        yield client


def converse(client: Any, shape: str, *, stream: bool) -> None:
    """Make two calls of one conversation with the provider's own client."""
    if shape == "anthropic":
        messages: list[Any] = [{"role": "user", "content": "Hello."}]
        for _ in range(2):
            if stream:
                with client.messages.stream(
                    model="claude-of-tests", max_tokens=9, system="Be brief.", messages=messages
                ) as events:
                    reply = events.get_final_message()
            else:
                reply = client.messages.create(
                    model="claude-of-tests", max_tokens=9, system="Be brief.", messages=messages
                )
            messages += [
                {"role": "assistant", "content": [part.to_dict() for part in reply.content]},
                {"role": "user", "content": "Go on."},
            ]
        return
    history = list(QUESTION)
    for _ in range(2):
        if shape == "responses":
            items: Any = client.responses.create(model="gpt-4o", input=history, stream=stream)
            _ = [*items] if stream else items
        else:
            chunks: Any = client.chat.completions.create(
                model="gpt-4o", messages=history, stream=stream, tools=TOOLS
            )
            _ = [*chunks] if stream else chunks
        history += [{"role": "assistant", "content": "On it."}, {"role": "user", "content": "Go on."}]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", ["chat", "responses", "anthropic"])
def test_windows_equal_those_of_a_watched_client(
    shape: str, *, stream: bool, outputs: Runtime, proxy_to: Callable[..., ProxyServer]
) -> None:
    counter_for("gpt-4o", wait=True)
    with loopback_provider() as provider:
        path = "" if shape == "anthropic" else "/v1"
        upstream = "anthropic" if shape == "anthropic" else "openai"
        with client_of(f"{proxy_to(provider.url).url}/{upstream}{path}", shape) as client:
            converse(client, shape, stream=stream)
        assert outputs.flush()
        with client_of(f"{provider.url}{path}", shape) as client:
            converse(windowpane.observe(client, agent="other"), shape, stream=stream)
    through, watched = recorded(outputs)

    assert content(through) == content(watched)
    assert [data.usage for data in through if isinstance(data, TurnEnded)] == [
        data.usage for data in watched if isinstance(data, TurnEnded)
    ]
    assert len([data for data in through if isinstance(data, TurnEnded)]) == 2


def test_a_gemini_call_is_observed(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer], outputs: Runtime
) -> None:
    reply = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 2, "totalTokenCount": 42},
    }
    upstream.answer = Answer(200, [("content-encoding", "gzip")], [gzip.compress(json.dumps(reply).encode())])
    post(
        f"{proxy_to(upstream.url).url}/gemini/v1beta/models/gemini-2.5-pro:generateContent?key=k",
        {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]},
        **{"user-agent": "GeminiCLI/1.0"},
    )
    (events,) = recorded(outputs)
    assert outputs.store is not None
    (session,) = outputs.store.sessions()

    assert (session.agent, session.model) == ("gemini-cli", "gemini-2.5-pro")
    assert [data.usage.input_total for data in events if isinstance(data, TurnEnded) and data.usage] == [40]


def test_an_overflow_is_seen(
    upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer], outputs: Runtime
) -> None:
    text = "prompt is too long: 210000 tokens > 200000 maximum"
    upstream.answer = Answer(400, [], [json.dumps({"type": "error", "error": {"message": text}}).encode()])
    post(
        f"{proxy_to(upstream.url).url}/anthropic/v1/messages",
        {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "Hello."}]},
    )
    (events,) = recorded(outputs)

    assert [data.used_tokens for data in events if isinstance(data, OverflowDetected)] == [210_000]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"messages": 3}', b'{"messages": [{"role": 3}], "model": []}']
)
def test_a_body_that_cannot_be_read_passes(
    body: bytes, upstream: UpstreamServer, proxy_to: Callable[..., ProxyServer], outputs: Runtime
) -> None:
    upstream.answer = Answer(200, [], [b'{"object": "unheard of"}'])
    url = f"{proxy_to(upstream.url).url}/openai/v1/chat/completions"

    assert post(url, body) == b'{"object": "unheard of"}'
    post(url, {"model": "gpt-4o", "messages": QUESTION})
    assert any(map(content, recorded(outputs, lambda sessions: any(map(content, sessions)))))


def test_keys_are_not_stored(proxy_to: Callable[..., ProxyServer], outputs: Runtime, tmp_path: Path) -> None:
    with loopback_provider() as provider:
        with client_of(f"{proxy_to(provider.url).url}/openai/v1", "chat") as client:
            converse(client, "chat", stream=False)
        post(
            f"{proxy_to(provider.url).url}/openai/v1/chat/completions?key=query-key-of-tests",
            {"model": "gpt-4o", "messages": QUESTION},
        )
    recorded(outputs)
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())

    assert b"Be brief" in stored or b"Hello." in stored
    assert b"sk-secret-of-tests" not in stored
    assert b"query-key-of-tests" not in stored


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
    ],
    ids=["exits", "is killed"],
)
def test_run_observes_the_calls_of_one_program(end: str, code: int, tmp_path: Path) -> None:
    program = (
        "import openai\n"
        "client = openai.OpenAI(api_key='k')\n"
        "client.chat.completions.create(model='gpt-4o', messages=[{'role': 'user', 'content': 'Hello.'}])\n"
        "print('done', flush=True)\n"
        f"{end}\n"
    )
    store = tmp_path / "windowpane.db"
    with loopback_provider() as provider:
        command = [
            sys.executable, "-m", "windowpane", "run", "--store", str(store), "--agent", "reviewer", "--",
            sys.executable, "-c", program,
        ]  # fmt: skip
        environment = {**os.environ, "OPENAI_BASE_URL": f"{provider.url}/v1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (code, "done\n", "")
    with closing(SqliteStore(store)) as stored:
        (session,) = stored.sessions()
    assert (session.agent, session.model, session.turns) == ("reviewer", "gpt-4o", 1)


def test_run_uses_the_level_that_the_settings_of_the_agent_state(tmp_path: Path) -> None:
    program = (
        "import anthropic\n"
        "client = anthropic.Anthropic(api_key='k', default_headers={'User-Agent': 'claude-cli/2.1.50'})\n"
        "client.messages.create(model='claude-sonnet-4-5', max_tokens=9,\n"
        "    tools=[{'name': 't', 'input_schema': {}}], messages=[{'role': 'user', 'content': 'Hello.'}])\n"
    )
    store, home, folder = (tmp_path / name for name in ("windowpane.db", "home", "project"))
    for place, tokens in ((home, 180_000), (folder / ".claude", 150_000)):
        place.mkdir(parents=True)
        (place / "settings.json").write_text(json.dumps({"autoCompactWindow": tokens}))
    with loopback_provider() as provider:
        command = [sys.executable, "-m", "windowpane", "run", "--store", str(store), "--", sys.executable, "-c",
                   program]  # fmt: skip
        environment = {**os.environ, "ANTHROPIC_BASE_URL": provider.url, "CLAUDE_CONFIG_DIR": str(home)}
        subprocess.run(command, env=environment, cwd=folder, check=True, timeout=60)

    with closing(SqliteStore(store)) as stored:
        (session,) = stored.sessions()
    assert session.agent == "claude-code"
    assert (session.compaction_tokens, session.compaction_evidence) == (117_000, "stated")


def test_run_uses_the_level_that_the_command_line_states(tmp_path: Path) -> None:
    store, codex = tmp_path / "windowpane.db", tmp_path / "codex"
    codex.write_text(
        f"#!{sys.executable}\nimport openai, sys\n"
        "url = sys.argv[2].partition('=')[2].strip('\"')\n"
        "headers = {'User-Agent': 'codex_exec/0.101.0', 'originator': 'codex_exec'}\n"
        "client = openai.OpenAI(api_key='k', base_url=url, default_headers=headers)\n"
        "client.responses.create(model='gpt-5.2-codex', input='Hello.', instructions='Be brief.')\n"
    )
    codex.chmod(0o755)
    (tmp_path / "config.toml").write_text("model_auto_compact_token_limit = 180000")
    options = ["--config", "model_auto_compact_token_limit=150_000", "-c", "model_context_window=250000"]
    with loopback_provider() as provider:
        command = [sys.executable, "-m", "windowpane", "run", "--store", str(store),
                   "--upstream", f"codex={provider.url}/v1", "--", str(codex), *options, "exec"]  # fmt: skip
        environment = {**os.environ, "CODEX_HOME": str(tmp_path)}
        subprocess.run(command, env=environment, check=True, timeout=60)

    with closing(SqliteStore(store)) as stored:
        (session,) = stored.sessions()
    assert (session.compaction_tokens, session.compaction_evidence) == (150_000, "stated")


def test_run_names_a_program_that_is_not_there(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "windowpane",
        "run",
        "--store",
        str(tmp_path / "w.db"),
        "--",
        "no-such-program",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 2
    assert "no program 'no-such-program'" in done.stderr
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{tmp_path / 'w.db'}?mode=ro", uri=True)
