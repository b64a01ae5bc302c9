"""The committed dashboards as plain values: panels, queries, annotations and variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "grafana" / "dashboards"
SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}")
NAME = re.compile(r"(?<![\w\"$.{])([a-z_][a-z0-9_]*)(?![\w\"(]|\s*\()")


@dataclass(frozen=True)
class DashboardQuery:
    """One query of a dashboard, and its location."""

    board: str
    location: str
    expression: str
    instant: bool

    def __str__(self) -> str:
        return f"{self.board}: {self.location}"


def boards() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every panel with content, including those inside rows."""
    for panel in board["panels"]:
        yield from (panel, *panel.get("panels", ())) if panel["type"] != "row" else panel.get("panels", ())


def panel_queries(name: str, board: dict[str, Any]) -> Iterator[DashboardQuery]:
    for panel in panels(board):
        for target in panel["targets"]:
            location = f"{panel['title']} ({target['refId']})"
            yield DashboardQuery(name, location, target["expr"], bool(target.get("instant")))


def annotation_queries(name: str, board: dict[str, Any]) -> Iterator[DashboardQuery]:
    for annotation in board["annotations"]["list"]:
        yield DashboardQuery(
            name, f"annotation {annotation['name']}", annotation["target"]["expr"], instant=False
        )


def variables(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variable["name"]: variable for variable in board["templating"]["list"]}
