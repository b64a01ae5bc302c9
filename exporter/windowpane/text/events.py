"""One plain sentence for every event.

Sentences have no markup. They quote names and reasons as recorded, so the caller escapes them for its medium.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from windowpane.core import events as e
from windowpane.core.vocabulary import REWOUND, RULE_FATES, UNKNOWN_CAUSE, ContentType
from windowpane.text.formats import (
    count,
    decimal,
    dollars,
    percent,
    ratio,
    seconds,
    size,
    stated_totals,
    tokens,
)
from windowpane.text.labels import (
    CACHE_BREAK_LABELS,
    CONTENT_LABELS,
    COUNT_SOURCE_LABELS,
    LIMIT_SOURCE_LABELS,
    MISSTEP_LABELS,
    RULE_FATE_LABELS,
    content_name,
)
from windowpane.text.losses import facts_text, soundness_text
from windowpane.text.quota import used_windows
from windowpane.text.zones import zone_label

NOTE_CHARACTERS: Final = 160


def describe_event(event: e.Event) -> str:
    """Return one sentence that describes *event*."""
    return _SENTENCES[event.type](event.data)


def describe_damage(problem: object) -> str:
    """Return the sentence for an event whose stored bytes cannot be read."""
    return f"This event cannot be read: {problem}."


def content_counts(kinds: Iterable[ContentType]) -> str:
    """Return the number of blocks by type: `12 tool results and 2 thinking blocks`."""
    parts = []
    for kind, number in Counter(kinds).most_common():
        label = CONTENT_LABELS[kind]
        plural = {"assistant reply": "assistant replies", "summary": "summaries"}.get(label, f"{label}s")
        if kind in ("thinking", "media", "memory_injection", "unattributed"):
            label, plural = f"{label} block", f"{label} blocks"
        parts.append(count(number, label, plural))
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else "".join(parts)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _start(text: str) -> str:
    """Return the start of a reader's text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= NOTE_CHARACTERS else f"{line[: NOTE_CHARACTERS - 1]}…"


def _session_started(data: e.SessionStarted) -> str:
    if data.limit_tokens is None:
        return "Session started; its limit is unknown."
    origin = f" ({LIMIT_SOURCE_LABELS[data.limit_source]})" if data.limit_source else ""
    return f"Session started with a window of {tokens(data.limit_tokens)} tokens{origin}."


def _session_ended(data: e.SessionEnded) -> str:
    if data.report is None:
        return f"Session ended: {data.reason}."
    report = data.report
    peak = "" if report.peak_utilization is None else f" ({percent(report.peak_utilization)} full)"
    return (
        f"Session ended: {data.reason}. {count(report.turns, 'turn')}, "
        f"peak {tokens(report.peak_used_tokens)} tokens{peak}."
    )


def _session_described(data: e.SessionDescribed) -> str:
    values = {
        "title": data.title and f"“{data.title}”",
        "folder" if data.folder else "repository": data.folder or data.repository,
        "branch": data.branch,
        "label": data.label,
        "agent version": data.agent_version,
        "project": data.project,
    }
    text = (
        ", ".join(f"{name} {value}" for name, value in values.items() if value) or "no description of the session"
    )
    return f"{text[:1].upper()}{text[1:]}."


def _history_rewound(data: e.HistoryRewound) -> str:
    point = "the start" if data.last_kept is None else data.last_kept
    return (
        f"Went back to {point}: a branch of {count(data.turns, 'turn')} with {tokens(data.tokens)} tokens "
        f"in {count(data.blocks, 'item')} was abandoned."
    )


def _turn_ended(data: e.TurnEnded) -> str:
    start = data.recorded_output_tokens
    cost = "" if data.cost_dollars is None else f" for {dollars(data.cost_dollars, estimated=start is not None)}"
    if data.usage is None:
        text = f"Model call{cost} without a usage report; tokens {COUNT_SOURCE_LABELS[data.count_source]}"
    else:
        usage = data.usage
        text = f"Model call{cost}: {tokens(usage.input_total)} tokens in, "
        text += f"{tokens(usage.output_tokens, estimated=start is not None)} out"
        if start is not None:
            text += f" (only the start, {count(start, 'token')}, is recorded)"
        if usage.cache_read_tokens:
            text += f", {tokens(usage.cache_read_tokens)} of the input from the cache"
    if data.latency_seconds is not None:
        text += f", {seconds(data.latency_seconds)}"
    return text + "."


def _block_added(data: e.BlockAdded) -> str:
    block = data.block
    tool = f" of {block.tool_name}" if block.tool_name else ""
    size = tokens(block.tokens, estimated=block.count_source == "estimate")
    stead = " in place of other content" if block.replaces else ""
    return f"{CONTENT_LABELS[block.content_type].capitalize()}{tool} added ({size} tokens){stead}."


def _blocks_evicted(data: e.BlocksEvicted) -> str:
    if data.policy == UNKNOWN_CAUSE:
        return f"Removed, cause unknown: the provider's total fell by {tokens(data.tokens_removed)} tokens."
    if data.policy == REWOUND:
        what = content_counts(block.content_type for block in data.blocks) or "nothing"
        return f"Removed with the abandoned branch: {what} ({tokens(data.tokens_removed)} tokens)."
    blocks = data.blocks
    nothing = "content" if data.tokens_removed else "nothing"
    what = content_counts(block.content_type for block in blocks) or nothing
    turns = sorted({block.turn_added for block in blocks if block.turn_added is not None})
    where = ""
    if turns:
        where = f" from turn {turns[0]}" if len(turns) == 1 else f" from turns {turns[0]} to {turns[-1]}"
    reasons = Counter(block.reason for block in blocks if block.reason)
    why = _because(reasons.most_common(1)[0][0] if reasons else "")
    text = f"Removed {what}{where} ({tokens(data.tokens_removed)} tokens){why}."
    if data.tokens_freed != data.tokens_removed:
        text += f" {tokens(data.tokens_freed)} tokens freed net of placeholders."
    if data.shortfall_tokens:
        text += f" {tokens(data.shortfall_tokens)} tokens short of the target."
    return text


def _content_compressed(data: e.ContentCompressed) -> str:
    name = _spaced(data.strategy).capitalize()
    if data.outcome != "accepted":
        return f"{name} {data.outcome}{_because(data.reason)}."
    subject = "the window" if data.scope == "window" else "content"
    method = _METHODS.get(data.method, f", by {data.method}")
    return (
        f"{name}{_reason(data.trigger)}: {subject} of {tokens(data.tokens_before)} tokens "
        f"became {tokens(data.tokens_after)}{method}."
    )


_METHODS: Final = {
    "": "",
    "agent": "",
    "extractive": ", without a model",
    "middle_out": ", cut in the middle",
}
_REASONS: Final = {
    "auto": "by the agent itself",
    "manual": "by command",
    "pressure": "because the window had filled",
    "overflow": "because the window was too full",
    "roll": "for a new window",
    "reduction": "after content was removed",
    "budget": "to keep a budget",
    "age": "of old content",
    "unknown": "",
}


def _reason(trigger: str) -> str:
    """Return what started a reduction: ` because the window had filled`."""
    reason = _REASONS.get(trigger, f"({_spaced(trigger)})")
    return reason and f" {reason}"


def _compaction_measured(data: e.CompactionMeasured) -> str:
    stated = ", as the agent states it," if data.source_before == "reported" else ""
    before, after = tokens(data.tokens_before), tokens(data.tokens_after)
    return f"The compaction took the window from {before} tokens{stated} to {after}."


def _fidelity_evaluated(data: e.FidelityEvaluated) -> str:
    if not data.facts_total:
        return f"Which facts were kept is unknown{_because(data.reason)}."
    spread = "" if data.spread is None else f" ±{ratio(data.spread / 2)}"
    score = "" if data.method == "probe" or data.score is None else f"Score {ratio(data.score)}{spread}: "
    sound = soundness_text(data)
    judge = ", judged by a model" if data.method == "judge" else ""
    return f"{score}{facts_text(data)}{judge}. {sound[0].upper()}{sound[1:]}."


def _rules_followed(data: e.RulesFollowed) -> str:
    if data.reason == e.NO_RULES:
        return "No rules were recognized in the content before the compaction."
    if data.survival is None:
        return f"Rules after the compaction unknown{_because(data.reason)}."
    fates = [f"{number} {RULE_FATE_LABELS[fate]}" for fate in RULE_FATES if (number := data.count(fate))]
    visible = data.count("kept", "reworded", "restored")
    return f"{visible} of {count(data.count(), 'rule')} visible after the compaction: {', '.join(fates)}."


def _overflow_detected(data: e.OverflowDetected) -> str:
    seen = "the provider refused the call" if data.where == "provider" else "detected before the call"
    limit = "" if data.limit_tokens is None else f" of {tokens(data.limit_tokens)}"
    return f"Overflow: {tokens(data.used_tokens)}{limit} tokens, {seen}; {data.outcome}."


def _limit_changed(data: e.LimitChanged) -> str:
    if data.limit_tokens is None:
        return "The limit of the window is no longer known."
    before = "" if data.previous_tokens is None else f" (was {tokens(data.previous_tokens)})"
    origin = f", {LIMIT_SOURCE_LABELS[data.limit_source]}" if data.limit_source else ""
    return f"The window is {tokens(data.limit_tokens)} tokens{before}{origin}."


_MOMENTS: Final = {
    "before": "before the call",
    "after": "after the reduction",
    "final": "in the call",
    "next": "after the reply",
}


def _pressure_measured(data: e.PressureMeasured) -> str:
    size = tokens(data.used_tokens, estimated=data.count_source == "estimate")
    moment = _MOMENTS[data.phase]
    if data.limit_tokens is None:
        return f"The window {moment}: {size} tokens of an unknown limit."
    return (
        f"The window {moment}: {size} of {tokens(data.limit_tokens)} tokens, "
        f"{percent(data.utilization)} full, {zone_label(data.zone)}."
    )


def regretted_name(data: e.ContentRegretted) -> str:
    """Return the removed content by its file or command; its id where an earlier release recorded no more."""
    if data.content_type is None:
        return data.block_id
    return content_name(data.content_type, data.tool_name, data.target)


def _content_regretted(data: e.ContentRegretted) -> str:
    how = {
        "same_call": "fetched with the same call",
        "same_digest": "added unchanged",
        "identifier": "referenced by name",
    }[data.match]
    cause = "Removed" if data.cause == "eviction" else "Compacted"
    what = f"{regretted_name(data)} was {how} ({tokens(data.tokens)} tokens)"
    return f"Needed again: {what}. {cause} in turn {data.turn_left}."


def _alert_fired(data: e.AlertFired) -> str:
    text = data.summary or f"value {decimal(data.value)}, threshold {decimal(data.threshold)}"
    subject = f": {data.subject}" if data.subject else ""
    return f"Alert {_spaced(data.alert)} ({data.severity}) since turn {data.crossing_turn}: {text}{subject}"


def _alert_resolved(data: e.AlertResolved) -> str:
    return f"Alert {_spaced(data.alert)} ({data.severity}) resolved; fired in turn {data.fired_turn}."


def _checkpoint_rejected(data: e.CheckpointRejected) -> str:
    version = "" if data.version is None else f" {data.version}"
    return f"Checkpoint{version} rejected{_because(data.reason)}."


def _checkpoint_loaded(data: e.CheckpointLoaded) -> str:
    drift = f"; {count(data.drift, 'fact')} about the environment changed" if data.drift else ""
    age = "" if data.age_seconds is None else f", {seconds(data.age_seconds)} old"
    return f"Resumed from the saved state (checkpoint {data.version}){age}{drift}."


def _notification_delivered(data: e.NotificationDelivered) -> str:
    return f"Message about {_spaced(data.alert)} ({data.state}) delivered by {data.channel}."


def _notification_failed(data: e.NotificationFailed) -> str:
    return (
        f"Message about {_spaced(data.alert)} ({data.state}) refused by {data.channel} "
        f"after {count(data.attempts, 'attempt')}{_because(data.reason)}."
    )


def _line(line: int | None) -> str:
    return "" if line is None else f" at line {line}"


def _cache_broken(data: e.CacheBroken) -> str:
    cause = CACHE_BREAK_LABELS[data.cause]
    if data.cause == "expired" and data.idle_seconds is not None:
        cause += f" after {seconds(data.idle_seconds)}"
        if data.lifetime_seconds is not None:
            cause += f" (it lives for {seconds(data.lifetime_seconds)})"
    elif data.block_id is not None:
        cause += f", first {data.block_id}"
    extra = "" if data.dollars is None else f" for {dollars(data.dollars)} more"
    share = f"{tokens(data.rewritten_tokens)} of {tokens(data.cached_tokens)} cached tokens"
    return f"Cache break: {share} were sent as new input{extra}: {cause}."


_SENTENCES: Final[dict[str, Callable[[Any], str]]] = {
    "session.started": _session_started,
    "session.described": _session_described,
    "session.ended": _session_ended,
    "turn.started": lambda _: "Turn started.",
    "turn.ended": _turn_ended,
    "block.added": _block_added,
    "blocks.referenced": lambda data: f"The reply mentions {count(len(data.block_ids), 'earlier item')}.",
    "blocks.evicted": _blocks_evicted,
    "history.rewound": _history_rewound,
    "reply.discarded": lambda data: (
        f"Not sent back: {count(len(data.block_ids), 'item')} of the reply ({tokens(data.tokens)} tokens)."
    ),
    "static_content.removed": lambda data: (
        f"No longer sent: {count(len(data.block_ids), 'system prompt or tool definition')}"
        f" ({tokens(data.tokens)} tokens)."
    ),
    "content.compressed": _content_compressed,
    "compaction.measured": _compaction_measured,
    "fidelity.evaluated": _fidelity_evaluated,
    "rules.followed": _rules_followed,
    "budget.warned": lambda data: (
        f"Budget of {_spaced(data.component)} nearly used: {tokens(data.used_tokens)} "
        f"of {tokens(data.budget_tokens)} tokens."
    ),
    "budget.blocked": lambda data: (
        f"Budget of {_spaced(data.component)} would be exceeded by {tokens(data.requested_tokens)} tokens "
        f"({tokens(data.used_tokens)} of {tokens(data.budget_tokens)} used); {_spaced(data.action)}."
    ),
    "quota.measured": lambda data: f"Quota of the plan: {used_windows(data)}.",
    "note.written": lambda data: f"Note written ({data.category}, {tokens(data.tokens)} tokens).",
    "note.added": lambda data: f"{data.kind.capitalize()} of a reader{_because(_start(data.note))}",
    "note.deleted": lambda _data: "A reader deleted a note.",
    "session.titled": lambda data: f"A reader gave the title {data.title}.",
    "session.identified": lambda data: (
        f"Recognized as session {data.same_as}, by "
        f"{'a call that is in both' if data.by == 'call' else 'the id that the agent gives it'}; that one counts."
    ),
    "calls.copied": lambda data: (
        f"Turns {data.first_turn} to {data.last_turn} are a copy of session {data.of}, which counts their calls."
    ),
    "session.continued": lambda data: (
        f"Run {data.number} of the session continues it: its turn {max(data.from_turn, 1)} is turn "
        f"{max(data.from_turn, 1) + data.turns}"
        f"{', at the same time as another run' if data.interleaved else '; content of the last run was removed'}."
    ),
    "session.rederived": lambda data: (
        f"From here on release {data.release} derives the events"
        f"{f', before it {data.earlier_release} did' if data.earlier_release else ''}; the recording is the same."
    ),
    "subagent.delegated": lambda data: f"Delegated to session {data.child_session_id}.",
    "subagent.returned": lambda data: (
        f"Session {data.child_session_id} returned {tokens(data.result_tokens)} tokens ({data.outcome})."
    ),
    "checkpoint.saved": lambda data: (
        f"State saved (checkpoint {data.version}){_reason(data.trigger)}, {size(data.size_bytes)}."
    ),
    "checkpoint.loaded": _checkpoint_loaded,
    "checkpoint.rejected": _checkpoint_rejected,
    "window.rolled": lambda data: (
        f"Continued in window {data.to_window} ({data.reason}); window {data.from_window} "
        f"held {tokens(data.tokens_before)} tokens."
    ),
    "overflow.detected": _overflow_detected,
    "history.repaired": lambda data: f"History repaired: {_spaced(data.repair)}, {count(data.count, 'time')}.",
    "usage.rejected": lambda data: (
        f"Usage report of {tokens(data.reported_tokens)} tokens rejected: {data.rule}."
    ),
    "limit.changed": _limit_changed,
    "totals.stated": lambda data: (
        f"{stated_totals(data.input_tokens, data.output_tokens, data.cost_dollars).capitalize()}."
    ),
    "breaker.opened": lambda data: (
        f"Circuit breaker opened after {count(data.attempts, 'attempt')}{_because(data.reason)}."
    ),
    "change.unidentified": lambda data: (
        f"The provider's count moved by {data.tokens:+,} tokens more than the recorded changes explain."
    ),
    "session.incomplete": lambda data: (
        f"The recording is incomplete{_line(data.line)}{_because(data.reason)}. Everything before is complete."
    ),
    "telemetry.dropped": lambda data: (
        f"Dropped {count(data.last_n - data.first_n + 1, 'event')}{_because(_spaced(data.reason))}."
    ),
    "pressure.measured": _pressure_measured,
    "zone.changed": lambda data: (
        f"Zone {zone_label(data.from_zone)} to {zone_label(data.to_zone)}: {percent(data.utilization)} full."
    ),
    "velocity.spiked": lambda data: (
        f"Sudden growth: {tokens(data.added_tokens)} tokens added, {tokens(data.baseline_tokens)} are usual."
    ),
    "cache.broken": _cache_broken,
    "content.regretted": _content_regretted,
    "misstep.observed": lambda data: f"{MISSTEP_LABELS[data.misstep].capitalize()} of turn {data.call_turn}.",
    "alert.fired": _alert_fired,
    "alert.resolved": _alert_resolved,
    "notification.delivered": _notification_delivered,
    "notification.failed": _notification_failed,
}
