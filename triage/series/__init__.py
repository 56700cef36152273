"""Metric series in, events out: what the numbers of a training job show that no log line says.

    Points (triage.metrics) -> attempts -> detectors -> SeriesEvent

``detect`` is a pure function; each series is read once, with windows of bounded size.
"""

from __future__ import annotations

from triage.series.detect import detect
from triage.series.event import Kind, SeriesEvent
from triage.series.segments import restarts

__all__ = ["Kind", "SeriesEvent", "detect", "restarts"]
