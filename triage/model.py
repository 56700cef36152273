"""The types that the stages hand to each other; frozen, standard library only.

    lines -> Record -> Event -> Link -> Incident -> Diagnosis -> Report

Times are timezone-aware UTC ``datetime`` values or ``None``; spans are seconds (float). Line numbers count ``\\n``
from 1. Field names follow the OpenTelemetry log data model where it has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from triage.vocabulary import Level, Noise, Origin, Role, Scope, Strength, TimeBasis

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class When:
    """A point in time and how far it can be trusted.

    ``at`` is None when nothing dates the line (order only). ``uncertainty_s`` is the half-width of the interval.
    """

    at: datetime | None = None
    uncertainty_s: float = 0.0
    basis: TimeBasis = TimeBasis.NONE


@dataclass(frozen=True, slots=True)
class Place:
    """Where something happened. Every part may be unknown (None); two places are compatible when no known part differs.

    ``rank`` is the global rank of a process of a job; ``gpu`` the device index, ``device`` the name of another device
    (mlx5_0, nvme1, DIMM label); ``pci`` is normalised to ``dddd:bb:dd``; ``path`` a file-system path or mount.
    """

    job: str | None = None
    host: str | None = None
    rank: int | None = None
    gpu: int | None = None
    pci: str | None = None
    device: str | None = None
    kind: str | None = None  # gpu | nic | nvme | dimm | switch
    uuid: str | None = None
    rack: str | None = None
    path: str | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One log message: prefixes peeled, continuation lines joined, or one row of a dump.

    ``line`` is its first physical line, ``end_line`` the last; ``body`` the message without prefixes; ``original`` the
    first physical line as it stands in the file (bytes decoded with replacement).
    """

    path: str
    line: int
    end_line: int
    body: str
    original: str
    origin: Origin
    source: str
    layout: str | None = None
    when: When = field(default_factory=When)
    uptime_s: float | None = None
    host: str | None = None
    program: str | None = None
    pid: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    severity: str | None = None
    attributes: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line a claim rests on."""

    path: str
    line: int
    text: str
    when: When = field(default_factory=When)
    host: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A signature hit, deduplicated over repeats at one place.

    ``first``/``last`` are the times of the first and last hit; ``effective`` is when the thing itself began, which for
    a timeout is earlier than the line by the span it names. ``count`` is exact unless ``count_is_lower_bound``.
    ``order`` orders undated events of one file. ``lines`` holds at most a few hits, first ones first.
    """

    id: str
    signature: str
    title: str
    class_: str
    role: Role
    level: Level
    strength: Strength
    noise: Noise
    scope: Scope
    place: Place
    first: When
    last: When
    effective: When
    count: int
    lines: tuple[Evidence, ...]
    fields: Mapping[str, Scalar] = field(default_factory=dict)
    group: str | None = None
    variant: str | None = None
    count_is_lower_bound: bool = False
    attempt: int | None = None
    order: int = 0
    origin: Origin = Origin.GENERIC
    why: str = ""  # for derived events: the sentence that says how they were derived


@dataclass(frozen=True, slots=True)
class Link:
    """What a correlator says about two events: ``cause`` produced (or names) ``effect``.

    ``weight`` is the chance that the cause produces the effect, 0 to 1; ``reason`` one sentence for the report.
    """

    cause: str
    effect: str
    kind: str
    weight: float
    reason: str
