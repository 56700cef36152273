"""The schema of a playbook's front matter (pydantic; also the JSON Schema for editors)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from triage.schemas.signature import Seconds, Text
from triage.vocabulary import Owner, Restart, Scope, Strength

VariantName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class ExplainsModel(_Strict):
    """An edge of the causal graph: this class, once present, produces events of ``class``. No defaults."""

    class_: str = Field(alias="class")
    strength: Strength
    lag: tuple[Seconds, Seconds] = Field(description="from cause to effect, earliest and latest, for example [0s, 45m]")
    scope: Scope

    @field_validator("lag")
    @classmethod
    def _forwards(cls, lag: tuple[float, float]) -> tuple[float, float]:
        if not 0 <= lag[0] <= lag[1]:
            raise ValueError("a lag runs from cause to effect: 0s or later, earliest first")
        return lag


class VariantModel(_Strict):
    """A sub-kind of the class: chooses the paragraphs ``## Fix: <variant>`` and changes the title."""

    title: Text
    note: Text


class MissingModel(_Strict):
    """Evidence that would decide, and how to get it."""

    what: Text
    source: Text
    command: Text | None = None
    why: Text


class PlaybookFile(_Strict):
    """Front matter of ``playbooks/<class>.md``."""

    class_: str = Field(alias="class", description="= file stem; a failure class")
    title: Text
    title_zh: Text | None = None
    definition: Text
    owner: Owner
    prior: float = Field(gt=0, le=100, description="relative weight per 100 interruptions with this root cause")
    prior_origin: Text
    recovery_min: float = Field(gt=0, description="mean minutes to recover")
    restart: Restart
    exclude_host: bool
    suspect_checkpoints: bool
    explains: list[ExplainsModel]
    variants: dict[VariantName, VariantModel] = {}
    summary: Text
    missing: list[MissingModel] = Field(min_length=1)
