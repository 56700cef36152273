"""Evaluation metrics against their own history: a step down, or a single dip that comes back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from triage.metrics.layouts import LOWER_IS_BETTER
from triage.series.event import Kind, SeriesEvent
from triage.series.health import event, place
from triage.series.segments import Segment, distinct
from triage.series.stats import FLOOR, Shift, median
from triage.vocabulary import Level, Noise, Role, Strength

DIP = Kind("series-metric-dip", "checkpoint-corruption", Role.SYMPTOM, Level.MEDIUM, Strength.MODERATE, Noise.RARE)
DROP = Kind("series-metric-drop", "checkpoint-corruption", Role.SYMPTOM, Level.MEDIUM, Strength.MODERATE, Noise.RARE)
NEIGHBOURS = 4  # points looked at on each side
SHARE = 0.03  # least drop, as a share of the level
SIGMAS = 6.0


def harms(segment: Segment) -> Iterator[SeriesEvent]:
    """Find evaluations that are worse than those around them by more than the metric ever varies."""
    points = distinct(segment)
    name = points.key.metric.removeprefix("eval:")
    sign = -1.0 if re.search(LOWER_IS_BETTER, name.lower()) else 1.0
    values = [sign * value for value in points.values]
    index = 1
    while index < len(values):
        shift = _worse(values, index)
        if shift is None:
            index += 1
            continue
        yield _harm(points, name, sign, shift)
        index = shift.end if shift.end is not None else len(values)


def _worse(values: list[float], index: int) -> Shift | None:
    past = values[max(0, index - 2 * NEIGHBOURS) : index]
    future = values[index + 1 : index + 1 + NEIGHBOURS]
    around = past[-NEIGHBOURS:] + future if future else past
    if len(around) < NEIGHBOURS:
        return None
    base = median(around)
    # Differences would count each earlier dip twice; the floor keeps rounded metrics from being called steady.
    sigma = max(
        1.4826 * median([abs(value - base) for value in around]) * (1 + 2 / len(around) ** 0.5),
        FLOOR * abs(base),
        1e-12,
    )
    limit = base - max(SIGMAS * sigma, SHARE * abs(base))
    if values[index] >= limit:
        return None
    end = next((i for i in range(index + 1, len(values)) if values[i] > (base + limit) / 2), None)
    return Shift(index, end, base, sigma, values[index], index)


def _harm(points: Segment, name: str, sign: float, shift: Shift) -> SeriesEvent:
    base, value = sign * shift.baseline, points.values[shift.onset]
    change = 100 * abs(value - base) / max(abs(base), 1e-12)
    where = place(points, shift.onset)
    verb = "rose" if value > base else "fell"
    later = "has not come back" if shift.end is None else f"was back at {points.values[shift.end]:.4g} next"
    text = f"{name} {verb} to {value:.4g} from about {base:.4g} ({change:.1f} % worse) at {where} and {later}"
    absolute = Shift(shift.onset, shift.end, base, shift.sigma, value, shift.onset)
    return event(
        DIP if shift.end is not None else DROP,
        points,
        shift.onset,
        text,
        shift=absolute,
        also=[shift.onset - 1],
        end=shift.end,
    )
