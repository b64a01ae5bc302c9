"""Write the measured values into the documentation, from the results of the benchmarks that measured them.

Usage: python benchmarks/write_values.py

A text with values is between `<!-- measured NAME: … -->` and `<!-- /measured -->`. Run this after a benchmark has
written its results; a test fails while a page has other values than they have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import fill

from windowpane.core.window_tools import MAXIMUM_TOKENS, PAGE_TOKENS
from windowpane.core.zones import (
    LARGE_WINDOW_TOKENS,
    MINIMUM_OUTPUT_TOKENS,
    RESERVE_RATIO,
    SMALL_WINDOW_TOKENS,
    default_margin,
    default_reserve,
    default_thresholds,
    level_tokens,
)
from windowpane.manager.plans.compaction import SUMMARY_RATIO, SUMMARY_SHARE, SUMMARY_TOKENS
from windowpane.manager.plans.summary import SHARES
from windowpane.models.tokens import counter_for
from windowpane.outputs.mcp.agent_tools import AGENT_TOOLS, INSTRUCTIONS

FOLDER = Path(__file__).parent
COLUMNS = 120
PAGES = [FOLDER.parent / "README.md", *sorted((FOLDER.parent / "docs").glob("*.md"))]
_VALUE = re.compile(r"(<!-- measured ([\w-]+): [^>]*-->\n).*?(<!-- /measured -->)", re.DOTALL)


def results(name: str, pattern: str) -> re.Match[str]:
    """Return the first match of *pattern* in a document of results."""
    match = re.search(pattern, (FOLDER / name).read_text(encoding="utf-8"), re.DOTALL)
    if match is None:
        raise SystemExit(f"benchmarks/{name} has nothing like {pattern!r}")
    return match


def zones() -> str:
    """The level of orange in small windows, whose output reserve is a larger share."""

    def orange(limit: int) -> float:
        usable = limit - default_reserve(limit) - default_margin(limit)
        ratio = default_thresholds(limit)[1]
        return level_tokens(ratio, limit_tokens=limit, usable_tokens=usable) / limit

    small = [orange(limit) for limit in range(MINIMUM_OUTPUT_TOKENS, SMALL_WINDOW_TOKENS, 256)]
    return (
        f"From {LARGE_WINDOW_TOKENS // 1_000}K on it starts at {orange(LARGE_WINDOW_TOKENS):.0%}. "
        f"Windows below 32K enter orange at {min(small):.0%} to {max(small):.0%}, since the tokens "
        f"kept for output (a quarter, at "
        f"most {MINIMUM_OUTPUT_TOKENS:,}; of large windows {RESERVE_RATIO:.0%}) are a larger share of them. "
        "Reductions start no earlier there."
    )


def policies() -> str:
    """The default against the baselines, over the long sessions."""
    text = (FOLDER / "POLICIES_CORPUS.md").read_text(encoding="utf-8")
    windows: dict[str, tuple[int, float, list[str]]] = {}
    for part in re.split(r"\n## (?=\d+k window)", text)[1:]:
        filled = results_in(part, r"Sessions that fill it: (\d+)")
        cost = results_in(part, r"\| truncation \| [\d,]+ \| [\d.]+% \| ([\d.]+) \|")
        front = re.findall(r"\| \**(?:preset )?(\w+)\**(?: \(default\))? \|[^\n]*\| yes \|", part)
        windows[part.split()[0]] = int(filled), float(cost), front
    costs = [cost for _, cost, _ in windows.values()]
    truncation = results_in(text, r"All windows, against truncation at the same tokens: -([\d.]+) pp")
    last = results_in(text, r"All windows, against keep last N at the same tokens: -([\d.]+) pp")
    sessions = max(filled for filled, _, _ in windows.values())

    def on_front(name: str) -> str:
        sizes = [window for window, (_, _, front) in windows.items() if name in front]
        return " and ".join(filter(None, (", ".join(sizes[:-1]), sizes[-1]))) if sizes else "no window"

    return (
        f"Replayed over {sessions} long sessions of real coding agents, at the tokens that the default sends, "
        f"`hybrid` regrets {float(truncation):.1f} percentage points less of all content than truncation, and "
        f"{float(last):.1f} less than keeping the last N groups. Truncation that starts at the full window costs "
        f"{min(costs):.1f} to {max(costs):.1f} times as much. On the Pareto front of regret, cost, fidelity and "
        f"overflows ([long sessions](../benchmarks/POLICIES_CORPUS.md)) are `hybrid` at "
        f"{on_front('hybrid')}, and "
        f"the preset `picoclaw` at {on_front('picoclaw')}."
    )


def results_in(text: str, pattern: str) -> str:
    """Return the group of the first match of *pattern* in *text*."""
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"the results have nothing like {pattern!r}")
    return match[1]


def forecasts() -> str:
    """The coverage of the band, and the compactions that were warned of."""
    table = results("TRUTH.md", r"### First passages, all sessions\n(.*?)\n### ")[1]
    held = {
        level: float(coverage)
        for level, coverage in re.findall(r"\| (\w+) \| Windowpane \|[^|]*\|[^|]*\|[^|]*\| ([\d.]+)", table)
    }
    sizes = [share for level, share in held.items() if level != "own"]
    warned = results("TRUTH.md", r"\| all \((\d+)\) \| [\d,]+ \| (\d+) \| (\d+) \(\d+%\) \| (\d+) \|")
    return (
        f"On {warned[1]} recorded sessions the band holds {min(sizes):.0%} to {max(sizes):.0%} of "
        f"first passages of "
        f"50,000, 100,000 and 200,000 tokens, and {held['own']:.0%} of the agents' own compactions. "
        f"`compaction_soon` came 2 to 15 calls before {warned[3]} of {warned[2]} automatic compactions, and "
        f"{warned[4]} times without one."
    )


def warnings() -> str:
    """The compactions that were warned of in the half of the sessions that fitted no constant."""
    row = r"\| reporting half \((\d+)\) \| [\d,]+ \| (\d+) \| (\d+) \(\d+%\) \| \d+ \| ([\d.]+) \|"
    warned = results("TRUTH.md", row)
    return (
        "**Does it warn before a compaction?** "
        f"Before {warned[3]} of {warned[2]}, with {float(warned[4]):.1f} false warnings in 200 calls, "
        f"in {warned[1]} recorded sessions to which no constant was fitted "
        "([protocol](benchmarks/TRUTH.md), "
        "[data and a scorer for other forecasts](benchmarks/forecast/README.md))."
    )


def losses() -> str:
    """The planted faults that the probe finds, and its findings in undamaged summaries, over both halves."""
    text = (FOLDER / "LOSSES.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| (?:tuning|reporting) \| (\d+) \| (\d+) \| \d+ \|", text)
    whole = [tuple(map(int, row)) for row in rows]
    compactions, wrong = (sum(column) for column in zip(*whole, strict=True))
    shares = {}
    for kind in ("wrong number", "wrong name", "reversed rule"):
        rows = re.findall(rf"\| {kind} \| \w+ \| (\d+) \| ([\d.]+)% \|", text)
        copies = sum(int(count) for count, _ in rows)
        shares[kind] = sum(int(count) * float(share) for count, share in rows) / copies
    found = ", ".join(f"{share:.0f}% of planted {kind}s" for kind, share in shares.items())
    return f"In recorded summaries it finds {found}; of {compactions} undamaged ones {wrong} had a contradiction."


def rules() -> str:
    """Precision and recall of the rules found, by source, and of what strangers typed."""
    row = r"\| {} \| {} \| \d+ \| ([\d.]+) \| ([\d.]+) \|"
    held_out = r"\*\*all held out\*\*"
    halves = ((held_out, "system"), (held_out, "memory"), (held_out, "user"), ("public", "user"))
    found = [
        [f"{float(share):.0%}" for share in results("LOSSES.md", row.format(*one)).groups()] for one in halves
    ]
    precise, (system, memory, user, public) = zip(*found, strict=True)
    return (
        f"Of the rules in sentences that were read by hand it finds {system} in system prompts, {memory} in "
        f"memory files and {user} in messages of users; {', '.join(precise[:2])} and {precise[2]} of what it "
        "finds are rules. Of what strangers typed to agents in public repositories, which nothing was tuned on, "
        f"it finds {public} ({precise[3]} are rules)."
    )


def alerts() -> str:
    """The precision of the two alerts that announce something, on the reporting half."""
    pattern = r"\| `{}` \|[^\n]*?\| (\d+)/(\d+) \(\d+%\) \| \d+/\d+ \(\d+%\) \|"
    soon, red = (results("ALERTS.md", pattern.format(name)) for name in ("compaction_soon", "red_imminent"))
    return (
        "On the reporting half of the sessions, an automatic compaction came within "
        f"fifteen turns of {soon[1]} of {soon[2]} `compaction_soon`, and red within ten of {red[1]} of {red[2]} "
        "`red_imminent`."
    )


def outputs() -> str:
    """The estimate of an output of which only the start was recorded."""
    calls, total, half = results("TRUTH.md", r"\| up to [\d.]+ \| ([\d,]+) \| ([+-]\d+%) \| (\d+%) \|").groups()
    side = "above" if total.startswith("+") else "below"
    return (
        f"Of {calls} calls of these releases whose last row has the final usage, the estimates are {total[1:]} "
        f"{side} the true output in sum, and half are within {half} of it."
    )


def redaction() -> str:
    """The recall of redaction on secrets that no rule was tuned on."""
    report = "[RELIABILITY.md](../benchmarks/RELIABILITY.md)"
    row = results("RELIABILITY.md", r"held-out half \|[^\n]*recall ([\d.]+)%; lowest: ([^,]*?) (\d+)%")
    return (
        f"- **Redaction** finds most secrets, not all: {row[1]}% of secrets composed from grammars in "
        f"combinations that no rule was tuned on; fewest of the kind *{row[2]}*, {row[3]}% ({report})."
    )


def observing() -> str:
    """The time that a call waits for its observer."""
    waits = re.findall(
        r"800 messages, [^\n]*the agent waits ([\d.]+) ms", results("RESULTS.md", r"## observe\n(.*?)\n## ")[1]
    )
    return (
        "In the call only references are taken: a copy of its arguments and of its list of messages, "
        f"{max(map(float, waits)):.3f} ms at 800 messages."
    )


def mcp_tools() -> str:
    """The share of a window that the tools of `windowpane mcp` take."""
    tools = [
        {"name": one.name, "description": one.description, "input_schema": one.schema} for one in AGENT_TOOLS
    ]
    sizes = [
        counter_for(model, wait=True).count(json.dumps(tools) + INSTRUCTIONS)
        for model in ("gpt-5", "claude-sonnet-4-5")
    ]
    return (
        f"- **Small.** The {len(AGENT_TOOLS)} tools and the server's instructions take {sizes[0]} tokens of an "
        f"OpenAI model's window and about {sizes[1]} of Claude's. Claude Code and Codex load the schemas only "
        f"when they are searched for. An answer has at most about {MAXIMUM_TOKENS:,} tokens, a page of text "
        f"{PAGE_TOKENS:,}."
    )


def summary() -> str:
    """The size of a summary without a model, and of its sections."""
    shares = ", ".join(f"{name} {share:.0%}" for name, share in SHARES.items())
    return (
        f"A summary has up to {SUMMARY_RATIO:.0%} of the usable tokens, and at most {SUMMARY_TOKENS:,} tokens. "
        f"The next one grows by up to {SUMMARY_SHARE:.0%} of what it newly replaces. Goal, plan and look-up "
        f"hints are whole. Of the rest each section has a share: {shares}."
    )


def compactor() -> str:
    """The default against setups of its cost, on the half of the sessions that it was not changed on."""
    pattern = r"## Reported half\n.*?most ([\d.]+) times.*?in (\d+) comp.*?in (\d+), and below in (\d+)"
    cost, above, within, below = results("COMPACTOR.md", pattern).groups()
    less = below if int(below) else "none"
    return (
        "Old facts were looked up, by kind, in the calls of long recorded sessions. Compared with presets, "
        f"truncation and others that cost at most {cost} times as much, the default keeps more beyond noise "
        f"in {above} comparisons, as much within noise in {within}, and less in {less} "
        "([all of them](../benchmarks/COMPACTOR.md))."
    )


VALUES: dict[str, Callable[[], str]] = {
    "summary": summary,
    "compactor": compactor,
    "zones": zones,
    "policies": policies,
    "forecasts": forecasts,
    "warnings": warnings,
    "losses": losses,
    "rules": rules,
    "alerts": alerts,
    "outputs": outputs,
    "redaction": redaction,
    "observing": observing,
    "mcp-tools": mcp_tools,
}
"""The function that makes each text, by its name."""


def with_values(text: str) -> str:
    """Return *text* with every value as it was measured last."""
    return _VALUE.sub(lambda match: f"{match[1]}{_filled(VALUES[match[2]]())}\n{match[3]}", text)


def _filled(text: str) -> str:
    """Return *text* in lines as long as those of the pages."""
    indent = "  " if text.startswith("- ") else ""
    return fill(text, COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_values(page.read_text(encoding="utf-8")), encoding="utf-8")
