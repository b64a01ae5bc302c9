"""One managed session without any I/O: what comes in.

Not thread-safe: the manager holds the session's lock around every step. What is known is in `session_state`, the
hooks are in `hooks`, what makes the window smaller is in `reduction`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windowpane.core.events import BudgetBlocked, BudgetWarned, HistoryRepaired
from windowpane.core.vocabulary import COMPONENT_OF, STANDING_TYPES, Component, ContentType
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import INDEXED_TYPES, argument_values
from windowpane.effects.commands import ArchiveOriginals, Effect
from windowpane.manager.budget import Ruling, check_claim
from windowpane.manager.payloads import Payload
from windowpane.manager.pending_calls import stand_for, supersede
from windowpane.manager.plans.placeholders import finding_of
from windowpane.manager.state import OpenCall, SessionState, Stuck
from windowpane.manager.tool_outputs import read_output
from windowpane.models.replies import ReplyPart

__all__ = ["Engine", "OpenCall", "Stuck"]


@dataclass(slots=True)
class Engine(SessionState):
    """The state of one managed session, and how content comes into it."""

    # -- what comes in ----------------------------------------------------------------------------------------

    def add(
        self, content_type: ContentType, said: object, *, pinned: bool = False, tool_name: str | None = None
    ) -> Block:
        """A block of plain text; what is none is written down as text: lost content would harm the agent more."""
        if self.opening and content_type not in STANDING_TYPES:
            self.open()
        text = said if isinstance(said, str) else "" if said is None else str(said)
        source = self.counter.source
        tokens = self.counter.count(text)
        self._watch(COMPONENT_OF[content_type], tokens)
        block = self.tracker.add(
            content_type, text, tokens, count_source=source, pinned=pinned, tool_name=tool_name
        )
        self._index(block)
        return block

    def add_user(self, parts: Sequence[Mapping[str, Any]], *, pinned: bool = False) -> None:
        """A real user message as its parts, images too; the first one states the task where none was given."""
        self.breaker.reset()
        self.fruitless_used = None
        joined = False
        self.open()
        for part in parts:
            if part.get("type") in ("text", "input_text"):
                block = self.add("user_message", str(part.get("text", "")), pinned=pinned)
                if self.goal_block is None:
                    self.goal_block = block.id
                    self.goal = self.goal or block.text or ""
            else:
                block = self.tracker.add("media", None, self.settings.image_tokens, pinned=pinned)
                self.payloads[block.id] = Payload(raw=part, joined=joined)
            if joined:
                self.payloads.setdefault(block.id, Payload(joined=True))
            joined = True

    def open(self) -> None:
        """Put in what a resumed window begins with, behind system prompt and tools."""
        text, self.opening = self.opening, ""
        if text:
            self.add("summary", text)

    def add_reply(self, parts: Sequence[ReplyPart]) -> None:
        """A model's reply; calls of earlier replies that never got a result are dead from here on."""
        if parts:
            self.open_calls.clear()
            self.answered.clear()
        for part in parts:
            self._add_part(part)

    def add_tools(self, tools: str | Iterable[Mapping[str, Any]]) -> None:
        """Tool definitions as they are sent with each call."""
        if isinstance(tools, str):
            self.add("tool_definition", tools)
            return
        for tool in tools:
            named = tool.get("function") or tool
            self.add("tool_definition", json.dumps(tool, ensure_ascii=False), tool_name=named.get("name"))

    def _add_part(self, part: ReplyPart) -> None:
        if part.kind == "tool_call":
            self._add_call(part)
            return
        source = self.counter.source
        block = self.tracker.add(part.kind, part.text, self.counter.count(part.text), count_source=source)
        self._refer(block)
        if part.raw is not None:
            self.payloads[block.id] = Payload(raw=part.raw)

    def _add_call(self, part: ReplyPart) -> None:
        call_id = part.tool_call_id or f"call-{self.tracker.turn}-{len(self.open_calls)}"
        name = part.tool_name or "tool"
        source = self.counter.source
        block = self.tracker.add(
            "tool_call",
            part.text,
            self.counter.count(part.text) + self.counter.count(name),
            count_source=source,
            digest=self.digest(f"{name}\0{part.text}"),
            tool_call_id=call_id,
            tool_name=name,
        )
        self._refer(block)
        self.open_calls[call_id] = OpenCall(block.group, name)

    def tool_result(
        self,
        name: str,
        output: object,
        tool_call_id: str | None,
        *,
        interim: bool = False,
        is_error: bool = False,
    ) -> Effect[None]:
        """A tool's output; of one too large the head and tail stay and the whole goes to the archive.

        An *interim* one stands for the result of a call that goes on, until that comes.
        """
        name, read = str(name or ""), read_output(output)
        text, flat = read.text, len(read.media) * self.settings.image_tokens
        source, tokens = self.counter.source, self.counter.count(text)
        finding = finding_of(text)
        handle = None
        cap = self._result_cap(tokens)
        if tokens > cap:
            if self.settings.archive:
                handle = self.next_handle()
                answer = yield ArchiveOriginals(((handle, text),))
                handle = None if answer.failed else handle
            text = self.settings.shorten(text, cap, self.counter, handle or "")
            tokens = self.counter.count(text)
        call_id = self._match(name, tool_call_id)
        if call_id is not None and interim:
            self.held[call_id] = self.held.get(call_id) or self.open_calls[call_id]
            self.open_calls.pop(call_id, None)
            stand_for(self, call_id, text)
            return
        if call_id in self.answered:
            self.tracker.record(HistoryRepaired("duplicate_result", 1))
            return
        tokens += flat
        self._watch("tool_results", tokens)
        if call_id is None:
            self.tracker.record(HistoryRepaired("unmatched_result", 1))
        else:
            supersede(self, call_id)
            call = self.held.pop(call_id, None) or self.open_calls.pop(call_id, None)
            self.answered.add(call_id)
            name = name or (call.name if call else "")
        block = self.tracker.add(
            "tool_result",
            text,
            tokens,
            count_source=source,
            digest=self.digest(f"{text}\0{json.dumps(read.media, default=str)}") if read.media else "",
            tool_call_id=call_id,
            tool_name=name,
            handle=handle,
        )
        self._index(block)
        is_error = is_error or read.is_error
        if finding or read.media or is_error:
            self.payloads[block.id] = Payload(finding=finding, media=read.media, is_error=is_error)

    def reindex(self) -> None:
        """Track references to the blocks of a new window."""
        self.references.clear()
        for block in self.tracker.window:
            self._index(block)

    def _index(self, block: Block) -> None:
        """What later content may refer to is known by its rare identifiers."""
        if self.settings.references and block.text and block.content_type in INDEXED_TYPES:
            self.references.add(block.id, block.text)

    def _refer(self, block: Block) -> None:
        """What a reply mentions is still in use."""
        if self.settings.references and block.text:
            said = argument_values(block.text) if block.content_type == "tool_call" else block.text
            self.tracker.mark_referenced(self.references.mentioned(said, turn=block.turn), block.id)

    def _match(self, name: str, call_id: str | None) -> str | None:
        """The call a result answers: the one named, else the first open one of that tool, else the only one."""
        if call_id is not None and (
            call_id in self.open_calls or call_id in self.held or call_id in self.answered
        ):
            return call_id
        if call_id is None:
            named = [known for known, call in self.open_calls.items() if call.name == name]
            if named:
                return named[0]
            if len(self.open_calls) == 1:
                return next(iter(self.open_calls))
        return None

    def _result_cap(self, tokens: int) -> int:
        """At most this many tokens of one result; reports a component budget that would be passed."""
        if self.limits is None or self.budget is None:
            return self.settings.result_tokens
        cap = min(self.settings.result_tokens, int(self.settings.result_ratio * self.limits.usable_tokens))
        if self.settings.enforce == "component":
            ruling = self.budget.ask("tool_results", tokens, self.tracker.window.tokens_by_component)
            if ruling.outcome == "blocked" and ruling.budget_tokens is not None:
                self.tracker.record(
                    BudgetBlocked("tool_results", tokens, ruling.used_tokens, ruling.budget_tokens, "truncated")
                )
                cap = min(cap, max(ruling.remaining_tokens or 0, ruling.budget_tokens // 10))
        return cap

    def can_add(self, component: Component, tokens: int) -> Ruling:
        """Whether *tokens* more of a component fit; reports what is blocked, and limits that would be passed."""
        check_claim(component, tokens)
        used = self.tracker.window.tokens_by_component
        if self.budget is None or self.limits is None:
            return Ruling("allowed", component, used[component], None)
        ruling = self.budget.ask(component, tokens, used)
        room = self.limits.overflow_tokens - self.used() - sum(self.budget.reserved.values())
        if tokens > room:
            ceiling = self.limits.overflow_tokens
            ruling = Ruling("blocked", component, ceiling - room, ceiling, "make room in the window first")
        elif ruling.outcome == "blocked" and self.settings.enforce == "global":
            ruling = replace(ruling, outcome="warned")
        self._watch(component, tokens)
        if ruling.outcome == "blocked" and ruling.budget_tokens is not None:
            self.tracker.record(
                BudgetBlocked(component, tokens, ruling.used_tokens, ruling.budget_tokens, ruling.action)
            )
        return ruling

    def _watch(self, component: Component, tokens: int) -> None:
        """Warn once when a component passes its soft limit, and once more when it passes its budget."""
        if self.budget is None:
            return
        ruling = self.budget.ask(component, tokens, self.tracker.window.tokens_by_component)
        level = {"allowed": 0, "warned": 1, "blocked": 2}[ruling.outcome]
        if level > self._alarms.get(component, 0) and ruling.budget_tokens is not None:
            self.tracker.record(BudgetWarned(component, ruling.used_tokens + tokens, ruling.budget_tokens))
        self._alarms[component] = level
