"""Metric series out of training logs: which lines to pick, and how to read them in bulk.

    hits of TRIGGERS -> lines -> parse -> Series (columns per file, metric, rank, host)

Small inputs are read by ``plain`` (``re``), large ones by ``bulk`` (polars); both share the table in ``layouts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from triage.metrics.layouts import TRIGGERS
from triage.metrics.points import Key, Line, Points, Series

if TYPE_CHECKING:
    import polars as pl

SMALL_LINES = 2_000
"""Up to this many lines the plain reader is faster than importing polars."""


def parse(lines: Sequence[Line] | pl.DataFrame) -> Points:
    """Read points from metric lines given as (file, physical line number, text, epoch seconds or None).

    ``lines`` are in file order; a frame has these four columns. Series come sorted by key, points in line order.
    """
    if isinstance(lines, Sequence) and len(lines) < SMALL_LINES:
        from triage.metrics import plain

        return plain.parse(lines)
    from triage.metrics import bulk

    return bulk.parse(lines)


__all__ = ["TRIGGERS", "Key", "Line", "Points", "Series", "parse"]
