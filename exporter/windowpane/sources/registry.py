"""The readers of this release."""

from __future__ import annotations

from windowpane.sources.base import Reader
from windowpane.sources.claude_code.reader import ClaudeCodeReader
from windowpane.sources.codex.reader import CodexReader
from windowpane.sources.mini_swe_agent import MiniSweAgentReader
from windowpane.sources.openai_chat import OpenAIChatReader, TauBenchReader
from windowpane.sources.pi import PiReader
from windowpane.sources.swe_agent import SweAgentReader
from windowpane.sources.tau2 import Tau2Reader


def all_readers(*, complete: bool | None = None) -> tuple[Reader, ...]:
    """One reader a format, the most particular first.

    *complete* says whether files are finished; None: those not written to for two minutes are. What a file that
    is still growing leaves open is held back.
    """
    return (
        PiReader(complete=complete),
        CodexReader(complete=complete),
        ClaudeCodeReader(complete=complete),
        MiniSweAgentReader(),
        SweAgentReader(),
        Tau2Reader(),
        TauBenchReader(),
        OpenAIChatReader(),
    )
