"""What every section of the settings shares: unknown keys are errors, values never change, and their bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Ratio = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Turns = Annotated[int, Field(ge=1)]
Tokens = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A part of the settings: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def is_named(section: BaseModel, key: str) -> bool:
    """Whether the setting under the dotted *key* was given somewhere, be it with its default's value."""
    *above, last = key.split(".")
    for part in above:
        section = getattr(section, part)
    return last in section.model_fields_set
