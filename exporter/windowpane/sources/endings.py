"""How a recorded run ended, in a bounded set of words: a status is the recording's text and may be anything."""

from __future__ import annotations

from typing import Final

FAILURES: Final = frozenset(
    {
        "APIConnectionError", "APIError", "AuthenticationError", "BadGatewayError", "BadRequestError",
        "ContentPolicyViolationError", "ContextWindowExceededError", "Exception", "FormatError",
        "InternalServerError", "JSONDecodeError", "KeyboardInterrupt", "NotFoundError", "PermissionDeniedError",
        "RateLimitError", "RepeatedFormatError", "RuntimeError", "ServiceUnavailableError", "Timeout",
        "TimeoutExpired", "UnprocessableEntityError", "UserInterruption", "ValueError",
        "agent_error", "exit_api", "exit_environment_error", "exit_error", "exit_forfeit", "exit_format",
        "infrastructure_error", "invalid_agent_message", "timeout", "too_many_errors", "unexpected_error",
        "unhandled_exception", "user_error",
    }
)  # fmt: skip
"""Ways to fail that the formats name."""


def ending(status: str, *, finished: frozenset[str]) -> str:
    """*status* where it is one of *finished*, `error: …` for a known failure, else `error: other`."""
    if status in finished:
        return status
    return f"error: {status}" if status in FAILURES else "error: other"
