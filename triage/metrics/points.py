"""What the metric reader hands on: one column set per series."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

Line = tuple[str, int, str, float | None]
"""(file, physical line number from 1, text, epoch seconds or None)."""


class Key(NamedTuple):
    """Names one series. ``rank`` is the global rank that the line itself states; ``host`` likewise."""

    file: str
    metric: str
    rank: int | None = None
    host: str | None = None


def _doubles() -> array[float]:
    return array("d")


def _integers() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one metric in file order, as columns of equal length.

    ``epochs``, ``steps`` and ``times`` (epoch seconds) are NaN where the line does not tell; ``values`` may be NaN or
    infinite because the line said so. Times and durations are seconds, ``memory_percent`` is 0..100.
    """

    key: Key
    epochs: array[float] = field(default_factory=_doubles)
    steps: array[float] = field(default_factory=_doubles)
    times: array[float] = field(default_factory=_doubles)
    values: array[float] = field(default_factory=_doubles)
    lines: array[int] = field(default_factory=_integers)

    def __len__(self) -> int:
        return len(self.values)


Points = tuple[Series, ...]


def order(key: Key) -> tuple[str, str, int, str]:
    """Sort key of series: file, metric, rank, host; unknown first."""
    return key.file, key.metric, -1 if key.rank is None else key.rank, key.host or ""
