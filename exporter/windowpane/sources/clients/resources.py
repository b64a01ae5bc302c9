"""Watches the clients that are generated from an API's description, those of `openai` and `anthropic`.

Every request of a resource, made by `create`, `parse`, `stream` or their raw forms, is sent by the client's
`post`, and every request of a client by its `request`, with the final body. The first is replaced on one object,
the second on the class; the client and everything it returns stay what they are. A reply that is still to be
read, as a stream or a raw response, is recorded from its body (`bodies`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final
from weakref import ref

from windowpane.models.wire.calls import Shape
from windowpane.sources.clients.bodies import watch_body
from windowpane.sources.clients.calls import WatchedCall, WatchedClient, boundary
from windowpane.sources.clients.methods import WATCHED, Restore, watch_class, watched_method

Paths = Mapping[str, Shape]
"""The paths of requests that are observed."""
_request: Final[ContextVar[Callable[[], object]]] = ContextVar("windowpane_request", default=lambda: None)
"""The latest request that is recorded: a method that calls the one of its base class does not record it again."""


def watch_posts(client: object, loaded: Iterable[str], paths: Paths, watched: WatchedClient) -> None:
    """Watch the requests of *client* that are sent to one of *paths*.

    Every resource takes the client's `post` when it is made, which loads the modules of its types. Those that are
    made later take the watched one; those that are there, by their attributes in *loaded*, get it.
    """

    def start(args: tuple[Any, ...], request: Mapping[str, Any]) -> WatchedCall | None:
        shape = paths.get(args[0].partition("?")[0])
        return None if shape is None else watched.start(shape, request.get("body"))

    owners = [(client, "post"), *((one, "_post") for names in loaded if (one := _loaded(client, names)))]
    for owner, name in owners:
        post = getattr(owner, name, None)
        if post is None:
            boundary.warn(f"no {name}", "this release of the client has no %s to observe", name)
        elif not getattr(post, WATCHED, False):
            setattr(owner, name, watched_method(post, start, record_result))


def _loaded(owner: object | None, names: str) -> object | None:
    """Return the resource with these attributes of *owner* if it was made already."""
    for name in names.split("."):
        owner = getattr(owner, "__dict__", {}).get(name)
    return owner


def watch_requests(kind: type[Any], paths: Paths, client: WatchedClient) -> list[Restore]:
    """Watch the requests of all clients of the base class *kind*.

    Another library may have put its own method into a class below it, which calls the former one of *kind*.
    """

    def start(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
        options = kwargs.get("options") or args[2]
        shape = paths.get(options.url.partition("?")[0])
        if shape is None or options.method.lower() != "post" or _request.get()() is options:
            return None
        _request.set(ref(options))
        return client.start(shape, options.json_data)

    own = [one for one in _below(kind) if "request" in vars(one)]
    return [watch_class(one, ("request",), start, record_result) for one in (kind, *own)]


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def watch_copies(client: object, watch: Callable[[Any], object]) -> None:
    """Watch also the clients that `copy` and `with_options` make of *client*."""
    for name in ("copy", "with_options"):
        original = getattr(client, name, None)
        if original is None or getattr(original, WATCHED, False):
            continue

        def copy(*args: Any, _original: Callable[..., Any] = original, **kwargs: Any) -> Any:
            made = _original(*args, **kwargs)
            with boundary.contain("observing a copied client"):
                watch(made)
            return made

        setattr(copy, WATCHED, True)
        setattr(client, name, copy)


def record_result(call: WatchedCall, result: Any) -> Any:
    """Record a reply, or watch the body of a reply that the agent has yet to read."""
    fields = getattr(result, "__dict__", {})  # `getattr` is slow for what a parsed reply does not have
    response = fields.get("http_response")  # of a raw response, in every mode
    if response is None and isinstance(result, Iterator | AsyncIterator):
        response = fields.get("response")  # of a stream
    if response is None:
        call.record_reply(result)
    else:
        watch_body(response, fields.get("_client"), call)
    return result
