"""Calls through the proxy beside a bare pass-through of the same server and client libraries.

Four processes: a provider that answers at once, the proxy with the reader of its calls, a bare pass-through
(uvicorn and httpx2, nothing between), and the client. Rounds alternate between the two, and a round starts when
the proxy has stored the calls of the one before, every one of them. Eight agents send histories of 200 messages
and 400 kB, which grow by two messages a call; a reply is a stream of 400 events. Prints the time to the first
byte, the throughput of a burst, the time of a call at a usual rate, and the processor time of a call (Linux);
accepts `--json`.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import uvicorn

ROUNDS = 9
CALLS = 12
PARALLEL = 8
EVENTS = 400
EVENT = b'data: {"id":"c","model":"gpt-4.1","choices":[{"index":0,"delta":{"content":"some words "}}]}\n\n'
WARM_UP_CALLS = 2
PACED_A_SECOND = 10
LONGEST_READING_SECONDS = 120
FIRST_BYTE_LIMIT_MS = 1.0
THROUGHPUT_LIMIT = 0.95

App = Callable[..., Awaitable[None]]


class Agent:
    """An agent with a long history, which every call makes longer."""

    def __init__(self, number: int) -> None:
        self.messages = [
            {"role": "user" if index % 2 else "assistant", "content": f"{number} {index} " + "context " * 250}
            for index in range(200)
        ]

    def body(self) -> bytes:
        """Return the next call."""
        count = len(self.messages)
        self.messages += [
            {"role": "assistant", "content": "some words " * EVENTS},
            {"role": "user", "content": f"{count} go on"},
        ]
        return json.dumps({"model": "gpt-4.1", "stream": True, "messages": self.messages}).encode()


async def provider(_scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
    )
    for _ in range(EVENTS):
        await send({"type": "http.response.body", "body": EVENT, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def pass_through(upstream: str) -> App:
    client = httpx2.AsyncClient(http2=True, timeout=None)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def body() -> Any:
            more = True
            while more:
                message = await receive()
                more = message.get("more_body", False)
                yield message.get("body", b"")

        request = httpx2.Request(
            scope["method"], upstream + scope["path"],
            headers=[pair for pair in scope["headers"] if pair[0] != b"host"], content=body(),
        )  # fmt: skip
        response = await client.send(request, stream=True)
        headers = [pair for pair in response.headers.raw if pair[0].lower() != b"transfer-encoding"]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        await response.aclose()

    return app


def serve(app: App, port: Any) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    port.put((listening.getsockname()[1], os.getpid()))
    config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


def serve_provider(port: Any) -> None:
    serve(provider, port)


def serve_floor(upstream: str, port: Any) -> None:
    serve(pass_through(upstream), port)


def serve_proxy(upstream: str, folder: str, port: Any) -> None:
    from windowpane.cli.proxy import running_proxy

    options = {
        "agent": "agent", "limit_tokens": None, "metrics_port": 0, "capture": None,
        "store_path": Path(folder) / "windowpane.db",
    }  # fmt: skip
    with running_proxy("127.0.0.1", 0, [f"openai={upstream}"], options) as (server, _, _):
        port.put((server.port, os.getpid()))
        time.sleep(3_600)


class Target(NamedTuple):
    """One way to the provider."""

    url: str
    process: int
    """Id of its process."""


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Readings:
    """The calls that the proxy has stored."""

    def __init__(self, folder: str) -> None:
        self._store = Path(folder) / "windowpane.db"
        self.sent = 0
        """Calls that went through the proxy."""

    async def settle(self) -> float:
        """Wait until every call that was sent is stored; returns the seconds."""
        started = time.perf_counter()
        while self._stored() < self.sent:
            if time.perf_counter() - started > LONGEST_READING_SECONDS:
                sys.exit(f"{self.sent} calls were sent and {self._stored()} are stored")
            await asyncio.sleep(0.1)
        return time.perf_counter() - started

    def _stored(self) -> int:
        with closing(sqlite3.connect(self._store)) as connection:
            return connection.execute("SELECT sum(turns) FROM sessions").fetchone()[0] or 0


async def first_byte_ms(client: httpx2.AsyncClient, url: str, agent: Agent) -> float:
    body = agent.body()
    started = time.perf_counter()
    first = 0.0
    async with client.stream("POST", url, content=body) as response:
        async for _ in response.aiter_raw():
            first = first or time.perf_counter()
    return (first - started) * 1_000


async def calls_per_second(client: httpx2.AsyncClient, url: str, agents: list[Agent]) -> float:
    """Return the rate of agents that call without a pause."""
    bodies = [[agent.body() for _ in range(CALLS // 4)] for agent in agents]

    async def some(own: list[bytes]) -> None:
        for body in own:
            await client.post(url, content=body)

    started = time.perf_counter()
    await asyncio.gather(*map(some, bodies))
    return PARALLEL * (CALLS // 4) / (time.perf_counter() - started)


async def paced_call_ms(client: httpx2.AsyncClient, url: str, agents: list[Agent]) -> list[float]:
    """Return the times of calls that the agents make at a rate, whether or not earlier ones have ended."""
    bodies = [agent.body() for agent in agents]

    async def one(number: int) -> float:
        await asyncio.sleep(number / PACED_A_SECOND)
        started = time.perf_counter()
        await client.post(url, content=bodies[number])
        return (time.perf_counter() - started) * 1_000

    return await asyncio.gather(*map(one, range(len(agents))))


async def measure(targets: dict[str, Target], readings: Readings) -> dict[str, dict[str, list[Any]]]:
    measured: dict[str, dict[str, list[Any]]] = {
        name: {"first": [], "paced": [], "rate": [], "cpu": [], "behind": []} for name in targets
    }
    agents = {name: [Agent(number) for number in range(PARALLEL)] for name in targets}

    def sent(name: str, calls: int) -> None:
        readings.sent += calls if name == "proxy" else 0

    async with httpx2.AsyncClient(timeout=None) as client:
        for name, target in targets.items():
            for agent in agents[name]:
                for _ in range(WARM_UP_CALLS):
                    await first_byte_ms(client, target.url, agent)
            sent(name, PARALLEL * WARM_UP_CALLS)
        for _ in range(ROUNDS):
            for name, target in targets.items():
                await readings.settle()
                measured[name]["first"] += [
                    await first_byte_ms(client, target.url, agents[name][number % PARALLEL])
                    for number in range(CALLS)
                ]
                sent(name, CALLS)
            for name, target in targets.items():
                await readings.settle()
                measured[name]["paced"] += await paced_call_ms(client, target.url, agents[name])
                sent(name, PARALLEL)
            for name, target in targets.items():
                await readings.settle()
                used = processor_seconds(target.process)
                calls = PARALLEL * (CALLS // 4)
                measured[name]["rate"].append(await calls_per_second(client, target.url, agents[name]))
                sent(name, calls)
                measured[name]["behind"].append(await readings.settle())
                measured[name]["cpu"].append((processor_seconds(target.process) - used) / calls * 1_000)
    return measured


def main() -> None:
    context = multiprocessing.get_context("spawn")
    port: Any = context.Queue()
    running: list[Any] = []

    def started(path: str, target: Callable[..., None], *arguments: str) -> Target:
        process = context.Process(target=target, args=(*arguments, port), daemon=True)
        process.start()
        running.append(process)
        number, process_id = port.get(timeout=60)
        return Target(f"http://127.0.0.1:{number}{path}", process_id)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        direct = started("/chat/completions", serve_provider)
        upstream = direct.url.removesuffix("/chat/completions")
        targets = {
            "direct": direct,
            "pass-through": started("/chat/completions", serve_floor, upstream),
            "proxy": started("/openai/chat/completions", serve_proxy, upstream, folder),
        }
        readings = Readings(folder)
        measured = asyncio.run(measure(targets, readings))
        for process in running:
            process.terminate()
            process.join()
    first = {name: statistics.median(values["first"]) for name, values in measured.items()}
    rate = {name: statistics.median(values["rate"]) for name, values in measured.items()}
    paced = {name: statistics.median(values["paced"]) for name, values in measured.items()}
    behind = statistics.median(measured["proxy"]["behind"])
    added = first["proxy"] - first["pass-through"]
    ratio = statistics.median(
        ours / floor
        for ours, floor in zip(measured["proxy"]["rate"], measured["pass-through"]["rate"], strict=True)
    )
    cpu, floor_cpu = (statistics.median(measured[name]["cpu"]) for name in ("proxy", "pass-through"))
    if "--json" in sys.argv:
        values = {
            "first_byte_ms": first, "calls_per_second": rate, "added_ms": added, "ratio": ratio,
            "cpu_ms": cpu, "pass_through_cpu_ms": floor_cpu, "paced_ms": paced, "read_after_s": behind,
            "calls": readings.sent,
        }  # fmt: skip
        print(json.dumps(values))
        return
    print(f"{os.cpu_count()} cores, shared by client, provider and proxy")
    for name in targets:
        print(f"{name:<14} first byte {first[name]:6.2f} ms   {rate[name]:6.1f} calls per second")
    print(f"first byte: {added:+.2f} ms beside the pass-through (limit {FIRST_BYTE_LIMIT_MS} ms)")
    print(f"throughput of a burst: {ratio:.2f} of the pass-through's (limit {THROUGHPUT_LIMIT})")
    print(
        f"{PACED_A_SECOND} calls per second: {paced['proxy']:.1f} ms a call, "
        f"{paced['pass-through']:.1f} ms by the pass-through, {paced['direct']:.1f} ms without either"
    )
    print(f"all {readings.sent} calls are stored, the last of a burst {behind:.1f} s after its end")
    print(f"processor time of a call, read and stored: {cpu:.1f} ms; of the pass-through {floor_cpu:.1f} ms")


if __name__ == "__main__":
    main()
