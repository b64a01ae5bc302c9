"""Settings of the judge: which model looks at how many of the compressions, and what it may cost."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from windowpane.config.section import NUMBER, Ratio, Section
from windowpane.fidelity.judge.judge import MINIMUM_REPLICATES
from windowpane.fidelity.judge.questions import MAXIMUM_QUESTIONS
from windowpane.fidelity.judge.sampling import CAPACITY, Sample


class JudgeConfig(Section):
    """A model that judges a sample of the compressions, where one is named."""

    model: str | None = None
    """A callable `(system, user) -> text`, sync or async, as `module:function` or `file.py:function`; it is
    imported when the first manager is made. None asks nobody."""
    sample_rate: Ratio = 0.1
    """Share of the compressions that are judged."""
    max_calls: Annotated[int, NUMBER, Field(ge=1)] | None = None
    """Calls of the model in the life of a process, for all its sessions; None for no bound."""
    questions: Annotated[int, NUMBER, Field(ge=1, le=MAXIMUM_QUESTIONS)] = MAXIMUM_QUESTIONS
    """Asked about one compression, at most."""
    writes_questions: bool = False
    """Whether the model writes the questions; else they are made from facts."""
    replicates: Annotated[int, NUMBER, Field(ge=MINIMUM_REPLICATES)] = MINIMUM_REPLICATES
    """Times each question is asked."""
    capacity: Annotated[int, NUMBER, Field(ge=1, le=1_000)] = CAPACITY
    """Compressions that wait for the judge at most; the others are not judged."""
    timeout_seconds: Annotated[float, NUMBER, Field(gt=0, le=3_600)] = 60.0
    """Of one call."""

    @field_validator("model")
    @classmethod
    def _a_function(cls, given: str | None) -> str | None:
        if given is not None:
            place, colon, function = given.rpartition(":")
            if not (place and colon and function):
                raise ValueError(f"{given!r} names no function; expected module:function or file.py:function")
        return given

    def sample(self) -> Sample:
        """How compressions are sampled and judged."""
        from windowpane.fidelity.judge.judge import JudgeSettings

        return Sample(
            rate=self.sample_rate,
            questions=self.questions,
            writes_questions=self.writes_questions,
            capacity=self.capacity,
            timeout_seconds=self.timeout_seconds,
            max_calls=self.max_calls,
            judging=JudgeSettings(replicates=self.replicates),
        )
