"""What a source is: how lines of one kind are recognised, peeled and turned into records.

Two kinds of source exist and both are found by :mod:`triage.registry` (drop a module into this package, nothing else):

* a *line source* lists :class:`Layout` objects: one regular expression per line prefix;
* a *row source* reads a whole file (crontab, ``df``, ``nvidia-smi -q``) or, when it has ``triggers``, the lines around
  a trigger (a traceback, a torchrun summary) into :class:`Row` objects with named fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from triage.model import Scalar
from triage.vocabulary import Origin


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as a line writes it, before any inference.

    ``wall`` is naive wall-clock time; its year is 1900 when ``has_year`` is False, its date 1900-01-01 when
    ``has_date`` is False. ``offset_s`` is the zone as seconds east of UTC, None when the line gives none. ``step_s``
    is the resolution of the layout in seconds.
    """

    wall: datetime
    has_year: bool = True
    has_date: bool = True
    offset_s: int | None = None
    step_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Layout:
    """One line prefix.

    ``pattern`` matches at the start of what is left of the line; its named groups may be ``stamp`` (parsed by the
    function that ``stamp`` names in :mod:`triage.stamps`), ``uptime``, ``host``, ``program``, ``pid``, ``tid``,
    ``rank``, ``local_rank``, ``task``, ``gpu``, ``severity``. The message starts where the match ends, or at the group
    ``body``. A ``wrapper`` (shipper time, ``srun -l`` label, ``[default0]:``) is peeled and the rest is tried again.
    ``origin`` None means: decided by the program (``kernel`` -> kernel, ``CRON`` -> cron ...).
    ``examples`` are (line, expected fields) pairs and are run as tests.
    """

    id: str
    pattern: str
    stamp: str | None = None
    origin: Origin | None = None
    wrapper: bool = False
    examples: tuple[tuple[str, Mapping[str, Scalar]], ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the prefixes of one physical line told. ``body`` is the message after peeling."""

    layout: str | None
    source: str
    origin: Origin
    body: str
    stamp: Stamp | None = None
    uptime_s: float | None = None
    host: str | None = None
    program: str | None = None
    pid: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    gpu: int | None = None
    severity: str | None = None
    attributes: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a dump or one joined multi-line record.

    ``line`` is the physical line (1-based, relative to the text handed in) that carries the decisive words,
    ``end_line`` the last line of the row.
    """

    kind: str
    line: int
    end_line: int
    fields: Mapping[str, Scalar]
    text: str


@runtime_checkable
class LineSource(Protocol):
    """A kind of log whose lines carry a known prefix."""

    name: str
    layouts: Sequence[Layout]


@runtime_checkable
class RowSource(Protocol):
    """A kind of file, or of multi-line record, that is read into rows.

    ``triggers`` empty: the source reads whole files for which ``sniff`` is true. Else ``rows`` gets the lines around a
    trigger hit (wrappers peeled) and ``sniff`` is not asked. ``rows`` never raises on bad input; it yields what it can.
    """

    name: str
    origin: Origin
    triggers: Sequence[str]

    def sniff(self, path: str, head: str) -> bool:
        """Say whether a file with this path (posix, relative to the bundle) and these first 64 KiB is of this kind."""
        ...

    def rows(self, lines: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of ``lines`` (no line ends)."""
        ...
