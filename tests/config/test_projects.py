"""Projects in the configuration, and the project that a token belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.config.loading import load_config
from windowpane.config.projects import hashed_token, project_of_token
from windowpane.config.schema import Config
from windowpane.exceptions import ConfigurationError

FIRST, SECOND = "wp_first-token-of-the-shop", "wp_second-token-of-the-shop"


def configured(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "config.yml"
    file.write_text(text)
    return load_config(file, environ={})


def test_a_token_belongs_to_one_project(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        f"projects:\n  shop: {{tokens: [{FIRST}, '{hashed_token(SECOND)}']}}\n"
        f"  bank: {{tokens: [{FIRST[::-1]}]}}\n  docs:\n",
    )

    projects = config.projects
    owners = [project_of_token(projects, token) for token in (FIRST, SECOND, FIRST[::-1])]
    assert owners == ["shop", "shop", "bank"]
    for token in ("", FIRST[:-1], FIRST + " ", hashed_token(SECOND), "\udcff", "x" * 100_000):
        assert project_of_token(projects, token) is None
    assert FIRST not in repr(config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("projects: {'a shop': {}}", "projects.*is not the name of a project"),
        ("projects: {shop: {tokens: [short]}}", r"config.yml:1: projects.shop.tokens: .*at least 16"),
        ("projects: {shop: {tokens: ['sha256:abc']}}", "64 hexadecimal digits"),
        (f"projects: {{a: {{tokens: [{FIRST}]}}, b: {{tokens: ['{hashed_token(FIRST)}']}}}}", "in common"),
        ("projects: {shop: {retention: {day: 3}}}", "projects.shop.retention.day: unknown key"),
        ("projects: {shop: {retention: {days: 0}}}", "out of range"),
        ("projects: {shop: {channels: [{uri: x}]}}", "projects.shop.channels.0.uri: unknown key.*channels.0.url"),
        ("project: 'a b'", "is not the name of a project"),
    ],
)
def test_an_invalid_project_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        configured(tmp_path, text)
    assert FIRST not in str(error.value)
