"""Watches one resource of a provider's client through the method that sends its requests.

Every request of a resource, made by `create`, `parse`, `stream` or their raw forms, is sent by the resource's
`_post`, with the final body. That attribute of the one object is replaced; the client, its classes and everything
it returns stay what they are. A stream is watched by replacing its iterator by one that passes every piece on.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.observer.clients.calls import WatchedCall, WatchedClient
from windowpane.observer.messages import Shape

RAW_HEADER: Final = "x-stainless-raw-response"
WATCHED: Final = "_windowpane_watched"
_boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))

StartCall = Callable[[str, Mapping[str, Any]], WatchedCall | None]
"""Starts watching a request by its URL and keyword arguments; None where it is not observed."""


def watch_resource(resource: object, shape: Shape, path: str, client: WatchedClient) -> None:
    """Watch the requests of *resource* that are sent to *path*."""
    post = getattr(resource, "_post", None)
    if resource is None or post is None:
        _boundary.warn(f"no {path}", "this release of the client has no %s to observe", path)
        return
    if getattr(post, WATCHED, False):
        return

    def start(url: str, request: Mapping[str, Any]) -> WatchedCall | None:
        return client.start(shape, request.get("body")) if url.partition("?")[0] == path else None

    watched = (_watch_async if inspect.iscoroutinefunction(post) else _watch)(post, start)
    setattr(watched, WATCHED, True)
    resource._post = watched  # type: ignore[attr-defined]


def watch_copies(client: object, watch: Callable[[Any], object]) -> None:
    """Watch also the clients that `copy` and `with_options` make of *client*."""
    for name in ("copy", "with_options"):
        original = getattr(client, name, None)
        if original is None or getattr(original, WATCHED, False):
            continue

        def copy(*args: Any, _original: Callable[..., Any] = original, **kwargs: Any) -> Any:
            made = _original(*args, **kwargs)
            with _boundary.contain("observing a copied client"):
                watch(made)
            return made

        setattr(copy, WATCHED, True)
        setattr(client, name, copy)


def _watch(post: Callable[..., Any], start: StartCall) -> Callable[..., Any]:
    def watched(url: str, *args: Any, **kwargs: Any) -> Any:
        call = start(url, kwargs)
        if call is None:
            return post(url, *args, **kwargs)
        try:
            result = post(url, *args, **kwargs)
        except BaseException as error:
            call.record_failure(error)
            raise
        with _boundary.contain("observing a reply"):
            _record_result(call, result, kwargs)
        return result

    return watched


def _watch_async(post: Callable[..., Awaitable[Any]], start: StartCall) -> Callable[..., Awaitable[Any]]:
    async def watched(url: str, *args: Any, **kwargs: Any) -> Any:
        call = start(url, kwargs)
        if call is None:
            return await post(url, *args, **kwargs)
        try:
            result = await post(url, *args, **kwargs)
        except BaseException as error:
            call.record_failure(error)
            raise
        with _boundary.contain("observing a reply"):
            parsing = _record_result(call, result, kwargs)
            if parsing is not None:
                call.record_reply(await parsing)
        return result

    return watched


def _record_result(call: WatchedCall, result: Any, request: Mapping[str, Any]) -> Awaitable[Any] | None:
    """Record a reply, or watch the stream of its pieces; returns a parsed reply that has to be awaited."""
    raw = _raw_mode(request.get("options"))
    if raw == "true" and not request.get("stream"):
        reply = result.parse()  # cached by the response: the agent gets the same object
        if inspect.isawaitable(reply):
            return reply
        call.record_reply(reply)
    elif raw:
        call.record_unread_reply()
    elif (pieces := getattr(result, "_iterator", None)) is None:
        call.record_reply(result)
    else:
        result._iterator = (_AsyncPieces if hasattr(pieces, "__anext__") else _Pieces)(pieces, call)
    return None


def _raw_mode(options: object) -> str:
    """Return `true` or `stream` where the raw response was requested, else an empty text."""
    headers = options.get("headers") if isinstance(options, Mapping) else None
    if not isinstance(headers, Mapping):
        return ""
    return next((str(value) for name, value in headers.items() if str(name).lower() == RAW_HEADER), "")


class _WatchedStream:
    """A stream's iterator that records each piece it passes on, and the end."""

    def __init__(self, inner: Any, call: WatchedCall) -> None:
        self._inner = inner
        self._call = call

    def _record_end(self, error: BaseException) -> None:
        if isinstance(error, StopIteration | StopAsyncIteration):
            self._call.record_end_of_stream()
        else:
            self._call.record_failure(error)

    def __del__(self) -> None:
        self._call.record_end_of_stream()


class _Pieces(_WatchedStream):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            piece = next(self._inner)
        except BaseException as error:
            self._record_end(error)
            raise
        self._call.record_piece(piece)
        return piece

    def close(self) -> None:
        self._call.record_end_of_stream()
        if (close := getattr(self._inner, "close", None)) is not None:
            close()


class _AsyncPieces(_WatchedStream):
    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            piece = await anext(self._inner)
        except BaseException as error:
            self._record_end(error)
            raise
        self._call.record_piece(piece)
        return piece

    async def aclose(self) -> None:
        self._call.record_end_of_stream()
        if (close := getattr(self._inner, "aclose", None)) is not None:
            await close()
