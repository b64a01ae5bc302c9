"""Judges a sample of a process's compressions off the agent's path, with a bounded queue and one thread.

A judgment may take minutes and many model calls. So only a share of the compressions is judged, chosen by their
ids; what exceeds the queue or the allowed calls is dropped and counted; a session that ended before its judgment
is not changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

from windowpane.core.choices import JUDGE_CAPACITY, MAXIMUM_QUESTIONS, MINIMUM_REPLICATES
from windowpane.core.events import FidelityEvaluated
from windowpane.core.protocols import Digester
from windowpane.core.window.blocks import Block
from windowpane.effects.model_calls import MODEL_TIMEOUT_SECONDS, Model, model_name, run_effect
from windowpane.effects.worker import Worker
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.judge import Evaluation, JudgedCompression, judge_compression
from windowpane.fidelity.judge.questions import Question

IDLE_SECONDS: Final = 5.0
"""Time without work after which the thread ends."""

_log = logging.getLogger(__name__)

Deliver = Callable[[FidelityEvaluated], object]


@dataclass(frozen=True, slots=True)
class JudgeSampling:
    """Settings of the sampled judge. Raises `ConfigurationError` for values out of range."""

    rate: float = 0.1
    """Share of the compressions that are judged, 0 to 1."""
    questions: int = MAXIMUM_QUESTIONS
    writes_questions: bool = False
    """Let the judge write the questions; else they are made from facts."""
    capacity: int = JUDGE_CAPACITY
    timeout_seconds: float = MODEL_TIMEOUT_SECONDS
    max_calls: int | None = None
    """Calls of the model, for all sessions together; None for no bound."""
    replicates: int = MINIMUM_REPLICATES
    """Times that each question is asked."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0:
            raise ConfigurationError("rate", f"{self.rate}", expected="0 to 1")
        least = {"questions": 1, "capacity": 1, "max_calls": 1, "replicates": MINIMUM_REPLICATES}
        for name, minimum in least.items():
            count = getattr(self, name)
            if count is not None and count < minimum:
                raise ConfigurationError(name, f"{count}", expected=f">= {minimum}")


class CallsSpentError(Exception):
    """The judge's calls are used up; the model was not called."""


class SampledJudge:
    """A judge for any number of sessions; make one for the process and hand it to their managers."""

    def __init__(self, judge: Model, sample: JudgeSampling | None = None) -> None:
        self.sample = sample or JudgeSampling()
        self.name = model_name(judge)
        self.dropped = 0
        """Chosen compressions that found the queue full, or no calls left."""
        self.calls = 0
        """Model calls so far."""
        self._judge = judge
        self._worker: Worker[Callable[[], object]] = Worker(
            "judge", self._work, capacity=self.sample.capacity, idle_seconds=IDLE_SECONDS, on_drop=self._drop
        )

    def chooses(self, event_id: str) -> bool:
        """Return whether the compression of that event is in the sample; deterministic per id."""
        drawn = blake2b(event_id.encode(), digest_size=8).digest()
        return int.from_bytes(drawn, "big") < self.sample.rate * 2**64

    def submit(self, job: Callable[[], object]) -> bool:
        """Queue *job*; False when the queue is full or the calls are used up. Never blocks."""
        if self._is_spent():
            self._drop("spent", 1)
            return False
        return self._worker.put(job)

    def evaluate(self, compression: JudgedCompression, digest: Digester) -> Evaluation:
        """Judge one compression on this thread."""
        program = judge_compression(
            compression,
            judge_name=self.name,
            digest=digest,
            replicates=self.sample.replicates,
            limit=self.sample.questions,
            write=self.sample.writes_questions,
        )
        return run_effect(program, self._call_model, timeout_seconds=self.sample.timeout_seconds)

    def _is_spent(self) -> bool:
        return self.sample.max_calls is not None and self.calls >= self.sample.max_calls

    def _call_model(self, system: str, user: str) -> Any:
        """Call the model, if that is still allowed; else the judgment ends with that reason."""
        if self._is_spent():
            raise CallsSpentError(f"the {self.sample.max_calls} calls of the judge are used up")
        self.calls += 1
        if self._is_spent():
            _log.warning(
                "the judge has used all %d calls of this process: further compressions are not judged; max_calls "
                "sets how many it has", self.calls,
            )  # fmt: skip
        return self._judge(system, user)

    def _work(self, jobs: Iterable[Callable[[], object]]) -> None:
        for job in jobs:
            job()

    def _drop(self, _reason: str, jobs: int) -> None:
        self.dropped += jobs


class JudgedSession:
    """The compressions of one session, judged one after the other: each is asked earlier questions too."""

    def __init__(self, judge: SampledJudge, digest: Digester, deliver: Deliver = lambda _: None) -> None:
        self._judge = judge
        self._digest = digest
        self._deliver = deliver
        self._carried: tuple[Question, ...] = ()

    def offer(self, event_id: str, removed: Iterable[Block], window: Iterable[Block]) -> None:
        """Queue a compression if it is in the sample; called with the session's lock held. Never raises."""
        try:
            if self._judge.chooses(event_id):
                compression = JudgedCompression(event_id, tuple(removed), tuple(window))
                self._judge.submit(lambda: self._deliver(self.judge(compression).event))
        except Exception:  # noqa: BLE001 (telemetry never harms the agent)
            _log.exception("a compression could not be offered to the judge")

    def judge(self, compression: JudgedCompression) -> Evaluation:
        """Judge one compression on this thread, whether or not it is in the sample.

        None of the same session is judged at the same time.
        """
        judged = self._judge.evaluate(replace(compression, carried=self._carried), self._digest)
        self._carried = (*self._carried, *judged.keyed)[-MAXIMUM_QUESTIONS:]
        return judged
