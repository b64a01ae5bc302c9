"""The table of alerts, for the documentation."""

from __future__ import annotations

from windowpane.alerts.rules import RULES, Rule


def markdown_table() -> str:
    """Every alert in Markdown, one row each; a test keeps the README in step."""
    rows = ["| alert | severity | fires when | for | first thing to do |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*rows, *map(_row, RULES)]) + "\n"


def _row(rule: Rule) -> str:
    turns = "once" if rule.sustained_turns == 1 else f"{rule.sustained_turns} turns"
    off = "" if rule.enabled else " (off by default)"
    return (
        f"| `{rule.name}` | {rule.severity} | {rule.title.lower()}{_level(rule)}{off} | {turns} | {rule.todo} |"
    )


def _level(rule: Rule) -> str:
    if rule.threshold is None or rule.comparison == "occurs":
        return ""
    words = {"at_least": "at or above", "above": "above", "at_most": "at or below", "below": "below"}
    return f": {words[rule.comparison]} {rule.threshold:g}"
