"""A headline whose phrases link to what they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlencode

import streamlit as st

from windowpane.report.headline import Phrase, Subject
from windowpane.text.terms import explain
from windowpane_dashboard.queries.filters import Parameters
from windowpane_dashboard.style.sanitize import escape_markdown

KEY: Final = "headline"
_mount: Final = st.components.v2.component(
    "windowpane_linked_headline", js=Path(__file__).with_suffix(".js").read_text()
)


class Target(NamedTuple):
    """A page and its address; the fleet page is at the root."""

    page: str
    address: Parameters

    @property
    def url(self) -> str:
        """The address relative to the application."""
        path = "" if self.page == "fleet" else self.page
        return f"{path}?{urlencode(self.address.to_query())}"


def linked_headline(phrases: Sequence[Phrase], targets: Mapping[Subject, Target], page: str) -> None:
    """Show the phrases as one sentence, and what the terms of the *page* mean.

    A phrase whose subject has a target links to it. The links work without the script too, in another tab.
    """
    with st.container(key=KEY, gap=None):
        st.subheader("".join(_markdown(one, targets) for one in phrases), anchor=False, help=explain(page))
        _open_links(phrases, targets, KEY)


def linked_sentence(phrases: Sequence[Phrase], targets: Mapping[Subject, Target], *, key: str) -> None:
    """Show the phrases likewise, below the headline."""
    with st.container(key=key, gap=None):
        st.markdown("".join(_markdown(one, targets) for one in phrases))
        _open_links(phrases, targets, key)


def _open_links(phrases: Sequence[Phrase], targets: Mapping[Subject, Target], key: str) -> None:
    linked = [target for one in phrases if (target := _target(one, targets))]
    opened = _mount(key=f"{key}_links", data={"key": key}, on_opened_change=lambda: None).opened
    if isinstance(opened, int | float) and 0 <= int(opened) < len(linked):
        target = linked[int(opened)]
        st.switch_page(f"views/{target.page}.py", query_params=target.address.to_query())


def _markdown(phrase: Phrase, targets: Mapping[Subject, Target]) -> str:
    text = " ".join(map(escape_markdown, phrase.text.split(" ")))  # which strips its text
    target = _target(phrase, targets)
    return f"[{text}]({target.url})" if target else text


def _target(phrase: Phrase, targets: Mapping[Subject, Target]) -> Target | None:
    return targets.get(phrase.subject) if phrase.subject else None
