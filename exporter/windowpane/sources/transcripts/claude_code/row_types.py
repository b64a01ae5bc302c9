"""The types of rows that releases of Claude Code until 2.1.283 write beside the conversation."""

from __future__ import annotations

from typing import Final

BOOKKEEPING: Final = frozenset(
    {
        "agent-color", "agent-name", "agent-setting", "api-request", "api-request-blob", "api-request-shape",
        "artifact-autoreact-ledger", "artifact-comment-monitor", "atis-latch", "attribution-snapshot",
        "bridge-session", "continued-in", "cost-state", "dev-mods", "ended-by-model", "file-history-delta",
        "file-history-snapshot", "frame-link", "history-suppression", "isolation-latch", "last-prompt",
        "marble-origami-snapshot", "memory-mode", "mode", "observer-ref", "permission-mode", "progress",
        "queue-operation", "relocated", "result", "speculation-accept", "started", "tag", "task-summary",
        "telemetry-latch", "worktree-state",
    }
)  # fmt: skip
"""Types of rows that add nothing to a window."""
MAXIMUM_UNKNOWN: Final = 100
"""Unknown types of rows that are reported, each once per file."""
