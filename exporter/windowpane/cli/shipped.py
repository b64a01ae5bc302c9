"""Files that come with the package and are written out by a command: dashboards, rules, examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

import windowpane

GRAFANA: Final = (
    "alertmanager/alertmanager.yml",
    "dashboards",
    "prometheus/assets",
    "prometheus/http-sd.yml",
    "prometheus/prometheus.yml",
    "prometheus/rules",
    "provisioning",
    "runbook.md",
)
"""Files and folders of `grafana/` that run next to an agent; the others generate and test them."""
FIDELITY_EXAMPLE: Final = "examples/fidelity"
_PACKAGE: Final = Path(windowpane.__file__).parent


def shipped_folder(name: str) -> Path:
    """Return a folder of the repository: the wheel's copy, or the checkout's where the package runs from one."""
    packaged = _PACKAGE / "shipped" / name
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / name


def write_files(source: Path, target: Path, *, entries: Sequence[str] = ("",), force: bool) -> list[Path]:
    """Copy *entries* of the folder *source* to *target* and return the paths written.

    Nothing is written where a file of other content exists, unless *force* is set.
    """
    files = list(_files(source, entries))
    if not files:
        raise click.ClickException(f"the files are missing from this installation (expected in {source})")
    try:
        changed = [
            target / name
            for name in files
            if (target / name).exists() and (target / name).read_bytes() != (source / name).read_bytes()
        ]
        if changed and not force:
            raise click.ClickException(f"{changed[0]} exists and differs; --force overwrites it")
        for name in files:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes((source / name).read_bytes())
    except OSError as error:
        raise click.ClickException(f"cannot write {error.filename or target}: {error.strerror}") from error
    return [target / name for name in files]


def _files(source: Path, entries: Sequence[str]) -> Iterator[Path]:
    for entry in entries:
        path = source / entry
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in below:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file.relative_to(source)
