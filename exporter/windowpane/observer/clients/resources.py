"""Watches one resource of a provider's client through the method that sends its requests.

Every request of a resource, made by `create`, `parse`, `stream` or their raw forms, is sent by the resource's
`_post`, with the final body. That attribute of the one object is replaced; the client, its classes and everything
it returns stay what they are. A reply that is still to be read, as a stream or a raw response, is recorded from
its body (`bodies`).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.observer.clients.bodies import watch_body
from windowpane.observer.clients.calls import WatchedCall, WatchedClient
from windowpane.observer.messages import Shape

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
        _record_result(call, result)
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
        _record_result(call, result)
        return result

    return watched


def _record_result(call: WatchedCall, result: Any) -> None:
    """Record a reply, or watch the body of a reply that the agent has yet to read."""
    try:
        fields = getattr(result, "__dict__", {})  # `getattr` is slow for what a parsed reply does not have
        response = fields.get("http_response")  # of a raw response, in every mode
        if response is None and isinstance(result, Iterator | AsyncIterator):
            response = fields.get("response")  # of a stream
        if response is None:
            call.record_reply(result)
        else:
            watch_body(response, fields.get("_client"), call)
    except Exception as error:  # noqa: BLE001  # written out: this is what the agent waits for
        _boundary.log_failure("observing a reply", error)
        call.record_unread_reply()
