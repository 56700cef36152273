"""The signature file and code-table schemas (pydantic; also the JSON Schema for editors)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from triage.spans import seconds
from triage.vocabulary import Level, Noise, Origin, Role, Scope, Status, Strength

_OPERATORS = ["eq", "ne", "gt", "gte", "lt", "lte", "contains", "startswith", "endswith", "re", "exists"]


def _where(value: Any) -> Any:
    if isinstance(value, dict):
        for key in value:
            operator = str(key).partition("|")[2]
            if operator and operator not in _OPERATORS:
                raise ValueError(f"unknown operator {operator!r} in {key!r}; one of: {', '.join(_OPERATORS)}")
    return value


Seconds = Annotated[float, BeforeValidator(seconds)]
Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
SignatureRef = Annotated[str, Field(pattern=r"^[a-z0-9-]+(/[A-Za-z0-9_.:-]+)?$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class EdgeModel(_Strict):
    """What this signature explains beyond the edges of its class."""

    class_: str = Field(alias="class")
    strength: Strength = Strength.MODERATE
    lag: tuple[Seconds, Seconds] = (0.0, 3600.0)
    scope: Scope = Scope.JOB


class ExampleModel(_Strict):
    """A line (or a text of several lines) as it stands in a file, prefixes included."""

    line: str | None = None
    text: str | None = None
    fields: dict[str, str | int | float | bool] = {}
    origin: Origin | None = None
    source: str | None = None
    why: str = ""


class NearMissModel(ExampleModel):
    """A line that must not match; ``why`` is required."""

    why: Text


class ExamplesModel(_Strict):
    """Both kinds are required."""

    match: list[ExampleModel] = []
    near_miss: list[NearMissModel] = []


class ConditionModel(_Strict):
    """Counting or order over events of other signatures, words as in Sigma."""

    type: Annotated[str, Field(pattern="^(event_count|value_count|temporal|temporal_ordered)$")]
    signatures: list[SignatureRef]
    group_by: list[str] = []
    timespan: Seconds
    gte: int = 1
    value: str | None = None


class SignatureFile(_Strict):
    """One signature file."""

    id: Id
    title: Text
    class_: str = Field(alias="class", description="a failure class, or 'none' for benign, context and advice lines")
    role: Role
    level: Level
    status: Status = Status.TEST
    sources: list[str] = Field(
        min_length=1, description="origins (kernel, syslog, nccl, training, slurm, ...) or a row source"
    )
    patterns: list[Text] = []
    not_: list[Text] = Field(alias="not", default=[])
    where: Annotated[dict[str, Any], BeforeValidator(_where)] = {}
    condition: ConditionModel | None = None
    key: str | None = Field(default=None, description="the capture that selects the row of the table")
    table: str | None = None
    scope: Scope
    strength: Strength
    noise: Noise
    group: str | None = None
    variant: str | None = None
    recovered_by: list[SignatureRef] = []
    recovery: Seconds = Field(default=60.0, description="a recovery within this span cancels the hit")
    cancels: list[SignatureRef] = []
    overlaps: list[SignatureRef] = []
    explains: list[EdgeModel] = []
    description: str = ""
    proves_not: str = ""
    falsepositives: list[str] = []
    references: list[str] = []
    examples: ExamplesModel = ExamplesModel()


class TableRow(_Strict):
    """One row of a code table; what is absent is taken from the signature."""

    title: Text | None = None
    class_: str | None = Field(alias="class", default=None)
    role: Role | None = None
    level: Level | None = None
    scope: Scope | None = None
    strength: Strength | None = None
    noise: Noise | None = None
    group: str | None = None
    variant: str | None = None
    meaning: str | None = None
    cause: str | None = None
    action: str | None = None
    proves_not: str | None = None
    mnemonic: str | None = None
    also: list[str | int] = []

    def codes(self, first: str) -> Iterator[str]:
        """Yield every code the row stands for."""
        yield first
        yield from map(str, self.also)
