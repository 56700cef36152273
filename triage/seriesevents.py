"""Metric lines of all files -> series -> events, dated and placed like any signature hit."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from triage.clock import Clock
from triage.filescan import FileScan
from triage.model import Event, Evidence, Place, When
from triage.topology import Topology
from triage.vocabulary import Origin, Scope, TimeBasis

if TYPE_CHECKING:
    from triage.series import SeriesEvent


class Numbers(NamedTuple):
    """What the metric lines say: events, and by file the lines at which the step counter goes back."""

    events: list[Event]
    restarts: Mapping[str, Sequence[int]]


def series_events(scans: Sequence[FileScan], where: Topology, clock: Clock) -> Numbers:
    """Return what the numbers say: NaN, spikes, level shifts, drifts, silence; and new attempts."""
    if not any(scan.metrics for scan in scans):
        return Numbers([], {})
    from triage import series
    from triage.metrics import parse

    lines: list[tuple[str, int, str, float | None]] = []
    for scan in scans:
        date = _dates(scan, where, clock)
        lines.extend((scan.path, number, text, date(number)) for number, text in scan.metrics)
    texts = {(path, number): text for path, number, text, _ in lines}
    points = parse(lines)
    events = [_event(number, found, texts, where) for number, found in enumerate(series.detect(points))]
    return Numbers(events, series.restarts(points))


def _dates(scan: FileScan, where: Topology, clock: Clock) -> Callable[[int], float | None]:
    """Return line number -> epoch seconds, straight between the stamped lines of a file; None where none is stamped."""
    host = where.files[scan.path].host
    stamped = scan.anchors or [s for s in scan.samples if s[1].stamp is not None]
    dated = [
        (n, at.timestamp()) for n, parsed in stamped if (at := clock.when(scan.path, host, parsed, n).at) is not None
    ]
    numbers = [n for n, _ in dated]

    def date(line: int) -> float | None:
        if not dated:
            return None
        at = bisect_right(numbers, line)
        if at == 0 or at == len(dated):
            return dated[min(at, len(dated) - 1)][1]
        (n0, t0), (n1, t1) = dated[at - 1], dated[at]
        return t0 if n1 == n0 else t0 + (t1 - t0) * (line - n0) / (n1 - n0)

    return date


def _event(number: int, found: SeriesEvent, texts: dict[tuple[str, int], str], where: Topology) -> Event:
    facts = where.files[found.file]
    when = When() if found.time is None or math.isnan(found.time) else _when(found.time)
    rank = found.rank if found.rank is not None else facts.rank
    place = where.place(Place(job=facts.job, host=found.host or facts.host, rank=rank, rack=facts.rack))
    lines = tuple(
        Evidence(found.file, line, texts.get((found.file, line), ""), when, place.host, place.rank)
        for line in dict.fromkeys((found.line, *found.lines))
    )
    return Event(
        id=f"s{number}",
        signature=found.signature,
        title=found.text,
        class_=found.class_,
        role=found.role,
        level=found.level,
        strength=found.strength,
        noise=found.noise,
        scope=Scope.JOB,
        place=place,
        first=when,
        last=when,
        effective=when,
        count=1,
        lines=lines,
        fields={**found.fields, "metric": found.metric, "step": found.step},
        group=found.signature,
        order=found.line,
        origin=Origin.TRAINING,
        why=found.text,
    )


def _when(epoch: float) -> When:
    return When(datetime.fromtimestamp(epoch, timezone.utc), 2.0, TimeBasis.INHERITED)
