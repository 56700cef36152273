"""Series cut into attempts: a step counter that goes back starts a new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan

from triage.metrics.points import Key, Points, Series
from triage.series import columns


@dataclass(frozen=True, slots=True)
class Segment:
    """Points of one metric within one attempt, in order; columns as in :class:`triage.metrics.points.Series`."""

    key: Key
    attempt: int
    steps: Sequence[float]
    times: Sequence[float]
    values: Sequence[float]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.values)

    def step(self, index: int) -> float | None:
        """Step counter at ``index``, None where the line has none."""
        return None if isnan(self.steps[index]) else self.steps[index]

    def time(self, index: int) -> float | None:
        """Epoch seconds at ``index``, None where nothing dates the line."""
        return None if isnan(self.times[index]) else self.times[index]

    def pick(self, indexes: Sequence[int], values: Sequence[float] | None = None) -> Segment:
        """Return the points at ``indexes``, with other values if given."""
        chosen = [self.values[i] for i in indexes] if values is None else values
        return Segment(
            self.key,
            self.attempt,
            [self.steps[i] for i in indexes],
            [self.times[i] for i in indexes],
            chosen,
            [self.lines[i] for i in indexes],
        )


def cut(series: Series) -> list[Segment]:
    """Cut at every start of a new attempt; a counter that runs anew in each epoch starts none."""
    bounds = _merged(series, [0, *_returns(series), len(series)])
    steps = series.steps
    if len(steps) and (isnan(steps[0]) or min(steps) == max(steps)):  # only the epoch advances
        steps = series.epochs
    return [
        Segment(series.key, number, steps[a:b], series.times[a:b], series.values[a:b], series.lines[a:b])
        for number, (a, b) in enumerate(pairwise(bounds), 1)
        if b > a
    ]


def restarts(points: Points) -> dict[str, list[int]]:
    """Return, by file, the lines at which its step counter goes back: the first reports of new attempts.

    The longest series of each file decides; all metrics of a file share its counter.
    """
    longest: dict[str, Series] = {}
    for series in points:
        known = longest.get(series.key.file)
        if known is None or len(series) > len(known):
            longest[series.key.file] = series
    found = {path: [segment.lines[0] for segment in cut(series)[1:]] for path, series in longest.items()}
    return {path: lines for path, lines in found.items() if lines}


def _returns(series: Series) -> list[int]:
    """Indexes where (epoch, step) goes back; without a rank, by more than interleaved ranks explain."""
    steps, epochs = series.steps, series.epochs
    candidates = sorted({*columns.falls(steps), *columns.falls(epochs)})
    slack = 2 * _stride(steps) if series.key.rank is None else 0.0
    found: list[int] = []
    top_epoch = top_step = float("-inf")
    for index in candidates:
        # Since the last candidate nothing falls, so the last value is the highest of that stretch.
        top_epoch, top_step = _top(top_epoch, epochs, index), _top(top_step, steps, index)
        epoch, step = epochs[index], steps[index]
        if epoch > epochs[index - 1]:
            top_step = float("-inf")
        elif epoch < top_epoch or step < top_step - slack:
            found.append(index)
            top_epoch = top_step = float("-inf")
    return found


def _top(top: float, values: Sequence[float], index: int) -> float:
    last = values[index - 1]
    return top if isnan(last) else max(top, last)


def _stride(steps: Sequence[float]) -> float:
    """Usual distance of reported steps."""
    rises = sorted(b - a for a, b in pairwise(steps[:200]) if b > a)
    return rises[len(rises) // 2] if rises else 0.0


def _merged(series: Series, bounds: list[int]) -> list[int]:
    """Drop bounds of a counter that restarts near 0 again and again after the same number of steps."""
    if len(bounds) < 4:
        return bounds
    tops = [max(series.steps[a:b], default=0.0) for a, b in pairwise(bounds)]
    starts = [series.steps[a] for a in bounds[:-1]]
    usual = sorted(tops[:-1])[len(tops[:-1]) // 2]
    regular = sum(abs(top - usual) <= 0.02 * usual for top in tops[:-1]) >= 0.8 * len(tops[:-1])
    low = all(start <= 0.05 * usual + 1 for start in starts[1:])
    return [0, len(series)] if usual > 0 and regular and low else bounds


def distinct(segment: Segment) -> Segment:
    """Keep the first value of each step, if finite: unlabelled ranks print the same step several times."""
    kept = columns.fresh(segment.steps, segment.values)
    return segment if len(kept) == len(segment) else segment.pick(kept)
