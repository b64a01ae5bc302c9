"""Watched methods: a method of one object, or of a class, that starts and ends the record of a call.

What a client returns stays what it is. A replaced method is marked, so that nothing is watched twice: neither a
method, nor an object that is watched by itself through a class that is watched too.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from types import MethodType
from typing import Any, Final

from windowpane.sources.clients.calls import WatchedCall, boundary

WATCHED: Final = "_windowpane_watched"

StartCall = Callable[[tuple[Any, ...], Mapping[str, Any]], WatchedCall | None]
"""Starts watching a request by a method's arguments; None where it is not observed."""
EndCall = Callable[[WatchedCall, Any], Any]
"""Records a method's result, or starts to as it is read; returns what the agent gets."""
Restore = Callable[[], None]
"""Gives an object or a class its own methods back."""


def watch_object(owner: Any, names: tuple[str, ...], start: StartCall, end: EndCall) -> None:
    """Watch methods of one object, whose arguments *start* gets with the object before them."""
    if is_watched(owner):
        return
    for name in names:
        method = getattr(type(owner), name, None)
        if method is None:
            boundary.warn(f"no {name}", "this release of the client has no %s to observe", name)
        else:
            setattr(owner, name, MethodType(watched_method(method, start, end), owner))
    mark_watched(owner)


def watch_class(kind: type, names: tuple[str, ...], start: StartCall, end: EndCall) -> Restore:
    """Watch methods of a class, except for calls of objects that are watched by themselves."""

    def start_unwatched(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
        return None if is_watched(args[0]) else start(args, kwargs)

    replaced: dict[str, tuple[Any, Any]] = {}
    for name in names:
        method = vars(kind).get(name)
        if method is None:
            boundary.warn(f"no {name}", "this release of the client has no %s to observe", name)
        elif not getattr(method, WATCHED, False):
            replaced[name] = (method, watched_method(method, start_unwatched, end))
            setattr(kind, name, replaced[name][1])

    def restore() -> None:
        for name, (own, watched) in replaced.items():
            if vars(kind).get(name) is watched:  # else another library has replaced it since
                setattr(kind, name, own)

    return restore


def is_watched(owner: object) -> bool:
    """Return whether the object is watched by itself."""
    return WATCHED in getattr(owner, "__dict__", ())


def mark_watched(owner: object) -> None:
    """Note that the object is watched by itself."""
    vars(owner)[WATCHED] = True


def watched_method(method: Callable[..., Any], start: StartCall, end: EndCall) -> Callable[..., Any]:
    """Return a method that does what *method* does, and records its calls."""
    watched = (_watched_async if inspect.iscoroutinefunction(method) else _watched)(method, start, end)
    setattr(watched, WATCHED, True)
    return watched


def _watched(method: Callable[..., Any], start: StartCall, end: EndCall) -> Callable[..., Any]:
    @wraps(method)
    def watched(*args: Any, **kwargs: Any) -> Any:
        call = _started(start, args, kwargs)
        if call is None:
            return method(*args, **kwargs)
        try:
            result = method(*args, **kwargs)
        except BaseException as error:
            call.record_failure(error)
            raise
        return _ended(call, result, end)

    return watched


def _watched_async(
    method: Callable[..., Awaitable[Any]], start: StartCall, end: EndCall
) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def watched(*args: Any, **kwargs: Any) -> Any:
        call = _started(start, args, kwargs)
        if call is None:
            return await method(*args, **kwargs)
        try:
            result = await method(*args, **kwargs)
        except BaseException as error:
            call.record_failure(error)
            raise
        return _ended(call, result, end)

    return watched


def _started(start: StartCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> WatchedCall | None:
    try:
        return start(args, kwargs)
    except Exception as error:  # noqa: BLE001  # such as arguments that another release of the client passes
        boundary.log_failure("observing a call", error)
        return None


def _ended(call: WatchedCall, result: Any, end: EndCall) -> Any:
    try:
        return end(call, result)
    except Exception as error:  # noqa: BLE001  # written out: this is what the agent waits for
        boundary.log_failure("observing a reply", error)
        call.record_unread_reply()
        return result
