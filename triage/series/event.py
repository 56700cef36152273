"""What the numeric side reports: one frozen event, ready to be wired into the causal ranking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.model import Scalar
from triage.vocabulary import Level, Noise, Role, Strength


@dataclass(frozen=True, slots=True)
class Kind:
    """The constant part of an event: what it means, in the words of signatures."""

    signature: str
    class_: str
    role: Role
    level: Level
    strength: Strength
    noise: Noise


@dataclass(frozen=True, slots=True)
class SeriesEvent:
    """Something a metric series shows.

    ``line`` is the decisive physical line, ``lines`` up to four that show it (decisive first); ``time`` is epoch
    seconds of the decisive line, ``value``/``baseline``/``sigma`` are in the unit of the metric. ``until_line`` and
    ``until_time`` say where it ended (None: it lasts to the end of the attempt); ``recovered`` is True then.
    ``text`` is one sentence with figures.
    """

    kind: Kind
    metric: str
    file: str
    line: int
    text: str
    lines: tuple[int, ...] = ()
    rank: int | None = None
    host: str | None = None
    time: float | None = None
    step: float | None = None
    value: float | None = None
    baseline: float | None = None
    sigma: float | None = None
    until_line: int | None = None
    until_time: float | None = None
    recovered: bool = False
    fields: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        """Id in the manner of signatures, ``series-...``."""
        return self.kind.signature

    @property
    def class_(self) -> str:
        """The failure class it speaks for."""
        return self.kind.class_

    @property
    def role(self) -> Role:
        """What it may do in an argument about causes."""
        return self.kind.role

    @property
    def level(self) -> Level:
        """How bad it is for the job."""
        return self.kind.level

    @property
    def strength(self) -> Strength:
        """How surely the class shows it."""
        return self.kind.strength

    @property
    def noise(self) -> Noise:
        """How often it shows without the class."""
        return self.kind.noise
