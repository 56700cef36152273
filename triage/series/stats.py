"""Robust statistics in one pass with bounded memory: medians, spread, and a clipped CUSUM for level shifts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from triage.series.columns import LONG

WINDOW = 128  # points a baseline rests on
REFRESH = 16  # points between two looks at the baseline
DRIFT = 1.0  # CUSUM allowance, in sigma
ALARM = 9.0  # CUSUM level that raises an alarm, in sigma
CLIP = 4.0  # one outlier counts for at most this many sigma: heavy tails must not fire
MIN_BASE = 5
CONFIRM = 30  # points after the onset that confirm the new level
FLOOR = 0.002  # sigma is never below this share of the level: printed digits are coarse
SURE = 4.2  # standard errors between the medians before and after
MAX_SHIFTS = 64
BLOCKS = 1024


def median(values: Sequence[float]) -> float:
    """Median of at least one value."""
    ranked = sorted(values)
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2


def spread(values: Sequence[float], center: float, floor: float = FLOOR) -> float:
    """Robust sigma: the larger one of deviations and of differences, widened for short windows, never 0.

    Differences alone would call smoothed series too quiet, deviations alone a trend too loud.
    """
    deviation = 1.4826 * median([abs(value - center) for value in values])
    jumps = [abs(b - a) for a, b in itertools.pairwise(values)]
    difference = 1.4826 * median(jumps) / sqrt(2) if jumps else 0.0
    widened = max(deviation, difference) * (1 + 2 / max(len(values), 1) ** 0.5 if len(values) < 32 else 1.0)
    return max(widened, floor * abs(center), 1e-12)


@dataclass(frozen=True, slots=True)
class Shift:
    """A rise of the level from index ``onset`` (up to ``end``, None: to the last point)."""

    onset: int
    end: int | None
    baseline: float
    sigma: float
    level: float
    peak: int


def rises(values: Sequence[float], floor: float = FLOOR) -> list[Shift]:
    """Find lasting rises of the level; turn the sign of the values to find falls.

    A clipped CUSUM against the median of the last points raises an alarm; the medians before and after confirm it.
    """
    found: list[Shift] = []
    start, index, count = 0, MIN_BASE, len(values)
    while index < count and len(found) < MAX_SHIFTS:
        alarm = _alarm(values, start, index, floor)
        if alarm is None:
            break
        onset, base, sigma = alarm.onset, alarm.baseline, alarm.sigma
        level = _confirmed(values, min(onset - start, WINDOW), alarm)
        if level is None:
            index = alarm.at + 1
            continue
        end = _end(values, onset, base + 0.4 * (level - base))
        if end is not None:
            level = median(values[onset:end])
        peak = max(range(onset, end or min(count, onset + 4 * WINDOW)), key=values.__getitem__)
        found.append(Shift(onset, end, base, sigma, level, peak))
        start = end if end is not None else onset
        index = start + REFRESH
    return found


def _confirmed(values: Sequence[float], before: int, alarm: _Alarm) -> float | None:
    """Median after the onset if it stands clear of the median before it: looked at early, then with more points."""
    for span in (CONFIRM, 2 * CONFIRM):
        after = values[alarm.onset : max(alarm.at + 1, alarm.onset + span)]
        level = median(after)
        error = 1.25 * alarm.sigma * sqrt(1 / before + 1 / len(after))
        if level - alarm.baseline >= max(SURE * error, 1.2 * alarm.sigma):
            return level
    return None


@dataclass(frozen=True, slots=True)
class _Alarm:
    onset: int
    at: int
    baseline: float
    sigma: float


def _alarm(values: Sequence[float], start: int, index: int, floor: float) -> _Alarm | None:
    """Run the CUSUM from ``index`` on, return its first alarm. Long series go through numpy, same arithmetic."""
    total, onset, count = 0.0, index, len(values)
    while index < count:
        if count - index >= LONG and index - start >= WINDOW:
            found, total, onset, index = _bulk(values, index, total, onset, floor)
            if found is not None:
                return found
            continue
        window = values[max(start, index - WINDOW) : index]
        base = median(window)
        sigma = spread(window, base, floor)
        drift = DRIFT + _skew(window, base, sigma)
        stop = min(index + (REFRESH if index - start < WINDOW else WINDOW), count)
        for at in range(index, stop):
            score = (values[at] - base) / sigma
            total += (score if score < CLIP else CLIP) - drift
            if total <= 0.0:
                total, onset = 0.0, at + 1
            elif total > ALARM:
                return _Alarm(onset, at, base, sigma)
        index = stop
    return None


def _skew(window: Sequence[float], base: float, sigma: float) -> float:
    """Mean clipped score of a quiet window: what a one-sided tail adds to the CUSUM without any shift."""
    scores = (max(-CLIP, min(CLIP, (value - base) / sigma)) for value in window)
    return max(0.0, sum(scores) / len(window))


def _bulk(
    values: Sequence[float], index: int, total: float, onset: int, floor: float
) -> tuple[_Alarm | None, float, int, int]:
    """The CUSUM over whole blocks of WINDOW points, each judged by the block before it."""
    import numpy as np

    blocks = min((len(values) - index) // WINDOW, BLOCKS)
    block = np.asarray(values[index - WINDOW : index + blocks * WINDOW], dtype=np.float64).reshape(-1, WINDOW)
    before = block[:-1]
    base = np.median(before, axis=1, keepdims=True)
    deviation = 1.4826 * np.median(np.abs(before - base), axis=1)
    difference = 1.4826 * np.median(np.abs(np.diff(before, axis=1)), axis=1) / sqrt(2)
    sigma = np.maximum(np.maximum(deviation, difference), np.maximum(floor * np.abs(base[:, 0]), 1e-12))
    skew = np.clip((before - base) / sigma[:, None], -CLIP, CLIP).mean(axis=1)
    drift = DRIFT + np.maximum(skew, 0.0)
    steps = (np.minimum((block[1:] - base) / sigma[:, None], CLIP) - drift[:, None]).ravel()
    sums = np.cumsum(steps) + total
    # S = C - min(0, lowest C so far): the reflected sum without a loop.
    lowest = np.minimum(np.minimum.accumulate(sums), 0.0)
    reflected = sums - lowest
    alarms = np.flatnonzero(reflected > ALARM)
    last = int(alarms[0]) if len(alarms) else len(steps) - 1
    resets = np.flatnonzero(reflected[: last + 1] <= 0.0)
    onset = index + int(resets[-1]) + 1 if len(resets) else onset
    if len(alarms):
        row = last // WINDOW
        return _Alarm(onset, index + last, float(base[row, 0]), float(sigma[row])), 0.0, onset, index
    return None, float(reflected[-1]), onset, index + blocks * WINDOW


def _end(values: Sequence[float], onset: int, limit: float, block: int = 8) -> int | None:
    """Index of the first point of the first block whose median is back below ``limit``, or None."""
    for start in range(onset + block // 2, len(values), block):
        piece = values[start : start + block]
        if len(piece) >= 3 and median(piece) < limit:
            back = values[start : start + 2 * block]
            if median(back) < limit:
                return next(start + i for i, value in enumerate(piece) if value < limit)
    return None
