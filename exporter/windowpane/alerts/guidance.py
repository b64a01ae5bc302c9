"""The runbook's content: for every alert its meaning, its importance, where to see it, and the steps to take.

It is part of the package, next to the rules, so that an alert has one definition; `windowpane.alerts.runbook`
renders them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Guidance:
    """The runbook's entry for one alert, for a reader who sees it for the first time."""

    means: str
    matters: str
    see: str
    steps: tuple[str, ...]
    """Steps to take, in their order."""


GUIDANCE: Final[dict[str, Guidance]] = {
    "utilization": Guidance(
        "The window has been in the red zone for several turns. Red starts at 0.90 of the limit by default, "
        "earlier where the window is small or the reserve for output is large.",
        "A turn or two in red is normal just before a compaction. Staying there means that nothing reduces the "
        "window: the next large tool result overflows it, the provider refuses the call or cuts the answer.",
        "The session page shows which component fills the window; in Grafana, 'Used tokens by component'.",
        (
            "Look at the largest component. If it is tool results, remove or summarize the old ones.",
            "Start a compaction, or continue in a new window.",
            "If compactions ran and the window is still red, see `cannot_compress` and the pinned items.",
            "If this agent always ends here, give it a larger window or a lower compaction threshold.",
        ),
    ),
    "eviction_rate": Guidance(
        "More than a handful of items were removed per turn, for several turns and not all at once.",
        "The working set is larger than the window. Content that is removed now is likely to be needed again, "
        "which costs a call, its tokens and the prompt cache.",
        "'Evicted blocks' by policy and content type; 'Regrets' are those that were needed again.",
        (
            "Compare with those needed again: many mean that the wrong content is removed.",
            "Cap the output of the tool that brings most tokens in, at ingest.",
            "Raise the limit, or split the task over sub-agents with separate windows.",
        ),
    ),
    "compression_ratio": Guidance(
        "The last compactions together made the content they replaced less than half as small as it was.",
        "A compaction costs a model call and loses detail. When it saves little, the window is soon full again "
        "and the next compaction loses more. At 1 or below it made things larger.",
        "'Compression ratio' and, on the session page, the before and after of each compaction.",
        (
            "See what the summary keeps verbatim: code, logs and lists are better removed than summarized.",
            "Compact older and larger spans; short recent exchanges have little to give.",
            "Check the prompt's target length against the summaries that come back.",
        ),
    ),
    "burn_rate_spike": Guidance(
        "One turn added several times as many tokens as the turns before it.",
        "A single unbounded tool result is the commonest way to lose a window. The forecast of turns until red "
        "is worth less for some turns after it.",
        "The session page marks the turn; select it to see which item came in.",
        (
            "Find the item and the tool that produced it.",
            "Give that tool a limit (lines, matches, bytes) or a pager.",
            "If the content is needed only in part, mask it and let the agent fetch the part.",
        ),
    ),
    "fidelity": Guidance(
        "After a compaction the model can see less than half as much of the information that was there before "
        "as is usual in this session, by the median of its earlier compactions; with fewer than three of these, "
        "less than 0.10.",
        "The agent continues as if nothing had happened, and repeats work or breaks a constraint it was given.",
        "The session page lists the facts: kept, recoverable, lost, contradicted.",
        (
            "Read the lost facts. Goals, constraints and file names should never be among them.",
            "Pin what must survive, or add it to the sections the summary has to have.",
            "If the score stays low, use another strategy or a stronger model for summaries.",
            "For this session, give the agent the lost facts again, or go back to the checkpoint.",
        ),
    ),
    "rule_lost": Guidance(
        "A standing instruction of the user or of a memory file was visible before a compaction, and neither the "
        "summary nor anything that the agent's program put back in the first calls after it states it; or "
        "the summary states its opposite, or another number or name. The alert names the worst of them, and the "
        "sentence that contradicts it, where texts are stored.",
        "The agent continues without it: it pushes or deletes what it was asked to leave alone.",
        "`windowpane report` lists what became of each rule, the worst first.",
        (
            "Read the lost rules; a request that is done may be among them.",
            "Give the agent those that still hold again, in the next message.",
            "Move them to a file that its program loads for every session, as the root CLAUDE.md or AGENTS.md.",
            "Look at what your program puts back: often not rules for certain paths, nor those of the chat.",
        ),
    ),
    "tool_results": Guidance(
        "More than 0.60 of the used tokens are tool results, in a window that is at least orange.",
        "Most of a tool result is dead weight after the turn that read it, and every later call pays for it.",
        "'Used tokens by component' and the ratio of stale tokens.",
        (
            "Remove results that were never used; mask them, so that they can be fetched again.",
            "Summarize large results when they are added.",
            "Ask tools for less: ranges instead of files, matches instead of logs.",
        ),
    ),
    "compaction_soon": Guidance(
        "The agent is expected to compact its conversation by itself within 14 turns, by the median of the "
        "forecast. The message names the size at which it compacts, and how that is known.",
        "A compaction interrupts the agent wherever it is, and its summary loses content without a note.",
        "'Turns until compaction' with its 10 to 90 band, and the forecast's record on the session page.",
        (
            "Have the agent write down decisions, names and open work, in a file or a note.",
            "Compact now, at the end of an exchange, with instructions on what to keep.",
        ),
    ),
    "red_imminent": Guidance(
        "The next turn is expected to reach red.",
        "The call after this one may not fit.",
        "'Turns until red' is 1 or less; the session page shows the forecast at its last turn.",
        ("Compact before the next call.", "Hold large tool calls back until that is done."),
    ),
    "overflow": Guidance(
        "A window did not fit: the provider refused the call, or the check before the call expected it to.",
        "The call failed or was made with content cut away in a hurry.",
        "'Overflows' by outcome: reduced and retried is a near miss, failed is an outage of that agent.",
        (
            "See the outcome. If the retry succeeded, look at the items that were reduced for it.",
            "Lower the threshold at which compaction starts, so that this is not reached.",
            "If the estimate was far off, name the model as the provider does, so that its tokenizer is used.",
        ),
    ),
    "cannot_compress": Guidance(
        "Everything that may be removed was removed, and the window is still over its threshold.",
        "The agent cannot continue in this window.",
        "The session page, 'The window at this turn': all items are pinned, referenced or in the last exchange.",
        (
            "Unpin or shorten pinned items; a pinned file belongs in a tool, not in the window.",
            "Continue in a new window.",
            "If a single item is larger than the window, split it before it is added.",
        ),
    ),
    **{
        f"cost_{zone}": Guidance(
            f"{spent} of a budget of `cost_budgets` is spent today.",
            "Windowpane stops nothing: calls go on and cost as before.",
            "The alert names agent, project and amounts; Trends has the tools that cost most.",
            (
                "Open the Fleet page ordered by cost, and the most expensive session's **Cost** tab.",
                "Stop or compact sessions that carry much and get little done.",
                "If the budget is too small for the work, change `cost_budgets`.",
            ),
        )
        for zone, spent in (("yellow", "Half"), ("orange", "Four fifths"), ("red", "All"))
    },
    "quota_nearly_used": Guidance(
        "A window of the plan's quota, of hours or days, is nearly used up.",
        "When it is used up, the provider refuses calls, or bills them, until the window ends.",
        "The Fleet page and `windowpane top` show each window with its end, and when it runs out at this pace.",
        (
            "Finish or note what must not be interrupted.",
            "Give long jobs to a smaller model, or start them after the reset.",
        ),
    ),
    "quota_used_up": Guidance(
        "A window of the plan's quota, of hours or days, is used up.",
        "The provider refuses calls, or bills them, until the window ends.",
        "The Fleet page and `windowpane top` show when the window ends.",
        (
            "Stop jobs that would fail now, and start them after the reset.",
            "Change to a model or plan with its own quota for what cannot wait.",
        ),
    ),
    "audit_chain_broken": Guidance(
        "The hash chain over a session's events does not verify: an event was altered, removed, inserted or "
        "recorded without the key. Or the rows that pages read are not what the events give, or the tables, "
        "indexes and triggers are not those of a store.",
        "The record of this session cannot be relied on. Without a key the cause may be a damaged "
        "file; with one it is tampering.",
        "`windowpane audit verify` names the first bad event or row.",
        (
            "Copy the store before anything else writes to it.",
            "Compare with heads that were exported outside the store.",
            "Check the disk and who can write to the file.",
            "Rows unlike their events: `windowpane audit rebuild` makes them again.",
            "Recorded by your own agent without the key: give it the key, then `windowpane audit accept`.",
            "Restore from a backup whose chain verifies.",
        ),
    ),
    "output_reserve": Guidance(
        "Less room remains than an answer needs: 4,096 tokens, or a quarter of a small window.",
        "The answer is cut off in the middle, often inside a tool call that then cannot be parsed.",
        "Used tokens against the limit on the session page.",
        ("Reduce the window before the next call.", "Check that the reserve fits the answers this agent writes."),
    ),
    "regret": Guidance(
        "More than a tenth of the tokens removed within 20 turns were needed again.",
        "Each was a wrong decision and was paid for twice: the call and the tokens.",
        "'Regrets' by cause, and on the session page the line from the removal to its return.",
        (
            "Look at the content that is needed again: one file, one tool, one kind of content?",
            "Raise its priority or lifetime, or reference it in the notes.",
            "Mask instead of dropping, so that the agent knows what it can fetch.",
            "Replay the session under another policy before changing production.",
        ),
    ),
    "thrashing": Guidance(
        "The window was reduced in at least 5 of the last 10 turns.",
        "Each reduction frees too little. Every one invalidates the prompt cache and may cost a model call.",
        "'Evictions and compressions' over time; the cache hit ratio falls with each.",
        (
            "Lower the target of a reduction so that it frees more at once.",
            "If the window fills with one kind of content, stop it at ingest.",
        ),
    ),
    "repeated_calls": Guidance(
        "The agent made the same tool call, with the same arguments, at least three times within ten turns, and "
        "got the same result each time. No other call returned anything new in between, so a check that is run "
        "again after each edit does not count.",
        "Every repetition costs a call and fills the window. The agent may wait for something, or not use the "
        "result.",
        "The session page lists the calls of each turn; duplicates show in the ratio of duplicate tokens.",
        (
            "Look at the turns of the repetition: was the first result removed, or cut?",
            "If results are removed too early, protect this tool's results or raise their lifetime.",
            "If the agent ignores the result, stop it and change its instructions.",
        ),
    ),
    "oscillation": Guidance(
        "The zone changed at least 4 times within 10 turns.",
        "Harmless by itself, but alerts and decisions change with every zone.",
        "'Zone transitions' from and to.",
        ("Widen the hysteresis between zones.", "Lower the reduction target below the zone's lower edge."),
    ),
    "yellow_entered": Guidance(
        "The window entered yellow.",
        "Nothing is wrong. It is the moment to plan which content is removed first.",
        "The session page.",
        ("Nothing yet.", "If this happens in the first turns, the fixed part of the window is too large."),
    ),
    "window_rolled": Guidance(
        "A new window was started; the agent knows the old one only by its checkpoint.",
        "A poor checkpoint is a loss of memory.",
        "The session page marks the new window and shows the content that was carried over.",
        ("Check that goal, constraints and open work are in the checkpoint.",),
    ),
    "compaction_done": Guidance(
        "The conversation was replaced by a summary.",
        "Useful to know for a person who follows the session: the agent may ask again.",
        "The session page shows before and after with the facts that were lost.",
        ("Read what was lost, and repeat to the agent what it still needs.",),
    ),
    "rot_threshold": Guidance(
        "The window holds more tokens than the threshold you set, whatever its limit. Off by default.",
        "Models use long contexts worse than short ones, well before the limit.",
        "Used tokens on the session page.",
        ("Compact earlier, or raise the threshold for models that hold up.",),
    ),
    "target_absent": Guidance(
        "Prometheus has no target of this job.",
        "Nothing is watched, and no other alert of this page can fire.",
        "Status, Targets in Prometheus; `/sd` of `windowpane serve` where discovery is used.",
        (
            "Check that an agent process or `windowpane serve` runs on the host.",
            'Check that the scrape job is named "windowpane", or relabeled to it.',
            "With discovery, request `/sd`: it lists only processes that still run.",
        ),
    ),
    "target_down": Guidance(
        "A target is configured or discovered but does not respond to scrapes.",
        "The sessions of that process are not watched.",
        "Status, Targets in Prometheus shows the error of the last scrape.",
        (
            "401: the bearer token is missing or wrong. Certificate errors: see the TLS settings.",
            "Connection refused: the process ended, or listens on loopback of another host or container.",
            "503 after a start: the stored events are not all counted yet; `/healthz` has the progress. Wait.",
            "503 otherwise: too many clients at once; look for a scraper that is not yours.",
        ),
    ),
    "events_old": Guidance(
        "The exporter responds, but no session has reported anything for an hour.",
        "Either no agent works, or agents work and their telemetry does not arrive.",
        "'Last event age' on the exporter page.",
        (
            "Check whether agents should be at work now. If not, silence this alert at such hours.",
            "Check that the agents call `windowpane.start()` and use the same store as `serve`.",
            "Read the agents' log for lines of the logger `windowpane`.",
        ),
    ),
    "events_dropped": Guidance(
        "Events were produced, and a sink did not accept them.",
        "The record has a gap. The gap itself is recorded, so the audit chain stays valid; metrics may be low.",
        "'Dropped events' by sink and reason on the exporter page.",
        (
            "sink=queue, reason=full: the worker is too slow. Look at the store's write times and the disk.",
            "sink=queue, reason=invalid: an event with a malformed name. The log has the field.",
            "sink=store: events that the store refuses: of a session with another audit key. The log has it.",
            "sink=otlp: the collector does not respond.",
        ),
    ),
    "store_unavailable": Guidance(
        "The store could not be opened or written at the last attempt; it is tried again at least every 30 s.",
        "Events wait in memory. When the process ends first, they are written to a file next to the store, and "
        "the next process that starts with it takes them in. Beyond 100,000 waiting events the newest are lost.",
        "'Queued events' on the exporter page grows; `store_problem` in `/healthz` has the reason.",
        (
            "The disk is full: free space, or `windowpane prune`.",
            "Another process keeps the store locked: end it, or wait for it.",
            "The file cannot be opened: check its folder and permissions with `windowpane doctor`.",
            "The file is damaged: move it away; a new one is created at the next attempt.",
        ),
    ),
    "notifications_failing": Guidance(
        "Messages to a channel fail or are retried, and none was delivered in the same time.",
        "Alerts are raised, but their messages do not arrive through this channel.",
        "'Notifications' by channel and outcome on the exporter page.",
        (
            "Test the channel: `windowpane alerts test URL`.",
            "Renew the token or address in the configuration and restart the process.",
            "Nothing is lost for now: the outbox keeps messages and retries with growing pauses.",
        ),
    ),
}  # fmt: skip
