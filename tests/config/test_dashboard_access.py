"""The access of a user: by every rule that matches the claims, and by none that is unclear."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from windowpane.config.dashboard import FULL_ACCESS, Access, DashboardConfig
from windowpane.config.loading import load_config
from windowpane.exceptions import ConfigurationError

ROOT = Path(__file__).parents[2]
OIDC = {
    "metadata_url": "https://login.example/.well-known/openid-configuration",
    "client_id": "windowpane",
    "client_secret": "secret",
}
RULES = [
    {"email": "ann@example.org", "role": "admin"},
    {"domain": "example.org", "projects": ["docs"]},
    {"claim": "groups", "value": "shop-team", "projects": ["shop", "-"]},
    {"claim": "realm_access.roles", "value": "oncall", "projects": ["*"]},
]


def configured(rules: list[dict[str, Any]] = RULES, **more: Any) -> DashboardConfig:
    settings = {"dashboard": {"oidc": {**OIDC, **more.pop("oidc", {})}, "access": rules, **more}}
    return load_config(environ={}, arguments=settings).dashboard


@pytest.mark.parametrize(
    ("claims", "access"),
    [
        ({"email": "Ann@Example.org", "email_verified": True}, FULL_ACCESS),
        ({"email": "bob@example.org", "email_verified": True}, Access(is_admin=False, projects=("docs",))),
        ({"groups": ["x", "shop-team"]}, Access(is_admin=False, projects=("", "shop"))),
        ({"groups": "shop-team"}, Access(is_admin=False, projects=("", "shop"))),
        ({"realm_access": {"roles": ["oncall"]}}, Access(is_admin=False, projects=None)),
        (
            {"groups": ["shop-team"], "email": "b@example.org", "email_verified": "true"},
            Access(is_admin=False, projects=("", "docs", "shop")),
        ),
        ({}, None),
        ({"email": "ann@example.org"}, None),
        ({"email": "ann@example.org", "email_verified": 1.5}, None),
        ({"email": "ann@example.org.evil.example", "email_verified": True}, None),
        ({"email": "x@sub.example.org", "email_verified": True}, None),
        ({"email": ["ann@example.org"], "email_verified": True}, None),
        ({"groups": "not shop-team"}, None),
        ({"groups": {"shop-team": True}}, None),
        ({"groups": None, "realm_access": "oncall"}, None),
    ],
)
def test_a_user_has_what_the_matching_rules_give(claims: dict[str, Any], access: Access | None) -> None:
    assert configured().access_of(claims) == access


def test_an_unverified_address_counts_only_where_it_is_allowed() -> None:
    assert configured(unverified_email=True).access_of({"email": "ann@example.org"}) == FULL_ACCESS


@pytest.mark.parametrize(
    ("claims", "is_current"),
    [
        ({"iat": 1_000.0}, True),
        ({"iat": 1_000.0 - 3_599}, True),
        ({"iat": 1_000.0 - 3_601}, False),
        ({"iat": 1_000.0 + 3_600}, False),
        ({"iat": "1000"}, False),
        ({"iat": True}, False),
        ({}, False),
    ],
)
def test_a_login_ends(claims: dict[str, Any], is_current: bool) -> None:
    assert configured(oidc={"session_hours": 1}).is_current(claims, 1_000.0) == is_current


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"oidc": OIDC}, "admits no user"),
        ({"access": RULES}, "access rules need oidc"),
        ({"oidc": OIDC, "access": [{"role": "admin"}]}, "exactly one of email, domain and claim"),
        ({"oidc": OIDC, "access": [{"email": "a@b", "domain": "b", "role": "admin"}]}, "exactly one of"),
        ({"oidc": OIDC, "access": [{"claim": "groups", "role": "admin"}]}, "claim and value belong together"),
        ({"oidc": OIDC, "access": [{"email": "a@b"}]}, "a viewer needs projects"),
        ({"oidc": OIDC, "access": [{"email": "a@b", "projects": ["a b"]}]}, "not the name of a project"),
        ({"oidc": {**OIDC, "metadata_url": "http://login.example/"}, "access": RULES}, "must start with https"),
        ({"oidc": {**OIDC, "redirect_url": "https://a.example/back"}, "access": RULES}, "/oauth2callback"),
        ({"oidc": {**OIDC, "cookie_secret": "short"}, "access": RULES}, "cookie_secret.*32"),
        ({"oidc": {**OIDC, "client_secret": ""}, "access": RULES}, "client_secret"),
    ],
)
def test_an_invalid_login_is_an_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_config(environ={}, arguments={"dashboard": settings})


def test_the_documented_settings_are_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/projects.md").read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        file = tmp_path / "config.yml"
        file.write_text(block)
        load_config(
            file, environ={"WINDOWPANE_DASHBOARD__OIDC__CLIENT_SECRET": "0123"} if "oidc" in block else {}
        )
    assert len(blocks) == 2
