"""Watched methods: whatever fails while watching, the agent's call works as ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from windowpane.sources.clients.calls import WatchedCall
from windowpane.sources.clients.methods import watch_class, watch_object


class Client:
    """A client with a method of each kind."""

    def send(self, body: str) -> str:
        return body.upper()

    async def asend(self, body: str) -> str:
        return body.upper()


def fail(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
    raise KeyError("another release")


def end(call: WatchedCall, result: Any) -> Any:
    return result


def test_a_start_that_fails_does_not_reach_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    client = Client()
    watch_object(client, ("send", "asend", "missing"), fail, end)
    with caplog.at_level(logging.WARNING):
        assert client.send("x") == "X"
        assert asyncio.run(client.asend("x")) == "X"

    assert "observing a call failed" in caplog.text


def test_a_class_gets_its_own_methods_back() -> None:
    """Unless another library has replaced them since; an object watched by itself is not watched twice."""
    started: list[Any] = []

    def start(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
        started.append(args[0])
        return None

    own, client, watched = Client.send, Client(), Client()
    watch_object(watched, ("send",), lambda *_: None, end)
    restore = watch_class(Client, ("send",), start, end)
    watch_class(Client, ("send",), fail, end)()  # a second use changes nothing
    assert (client.send("a"), watched.send("b")) == ("A", "B")
    assert started == [client]

    restore()
    assert Client.send is own

    restore = watch_class(Client, ("send",), start, end)
    other = lambda self, body: "other"  # noqa: E731
    Client.send = other  # type: ignore[assignment,method-assign]
    restore()
    assert Client.send is other  # type: ignore[comparison-overlap]
    Client.send = own  # type: ignore[method-assign]
