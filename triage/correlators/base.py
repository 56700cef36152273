"""What a correlator is: events and topology in; links, derived events and suspects out. Correlators never see each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from triage.filescan import FileScan
from triage.model import Event, Evidence, Link, Place
from triage.topology import Topology


@dataclass(frozen=True, slots=True)
class Context:
    """What correlators read. ``events`` are in time order; ``scans`` give rows and coverage, ``texts`` small whole files."""

    events: Sequence[Event]
    topology: Topology
    scans: Sequence[FileScan]
    window: tuple[datetime | None, datetime | None] = (None, None)
    when: Callable[[FileScan, int], datetime | None] = lambda _scan, _line: None
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place that failed first, and on what that rests.

    ``tier`` orders kinds of proof (DESIGN: device fault < local exception < common peer < absent rank or lowest
    sequence number < earliest stamp; lower is better); ``classes`` limits which diagnoses it speaks to (empty: any).
    """

    place: Place
    tier: int
    reason: str
    evidence: tuple[Evidence, ...] = ()
    classes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Correlation:
    """What one correlator found."""

    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    warnings: tuple[str, ...] = ()


DEVICE_FAULT, LOCAL_EXCEPTION, COMMON_PEER, ABSENT_RANK, EARLIEST = range(5)

Correlator = Callable[[Context], Correlation]
"""A module of this package holds one, named ``correlate``."""
