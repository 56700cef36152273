"""Posterior of the network -> confidence that means probability."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

TABLE = Path(__file__).with_name("schemas") / "calibration.json"


def load(path: Path = TABLE) -> list[tuple[float, float]]:
    """Return the (raw, calibrated) points, rising; an identity when there is no table."""
    try:
        points = json.loads(path.read_text())["points"]
    except (OSError, ValueError, KeyError):
        return [(0.0, 0.0), (1.0, 1.0)]
    return [(float(x), float(y)) for x, y in points]


def apply(points: Sequence[tuple[float, float]], raw: float) -> float:
    """Interpolate between the points."""
    at = bisect_right([x for x, _ in points], raw)
    if at == 0:
        return points[0][1]
    if at == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[at - 1], points[at]
    return y0 if x1 == x0 else y0 + (y1 - y0) * (raw - x0) / (x1 - x0)
