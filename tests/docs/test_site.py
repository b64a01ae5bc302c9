"""The documentation site is built strictly, and its reference is that of the code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("zensical")
jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import build_site  # noqa: E402  # a script beside the pages
import reference  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a link or an anchor that leads nowhere ends the build."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "docs" / "build_site.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "site"


def pages(nav: list[Any]) -> Iterator[str]:
    for _, _, page in build_site.listed(nav):
        yield page


def test_every_page_is_built_and_has_its_markdown_beside_it(site: Path) -> None:
    markdown = {str(path.relative_to(site)) for path in site.rglob("*.md")}
    listed = (site / "llms.txt").read_text(encoding="utf-8")

    assert {"index.md", "tutorial.md", "security.md", "reference/python.md", "benchmarks/truth.md"} <= markdown
    for page in markdown:
        assert (site / page).with_suffix(".html").is_file(), page
        assert f"]({page})" in listed
    whole = {str(path.relative_to(site.parent / "pages")) for path in (site.parent / "pages").rglob("*.md")}
    assert whole == markdown, "a page is missing in the navigation"


def test_pages_fetch_nothing_from_another_host(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")

    assert "fonts.googleapis" not in page
    assert 'src="http' not in page
    assert (site / "search.json").exists() or list(site.glob("search*")) or list(site.glob("assets/**/search*"))


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# One\n\n[two](#nowhere)\n", encoding="utf-8")
    text = (ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8")
    start, end = text.index("nav = ["), text.index("\n]\n", text.index("nav = [")) + 3
    (tmp_path / "zensical.toml").write_text(text[:start] + text[end:], encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode != 0
    assert "anchor does not exist" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("docs/a.md", "[r](../grafana/runbook.md#red)", "[r](runbook.md#red)"),
        ("docs/a.md", "![i](images/fleet.png)", "![i](images/fleet.png)"),
        ("docs/a.md", "[t](../examples/kubernetes/team.yml)", "t (`examples/kubernetes/team.yml`)"),
        ("docs/a.md", "[u](https://example.net/x)", "[u](https://example.net/x)"),
        ("docs/a.md", "`[c](../x.md)`", "`[c](../x.md)`"),
        ("CONTRIBUTING.md", "[h](docs/how-it-works.md)", "[h](how-it-works.md)"),
    ],
)
def test_links_of_the_repository_become_those_of_the_site(source: str, text: str, expected: str) -> None:
    assert build_site.with_site_links(text, source=source, page="a.md") == expected


def test_the_schema_of_events_accepts_every_frozen_event() -> None:
    schema = reference.event_schema()
    validator = jsonschema.Draft202012Validator(schema)
    frozen = ROOT / "tests" / "compatibility" / "release_0_1_0" / "events.jsonl"
    events = [json.loads(line) for line in frozen.read_text(encoding="utf-8").splitlines()]

    validator.check_schema(schema)
    assert events
    assert [error.message for event in events for error in validator.iter_errors(event)] == []
    assert not validator.is_valid({**events[0], "n": "one"})
    assert not validator.is_valid({**events[0], "data": {"severity": 1}})


def test_the_reference_has_every_command_key_and_name() -> None:
    import windowpane
    from windowpane.cli import COMMANDS

    generated = dict(reference.files())

    assert all(f"## windowpane {command}\n" in generated["reference/cli.md"] for command in COMMANDS)
    assert all(
        f"## {name}\n" in generated["reference/python.md"] for name in windowpane.__all__ if name != "__version__"
    )
    for key in ("pressure.thresholds.red", "store.retention_days", "server.bearer_token", "notify.channels"):
        assert f"| `{key}` |" in generated["reference/configuration-keys.md"]
