"""Access to the ingest endpoint: agents with the token of a project, or with the token of the server itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.config.projects import project_of_token
from windowpane.outputs.http.authentication import has_bearer_token

if TYPE_CHECKING:
    from windowpane.config.schema import Config


class IngestAccess:
    """Access to the endpoint. The server's own *bearer_token* belongs to no project and may send for all."""

    def __init__(self, config: Config, *, bearer_token: str | None) -> None:
        self._config = config
        self._bearer_token = bearer_token

    @property
    def needs_token(self) -> bool:
        """True if there is any token; otherwise the endpoint is open to this machine, or by certificates."""
        projects = self._config.projects.values()
        return self._bearer_token is not None or any(project.tokens for project in projects)

    def accepts(self, authorization: str) -> bool:
        """Return whether a request with this `Authorization` header may send events."""
        return self._is_own(authorization) or self._token_project(authorization) is not None

    def project(self, authorization: str) -> str:
        """Return the project that the request's sessions belong to; empty where the token is not a project's."""
        return "" if self._is_own(authorization) else self._token_project(authorization) or ""

    def _is_own(self, authorization: str) -> bool:
        return self._bearer_token is not None and has_bearer_token(authorization, self._bearer_token)

    def _token_project(self, authorization: str) -> str | None:
        scheme, _, token = authorization.partition(" ")
        return project_of_token(self._config.projects, token.strip()) if scheme.lower() == "bearer" else None
