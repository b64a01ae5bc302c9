"""Watches one resource of a provider's client: the method through which its requests leave.

Every request of a resource, whether `create`, `parse`, `stream` or their raw forms ask for it, leaves through the
resource's `_post`, with the body as it is sent. That attribute of the one object is replaced; the client, its
classes and everything it returns stay what they are. A stream is watched by replacing its iterator by one that
passes every piece on.
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


def watch_resource(resource: object, shape: Shape, path: str, client: WatchedClient) -> None:
    """Watch the requests of *resource* that go to *path*."""
    post = getattr(resource, "_post", None)
    if resource is None or post is None:
        _boundary.warn(f"no {path}", "this release of the client has no %s to observe", path)
        return
    if getattr(post, WATCHED, False):
        return
    make = _async_post if inspect.iscoroutinefunction(post) else _post
    watched = make(post, shape, path, client)
    setattr(watched, WATCHED, True)
    resource._post = watched  # type: ignore[attr-defined]


def watch_copies(client: object, watch: Callable[[Any], object]) -> None:
    """Watch what `copy` and `with_options` make of *client* as well."""
    for name in ("copy", "with_options"):
        original = getattr(client, name, None)
        if original is None or getattr(original, WATCHED, False):
            continue

        def copied(*args: Any, _original: Callable[..., Any] = original, **kwargs: Any) -> Any:
            made = _original(*args, **kwargs)
            with _boundary.contain("observing a copied client"):
                watch(made)
            return made

        setattr(copied, WATCHED, True)
        setattr(client, name, copied)


def _post(post: Callable[..., Any], shape: Shape, path: str, client: WatchedClient) -> Callable[..., Any]:
    def watched(url: str, *args: Any, **kwargs: Any) -> Any:
        call = client.begin(shape, kwargs.get("body")) if _asks(url, path) else None
        if call is None:
            return post(url, *args, **kwargs)
        try:
            result = post(url, *args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        with _boundary.contain("observing a reply"):
            raw = _raw(kwargs.get("options"))
            if raw == "true" and not kwargs.get("stream"):
                call.replied(result.parse())
            elif raw:
                call.unread()
            else:
                _returned(call, result)
        return result

    return watched


def _async_post(
    post: Callable[..., Awaitable[Any]], shape: Shape, path: str, client: WatchedClient
) -> Callable[..., Awaitable[Any]]:
    async def watched(url: str, *args: Any, **kwargs: Any) -> Any:
        call = client.begin(shape, kwargs.get("body")) if _asks(url, path) else None
        if call is None:
            return await post(url, *args, **kwargs)
        try:
            result = await post(url, *args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        with _boundary.contain("observing a reply"):
            raw = _raw(kwargs.get("options"))
            if raw == "true" and not kwargs.get("stream"):
                parsed = result.parse()  # cached by the response: the agent gets the same object
                call.replied(await parsed if inspect.isawaitable(parsed) else parsed)
            elif raw:
                call.unread()
            else:
                _returned(call, result)
        return result

    return watched


def _asks(url: str, path: str) -> bool:
    return url.partition("?")[0] == path


def _returned(call: WatchedCall, result: Any) -> None:
    """What came back is a reply, or a stream of its pieces."""
    iterator = getattr(result, "_iterator", None)
    if iterator is None:
        call.replied(result)
    elif hasattr(iterator, "__anext__"):
        result._iterator = _WatchedAsyncPieces(iterator, call)
    else:
        result._iterator = _WatchedPieces(iterator, call)


def _raw(options: object) -> str:
    """How the raw response was asked for: `true`, `stream`, or not at all."""
    headers = options.get("headers") if isinstance(options, Mapping) else None
    if not isinstance(headers, Mapping):
        return ""
    return next((str(value) for name, value in headers.items() if str(name).lower() == RAW_HEADER), "")


class _WatchedPieces:
    """Passes a stream's pieces on as they come."""

    def __init__(self, inner: Iterator[Any], call: WatchedCall) -> None:
        self._inner = inner
        self._call = call

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            piece = next(self._inner)
        except StopIteration:
            self._call.finished()
            raise
        except BaseException as error:
            self._call.failed(error)
            raise
        self._call.piece(piece)
        return piece

    def close(self) -> None:
        """The agent has seen enough."""
        self._call.finished()
        close = getattr(self._inner, "close", None)
        if close is not None:
            close()

    def __del__(self) -> None:
        self._call.finished()


class _WatchedAsyncPieces:
    """Passes a stream's pieces on as they come."""

    def __init__(self, inner: AsyncIterator[Any], call: WatchedCall) -> None:
        self._inner = inner
        self._call = call

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            piece = await anext(self._inner)
        except StopAsyncIteration:
            self._call.finished()
            raise
        except BaseException as error:
            self._call.failed(error)
            raise
        self._call.piece(piece)
        return piece

    async def aclose(self) -> None:
        """The agent has seen enough."""
        self._call.finished()
        close = getattr(self._inner, "aclose", None)
        if close is not None:
            await close()

    def __del__(self) -> None:
        self._call.finished()
