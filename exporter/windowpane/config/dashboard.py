"""The dashboard's login: an OpenID Connect provider, and what each signed-in user may see and do.

Without a provider, any visitor who reaches the dashboard may do everything. With one, a user has the roles and
projects of every rule that matches the claims of the identity token, and without a matching rule none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr

from windowpane.config.section import NUMBER, GivenSecret, Section, checked_by
from windowpane.core.names import check_project

ALL_PROJECTS: Final = "*"
WITHOUT_PROJECT: Final = "-"
"""The sessions that belong to no project, in the list of a rule."""
MINIMUM_SECRET_CHARACTERS: Final = 32
HOUR: Final = 3_600.0
CLOCK_SLACK_SECONDS: Final = 300.0
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

Role = Literal["viewer", "admin"]


def _protected(url: str) -> None:
    parts = urlsplit(url)
    is_local = parts.hostname in _LOOPBACK or str(parts.hostname).endswith(".localhost")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise ValueError("must start with https:// (http:// only on this machine)")


def _long(secret: SecretStr) -> None:
    if len(secret.get_secret_value()) < MINIMUM_SECRET_CHARACTERS:
        raise ValueError(f"must have at least {MINIMUM_SECRET_CHARACTERS} characters")


def _callback(url: str) -> None:
    if not url.endswith("/oauth2callback"):
        raise ValueError("must end with /oauth2callback")


class OidcConfig(Section):
    """The provider that users sign in with."""

    metadata_url: Annotated[str, checked_by(_protected)]
    """The provider's `/.well-known/openid-configuration`."""
    client_id: Annotated[str, Field(min_length=1)]
    client_secret: GivenSecret
    cookie_secret: Annotated[SecretStr, checked_by(_long)] | None = None
    """Signs the cookie of a signed-in browser; by default a new one at each start, which ends every login."""
    redirect_url: Annotated[str, checked_by(_protected), checked_by(_callback)] | None = None
    """The address that users come back to; by default `/oauth2callback` below `public_url`."""
    scope: str = "openid email profile"
    session_hours: Annotated[float, Field(gt=0, le=720), NUMBER] = 12
    """Time after which a user has to sign in again."""


def _names(projects: tuple[str, ...]) -> None:
    for name in projects:
        if name not in (ALL_PROJECTS, WITHOUT_PROJECT):
            check_project("projects", name or "?")


class AccessRule(Section):
    """Grants a role, and projects, to the users whose claims match."""

    email: str | None = None
    """One address."""
    domain: str | None = None
    """Every address of a domain."""
    claim: str | None = None
    """Name of a claim, such as `groups`; dots select within it, as in `realm_access.roles`."""
    value: str | None = None
    """The value of the claim, or one of its values."""
    role: Role = "viewer"
    projects: Annotated[tuple[str, ...], checked_by(_names)] = ()
    """Projects that a viewer sees: names, `*` for all, `-` for sessions without one. An admin sees all."""

    def _check(self) -> None:
        given = [name for name in ("email", "domain", "claim") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError("a rule needs exactly one of email, domain and claim")
        if (self.claim is None) != (self.value is None):
            raise ValueError("claim and value belong together")
        if self.role == "viewer" and not self.projects:
            raise ValueError("a viewer needs projects: names, '*' for all, or '-' for sessions without a project")

    def matches(self, claims: Mapping[str, Any], *, unverified: bool) -> bool:
        """Return whether the claims match; an address counts only if it is verified, or *unverified*."""
        if self.claim is not None:
            held = _claim(claims, self.claim)
            return self.value in held if isinstance(held, list | tuple) else held == self.value
        address = claims.get("email")
        if not isinstance(address, str) or not (unverified or claims.get("email_verified") in (True, "true")):
            return False
        if self.email is not None:
            return address.casefold() == self.email.casefold()
        assert self.domain is not None
        return address.rpartition("@")[2].casefold() == self.domain.casefold()


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    if name in claims:
        return claims[name]
    held: Any = claims
    for part in name.split("."):
        held = held.get(part) if isinstance(held, Mapping) else None
    return held


@dataclass(frozen=True, slots=True)
class Access:
    """The sessions that a user may see, and whether they may change anything."""

    is_admin: bool
    projects: tuple[str, ...] | None
    """Projects whose sessions are visible, the empty name for those without one; None for all."""


FULL_ACCESS: Final = Access(is_admin=True, projects=None)


class DashboardConfig(Section):
    """The login of the dashboard."""

    oidc: OidcConfig | None = None
    """None for no login."""
    access: tuple[AccessRule, ...] = ()
    unverified_email: bool = False
    """Match addresses that the provider does not state to be verified."""

    def _check(self) -> None:
        if self.oidc is not None and not self.access:
            raise ValueError("oidc without access rules admits no user: add a rule with the role admin")
        if self.access and self.oidc is None:
            raise ValueError("access rules need oidc, the provider that users sign in with")

    def access_of(self, claims: Mapping[str, Any]) -> Access | None:
        """Return the access of a user by all rules that match; None without any."""
        rules = [rule for rule in self.access if rule.matches(claims, unverified=self.unverified_email)]
        if not rules:
            return None
        if any(rule.role == "admin" for rule in rules):
            return FULL_ACCESS
        projects = {project for rule in rules for project in rule.projects}
        if ALL_PROJECTS in projects:
            return Access(is_admin=False, projects=None)
        names = ("" if name == WITHOUT_PROJECT else name for name in sorted(projects))
        return Access(is_admin=False, projects=tuple(names))

    def is_current(self, claims: Mapping[str, Any], now: float) -> bool:
        """Return whether the sign-in that the claims are of is recent enough; not without a time of issue."""
        issued = claims.get("iat")
        if self.oidc is None or isinstance(issued, bool) or not isinstance(issued, int | float):
            return False
        return -CLOCK_SLACK_SECONDS <= now - issued <= self.oidc.session_hours * HOUR
