"""The pages that are read with GET: `/metrics` for Prometheus, `/healthz` for probes, `/sd` for discovery."""

from __future__ import annotations

import gzip
import json
import logging
from functools import partial
from typing import Final

from prometheus_client.registry import CollectorRegistry

from windowpane.outputs.http.authentication import OTHER_SITE, has_bearer_token, is_from_other_site
from windowpane.outputs.http.content_negotiation import Exposition, accepts_gzip, exposition_for
from windowpane.outputs.http.routes import Response, Routes
from windowpane.outputs.http.shared_runs import SharedRuns

GZIP_LEVEL: Final = 3
"""A low level already compresses metrics text more than tenfold, at the lowest cost per scrape."""
INTERNAL_ERROR: Final = Response(500, b"internal error, see the log\n")
TOKEN_REQUIRED: Final = Response(401, b"a bearer token is required\n", headers=(("WWW-Authenticate", "Bearer"),))
NO_METRICS_YET: Final = Response(
    503,
    b"the stored events are not all counted yet; /healthz has the progress\n",
    headers=(("Retry-After", "5"),),
)
FROM_OTHER_SITE: Final = Response(421, f"{OTHER_SITE}\n".encode())

_log = logging.getLogger(__name__)


class Pages:
    """The pages of an endpoint, for clients that `refusal` lets pass. Thread-safe."""

    def __init__(self, routes: Routes, *, on_loopback: bool) -> None:
        """*on_loopback* states that only programs of this machine can reach the endpoint."""
        self._routes = routes
        self._on_loopback = on_loopback
        self._metrics: SharedRuns[bytes] = SharedRuns()
        self.paths = ("/healthz",) if routes.registry is None else ("/metrics", "/healthz", "/sd")

    def refusal(self, path: str, *, host: str | None, origin: str | None, authorization: str) -> Response | None:
        """Return the response to a client that may not make the request; None if it may.

        A token decides by itself, since no page of another site has it.
        """
        has_token = self._routes.bearer_token is not None or path in self._routes.authorized
        if not has_token and is_from_other_site(host, origin, on_loopback=self._on_loopback):
            return FROM_OTHER_SITE
        is_authorized = self._routes.authorized.get(path, self._has_token)
        is_protected = path in self._routes.posts or (path in self.paths and path != "/healthz")
        return TOKEN_REQUIRED if is_protected and not is_authorized(authorization) else None

    def respond(self, path: str, *, accept: str, accept_encoding: str, authorization: str) -> Response:
        """Return a page, or the paths that there are. A collector that fails is an error of one request."""
        try:
            if path == "/healthz":
                return self._health(with_details=self._has_token(authorization))
            if path == "/sd" and path in self.paths:
                return self._targets()
            if path == "/metrics" and self._routes.registry is not None:
                if self._routes.health().is_starting:
                    return NO_METRICS_YET
                return self._exposition(self._routes.registry, accept, accept_encoding)
        except Exception:  # noqa: BLE001  # seen by Prometheus as down
            _log.exception("cannot respond to %s", path)
            return INTERNAL_ERROR
        return self.not_found()

    def not_found(self) -> Response:
        """Return the response that names the paths."""
        paths = [*self.paths[:-1], *self._routes.posts, self.paths[-1]]
        return Response(404, f"not found; try {', '.join(paths[:-1])} or {paths[-1]}\n".encode())

    def _has_token(self, authorization: str) -> bool:
        return has_bearer_token(authorization, self._routes.bearer_token)

    def _exposition(self, registry: CollectorRegistry, accept: str, accept_encoding: str) -> Response:
        exposition = exposition_for(accept)
        compressed = accepts_gzip(accept_encoding)
        headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"),)
        if compressed:
            headers += (("Content-Encoding", "gzip"),)
        encode = partial(_encoded, registry, exposition, compressed=compressed)
        body = self._metrics.run((exposition, compressed), encode)
        return Response(200, body, exposition.content_type, headers)

    def _health(self, *, with_details: bool) -> Response:
        health = self._routes.health()
        document: dict[str, object] = {"status": health.status}
        if with_details:
            document |= health.details
        return _json(200 if health.ok else 503, document)

    def _targets(self) -> Response:
        targets = self._routes.targets()
        return _json(200, [{"targets": [one.address], "labels": dict(one.labels)} for one in targets])


def _encoded(registry: CollectorRegistry, exposition: Exposition, *, compressed: bool) -> bytes:
    body = exposition.encode(registry)
    return gzip.compress(body, compresslevel=GZIP_LEVEL, mtime=0) if compressed else body


def _json(status: int, document: object) -> Response:
    body = json.dumps(document, separators=(",", ":"), default=str).encode()
    return Response(status, body, "application/json")
