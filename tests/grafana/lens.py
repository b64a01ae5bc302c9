"""A lens on the committed dashboards: panels, queries, annotations and variables as plain values."""

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
class Asked:
    """One query of a dashboard and where it stands."""

    board: str
    place: str
    expression: str
    instant: bool

    def __str__(self) -> str:
        return f"{self.board}: {self.place}"


def boards() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel that shows something, those inside rows included."""
    for panel in board["panels"]:
        yield from (panel, *panel.get("panels", ())) if panel["type"] != "row" else panel.get("panels", ())


def panel_queries(name: str, board: dict[str, Any]) -> Iterator[Asked]:
    for panel in panels(board):
        for target in panel["targets"]:
            place = f"{panel['title']} ({target['refId']})"
            yield Asked(name, place, target["expr"], bool(target.get("instant")))


def annotation_queries(name: str, board: dict[str, Any]) -> Iterator[Asked]:
    for annotation in board["annotations"]["list"]:
        yield Asked(name, f"annotation {annotation['name']}", annotation["target"]["expr"], instant=False)


def variables(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variable["name"]: variable for variable in board["templating"]["list"]}
