"""The types of events that Copilot's SDK declares."""

from typing import Final

_WITHOUT_CONTENT: Final = (
    "auto_mode_switch.", "capabilities.", "command.", "commands.", "elicitation.", "exit_plan_mode.",
    "external_tool.", "factory.", "hook.", "mcp.", "model.", "pending_messages.", "permission.", "result",
    "sampling.", "skill.invoked", "subagent.", "tool.", "tool_search.", "user_input.",
)  # fmt: skip
"""Starts of the types of events that add nothing to a window; a skill's text comes as a message."""
_KNOWN: Final = frozenset(
    {
        "abort", "assistant.idle", "assistant.intent", "assistant.message", "assistant.message_delta",
        "assistant.message_start", "assistant.reasoning", "assistant.reasoning_delta",
        "assistant.streaming_delta", "assistant.tool_call_delta", "assistant.turn_end", "assistant.turn_start",
        "assistant.usage", "system.message", "system.notification", "user.message",
        "session.autopilot_objective_changed", "session.background_tasks_changed", "session.binary_asset",
        "session.canvas.recorded", "session.compaction_complete", "session.compaction_start",
        "session.context_changed", "session.context_cleared", "session.custom_agents_updated", "session.error",
        "session.extensions_loaded", "session.handoff", "session.idle", "session.info",
        "session.managed_settings_enforced", "session.managed_settings_resolved",
        "session.mcp_server_status_changed", "session.mcp_servers_loaded", "session.mode_changed",
        "session.mode_notice_delivered", "session.model_change", "session.permissions_changed",
        "session.plan_changed", "session.remote_steerable_changed", "session.resume",
        "session.schedule_cancelled", "session.schedule_created", "session.shutdown", "session.skills_loaded",
        "session.snapshot_rewind", "session.start", "session.task_complete", "session.title_changed",
        "session.tools_updated", "session.truncation", "session.usage_checkpoint", "session.usage_info",
        "session.warning", "session.workspace_file_changed",
    }
)  # fmt: skip
"""Types of events of Copilot's SDK."""


def is_known(kind: str) -> bool:
    """Return whether the SDK declares events of this type."""
    return kind in _KNOWN or kind.startswith(_WITHOUT_CONTENT)
