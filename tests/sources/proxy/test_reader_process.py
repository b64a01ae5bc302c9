"""The process that reads the calls: killed, too slow, unable to start, and left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest
from observed_calls import post  # type: ignore[import-not-found]
from scripted_upstream import Answer, UpstreamServer  # type: ignore[import-not-found]

from windowpane.sources.proxy.call_messages import EndedCall, SentCall
from windowpane.sources.proxy.call_queue import CallQueue
from windowpane.sources.proxy.reader_process import ReaderError, ReaderSettings
from windowpane.sources.proxy.server import ProxyServer
from windowpane.sources.proxy.upstreams import upstreams_of
from windowpane.store.embedded import SqliteStore

CALLS_BEHIND = 5
REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42},
}


def request(text: str) -> dict[str, object]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}


def sent(number: int, size: int) -> SentCall:
    body = json.dumps(request(f"{number} " + "x" * size)).encode()
    return SentCall(number, "chat", "/v1/chat/completions", None, "", (), (body,), time.time())


def settings_in(folder: Path) -> ReaderSettings:
    return ReaderSettings(agent="agent", store=str(folder / "windowpane.db"))


def turns(folder: Path) -> dict[str, int]:
    """Return the turns of each session in the store."""
    with closing(SqliteStore(folder / "windowpane.db")) as store:
        return {row.session_id: row.turns for row in store.sessions()}


def is_running(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def answering(upstream: UpstreamServer) -> UpstreamServer:
    upstream.answer = Answer(200, [("content-type", "application/json")], [json.dumps(REPLY).encode()])
    return upstream


def test_calls_go_through_while_the_reader_is_dead(
    answering: UpstreamServer, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    upstreams = upstreams_of([f"openai={answering.url}"], {})
    with CallQueue(settings_in(tmp_path)) as calls:
        with ProxyServer("127.0.0.1", 0, upstreams, calls) as server:
            url = f"{server.url}/openai/v1/chat/completions"
            assert json.loads(post(url, request("one"))) == REPLY
            first = calls.reader
            os.kill(first.pid, signal.SIGKILL)
            assert [json.loads(post(url, request(f"two {number}"))) for number in range(5)] == [REPLY] * 5
            wait_until(lambda: calls.reader is not first, what="another reader")
            assert json.loads(post(url, request("three"))) == REPLY
            assert calls.reader.metrics_url == first.metrics_url
        last = calls.reader.pid

    assert sum(turns(tmp_path).values()) >= 1  # the last call at least; a killed reader loses what it held
    assert not is_running(last)


def test_a_reader_continues_where_the_last_one_ended(tmp_path: Path, wait_until: Callable[..., None]) -> None:
    with CallQueue(settings_in(tmp_path)) as calls:
        first = calls.reader
        os.kill(first.pid, signal.SIGSTOP)
        for number in range(1, 11):
            assert calls.put(sent(number, 100_000))
            assert calls.put(EndedCall(number, 200, (), (json.dumps(REPLY).encode(),), time.time(), 0.1))
        wait_until(lambda: calls.waiting_bytes > 1_000_000, what="the calls to be written")
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: calls.reader is not first, what="another reader")

    assert sum(turns(tmp_path).values()) == 10


def test_what_finds_no_room_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call above the size of the queue is refused; its number reaches the metrics.

    The folder that the program is run in may have modules with the names of others.
    """
    (tmp_path / "json.py").write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)

    with CallQueue(settings_in(tmp_path), maximum_bytes=10_000) as calls:
        assert not calls.put(sent(1, 20_000))
        assert calls.put(sent(2, 100))
        assert not calls.put(EndedCall(2, 200, (), (b" " * 20_000,), time.time(), 0.1))
        assert calls.reader.metrics_url is not None
        for _ in range(100):
            metrics = httpx2.get(calls.reader.metrics_url).text
            counted = 'windowpane_dropped_events_total{reason="full",sink="observer"} 2.0' in metrics
            if counted:
                break
            time.sleep(0.1)
        assert counted

    assert list(turns(tmp_path).values()) == [1]  # a reply that was not read ends its turn


def test_a_reader_that_cannot_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yml").write_text("stor: {}")
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "config.yml"))

    with pytest.raises(ReaderError, match="stor"):
        CallQueue(settings_in(tmp_path))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_killed_proxy_ends_its_reader_and_loses_no_answered_call(
    answering: UpstreamServer, tmp_path: Path, free_port: Callable[[], int], wait_until: Callable[..., None]
) -> None:
    port = free_port()
    command = [
        sys.executable, "-m", "windowpane", "proxy", "--port", str(port), "--upstream", f"openai={answering.url}",
        "--store", str(tmp_path / "windowpane.db"),
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}/openai/v1/chat/completions"
    for number in (1, 2):
        proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert proxy.stdout is not None
        while "metrics:" not in (line := proxy.stdout.readline()):
            assert line, "the proxy did not start"
        children = Path(f"/proc/{proxy.pid}/task/{proxy.pid}/children").read_text(encoding="ascii").split()
        (reader,) = map(int, children)
        os.kill(reader, signal.SIGSTOP)
        for call in range(CALLS_BEHIND):
            assert json.loads(post(url, request(f"call {number} {call} " + "x" * 400_000))) == REPLY
        time.sleep(0.5)  # a killed process loses what it has not written yet
        proxy.kill()
        os.kill(reader, signal.SIGCONT)
        proxy.wait()
        proxy.stdout.close()
        wait_until(lambda: not is_running(reader), what="the reader to end")  # noqa: B023

    assert sum(turns(tmp_path).values()) == 2 * CALLS_BEHIND
