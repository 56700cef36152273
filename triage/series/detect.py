"""Runs all detectors over the attempts of each series."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import isnan
from pathlib import PurePosixPath

from triage.metrics.points import Points
from triage.series import evals, health, scaling, speed
from triage.series.event import Kind, SeriesEvent
from triage.series.segments import Segment, cut, distinct
from triage.series.stats import median
from triage.vocabulary import UNKNOWN_CLASS, Level, Noise, Role, Strength

SILENCE = Kind("series-silence", UNKNOWN_CLASS, Role.CONTEXT, Level.MEDIUM, Strength.WEAK, Noise.COMMON)
MEMORY = Kind("series-memory-high", "gpu-oom", Role.CONTEXT, Level.LOW, Strength.WEAK, Noise.COMMON)
SILENT_STEPS = 20
SILENT_S = 120.0
SILENT_LEAST = 5
MEMORY_PERCENT = 95.0
RATES = ("step_time_s", "throughput", "data_time_s")
USED = frozenset(
    ("loss", "loss_missing", "nan_iterations", "skipped_iterations", "grad_norm", "memory_percent", *RATES)
)

Group = tuple[str, int | None, str | None]


def detect(points: Points, until: float | Mapping[str, float] | None = None) -> list[SeriesEvent]:
    """Find what the series show.

    ``until`` is the epoch second up to which logs exist (for all files, or by file): without it no silence is reported.
    Events come in order of (file, line).
    """
    attempts: dict[Group, dict[int, dict[str, Segment]]] = defaultdict(lambda: defaultdict(dict))
    overflow: dict[str, Segment] = {}
    events: list[SeriesEvent] = []
    for series in points:
        key = series.key
        if key.metric.startswith("eval:"):
            events += [found for segment in cut(series) for found in evals.harms(segment)]
        elif key.metric == "overflow":
            overflow[key.file] = _widest(overflow.get(key.file), cut(series)[0])
        elif key.metric in USED:
            for segment in cut(series):
                attempts[key.file, key.rank, key.host][segment.attempt][segment.key.metric] = segment
    for (file, _, _), by_attempt in attempts.items():
        for number, metrics in by_attempt.items():
            last = number == max(by_attempt)
            events += _judge(metrics, overflow.pop(file, None) if last else None)
        events += _silence(by_attempt[max(by_attempt)], until)
    for segment in overflow.values():
        events += scaling.storms({}, segment)
    events += _ranks(attempts)
    return sorted(events, key=lambda event: (event.file, event.line, event.signature))


def _widest(known: Segment | None, new: Segment) -> Segment:
    return new if known is None or len(new) > len(known) else known


def _judge(metrics: Mapping[str, Segment], overflow: Segment | None) -> list[SeriesEvent]:
    clean = {name: distinct(segment) for name, segment in metrics.items() if name in RATES}
    return [
        *health.unhealthy(metrics),
        *scaling.storms(metrics, overflow),
        *speed.slowdowns(clean),
        *_memory(metrics.get("memory_percent")),
    ]


def _ranks(attempts: Mapping[Group, Mapping[int, Mapping[str, Segment]]]) -> Iterator[SeriesEvent]:
    """Ranks of one job are those of one file, or of the files of one folder, that state different ranks."""
    peers: dict[tuple[str, str], list[Segment]] = defaultdict(list)
    for (file, rank, _), by_attempt in attempts.items():
        if rank is None:
            continue
        for metric in ("step_time_s", "throughput"):
            if (segment := by_attempt[max(by_attempt)].get(metric)) is not None:
                peers[str(PurePosixPath(file).parent), metric].append(distinct(segment))
    for segments in peers.values():
        ranks = [segment.key.rank for segment in segments]
        if len(set(ranks)) == len(ranks):
            yield from speed.slow_ranks(segments)


def _memory(segment: Segment | None) -> Iterator[SeriesEvent]:
    if segment is None or not len(segment):
        return
    index = next((i for i, value in enumerate(segment.values) if value >= MEMORY_PERCENT), None)
    if index is not None:
        text = f"reserved GPU memory reached {segment.values[index]:.1f} % at {health.place(segment, index)}"
        yield health.event(MEMORY, segment, index, text)


def _silence(metrics: Mapping[str, Segment], until: float | Mapping[str, float] | None) -> Iterator[SeriesEvent]:
    """The log goes on, or others' logs do, but no step has been reported for many times the usual span."""
    segment = max(metrics.values(), key=len, default=None)
    if segment is None or until is None or len(segment) < SILENT_LEAST:
        return
    end = until if isinstance(until, float | int) else until.get(segment.key.file)
    times = [time for time in segment.times if not isnan(time)]
    if end is None or len(times) < SILENT_LEAST:
        return
    usual = median([b - a for a, b in itertools.pairwise(times)])
    gap = end - times[-1]
    if gap > max(SILENT_STEPS * usual, SILENT_S):
        last = len(segment) - 1
        text = f"no step after {health.place(segment, last)} for {gap:.0f} s, where a report came every {usual:.3g} s"
        yield health.event(SILENCE, segment, last, text)
