"""Calls through the proxy beside a bare pass-through of the same server and client libraries.

Four processes: a provider that answers at once, the proxy with its store, a bare pass-through (uvicorn and
httpx2, nothing between), and the client. Rounds alternate between the two. The request is a history of 200
messages and 400 kB. Prints the time to the first byte of a stream, and the throughput of streams of 400 events,
8 at a time; accepts `--json`.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

ROUNDS = 9
CALLS = 12
PARALLEL = 8
EVENTS = 400
EVENT = b'data: {"id":"c","model":"gpt-4o","choices":[{"index":0,"delta":{"content":"some words "}}]}\n\n'
MESSAGES = [
    {"role": "user" if number % 2 else "assistant", "content": f"{number} " + "context " * 250}
    for number in range(200)
]
BODY = json.dumps({"model": "gpt-4o", "stream": True, "messages": MESSAGES}).encode()
FIRST_BYTE_LIMIT_MS = 1.0
THROUGHPUT_LIMIT = 0.95

App = Callable[..., Awaitable[None]]


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
    port.put(listening.getsockname()[1])
    config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


def serve_provider(port: Any) -> None:
    serve(provider, port)


def serve_floor(upstream: str, port: Any) -> None:
    serve(pass_through(upstream), port)


def serve_proxy(upstream: str, folder: str, port: Any) -> None:
    import windowpane
    from windowpane.observer.conversations import Scope
    from windowpane.proxy.server import ProxyServer
    from windowpane.proxy.upstreams import upstreams_of

    windowpane.start(port=0, store=Path(folder) / "windowpane.db", notify=[])
    with ProxyServer("127.0.0.1", 0, upstreams_of([f"openai={upstream}"], {}), Scope("agent")) as server:
        port.put(server.port)
        time.sleep(3_600)


async def first_byte_ms(client: httpx2.AsyncClient, url: str) -> float:
    started = time.perf_counter()
    first = 0.0
    async with client.stream("POST", url, content=BODY) as response:
        async for _ in response.aiter_raw():
            first = first or time.perf_counter()
    return (first - started) * 1_000


async def calls_per_second(client: httpx2.AsyncClient, url: str) -> float:
    async def some() -> None:
        for _ in range(CALLS // 4):
            await client.post(url, content=BODY)

    started = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(PARALLEL)))
    return PARALLEL * (CALLS // 4) / (time.perf_counter() - started)


async def measure(urls: dict[str, str]) -> dict[str, dict[str, list[float]]]:
    measured: dict[str, dict[str, list[float]]] = {name: {"first": [], "rate": []} for name in urls}
    async with httpx2.AsyncClient(timeout=None) as client:
        for _ in range(ROUNDS):
            for name, url in urls.items():
                measured[name]["first"] += [await first_byte_ms(client, url) for _ in range(CALLS)]
            for name, url in urls.items():
                measured[name]["rate"].append(await calls_per_second(client, url))
    return measured


def main() -> None:
    context = multiprocessing.get_context("spawn")
    port: Any = context.Queue()
    running: list[Any] = []

    def started(target: Callable[..., None], *arguments: str) -> str:
        process = context.Process(target=target, args=(*arguments, port), daemon=True)
        process.start()
        running.append(process)
        return f"http://127.0.0.1:{port.get(timeout=30)}"

    with tempfile.TemporaryDirectory() as folder:
        upstream = started(serve_provider)
        urls = {
            "direct": f"{upstream}/chat/completions",
            "pass-through": f"{started(serve_floor, upstream)}/chat/completions",
            "proxy": f"{started(serve_proxy, upstream, folder)}/openai/chat/completions",
        }
        measured = asyncio.run(measure(urls))
        for process in running:
            process.terminate()
            process.join()
    first = {name: statistics.median(values["first"]) for name, values in measured.items()}
    rate = {name: statistics.median(values["rate"]) for name, values in measured.items()}
    added = first["proxy"] - first["pass-through"]
    ratio = statistics.median(
        ours / floor
        for ours, floor in zip(measured["proxy"]["rate"], measured["pass-through"]["rate"], strict=True)
    )
    if "--json" in sys.argv:
        print(json.dumps({"first_byte_ms": first, "calls_per_second": rate, "added_ms": added, "ratio": ratio}))
        return
    print(f"{os.cpu_count()} cores, shared by four processes")
    for name in urls:
        print(f"{name:<14} first byte {first[name]:6.2f} ms   {rate[name]:6.1f} calls per second")
    print(f"first byte: {added:+.2f} ms beside the pass-through (limit {FIRST_BYTE_LIMIT_MS} ms)")
    print(f"throughput: {ratio:.2f} of the pass-through's (limit {THROUGHPUT_LIMIT})")


if __name__ == "__main__":
    main()
