"""What every section of the settings shares: unknown keys are errors, values never change, and their bounds."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _no_truth(given: object) -> object:
    if isinstance(given, bool):
        raise ValueError(f"{str(given).lower()} is no number")  # noqa: TRY004 (Pydantic reports only ValueErrors)
    return given


NUMBER: Final = BeforeValidator(_no_truth)
"""YAML reads `yes` and `on` as true, which would count as 1."""
Ratio = Annotated[float, NUMBER, Field(ge=0, le=1)]
Share = Annotated[float, NUMBER, Field(gt=0, le=1)]
Turns = Annotated[int, NUMBER, Field(ge=1)]
Tokens = Annotated[int, NUMBER, Field(ge=1)]


class Section(BaseModel):
    """A part of the settings: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _empty(cls, given: object) -> object:
        """A section of which every line is commented out says nothing."""
        return {} if given is None else given


def is_named(section: BaseModel, key: str) -> bool:
    """Whether the setting under the dotted *key* was given somewhere, be it with its default's value."""
    *above, last = key.split(".")
    for part in above:
        section = getattr(section, part)
    return last in section.model_fields_set
