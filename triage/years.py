"""Which year do year-less stamps belong to? Monotone unwrapping inside a file, then the bundle, mtime, or today."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from triage.sources.base import Stamp

Span = tuple[datetime, datetime]
"""First and last local time of a file whose lines carry a year."""

_HALF_YEAR: Final = timedelta(days=183)
_NEARLY_A_YEAR: Final = timedelta(days=300)
_SLACK: Final = timedelta(days=1)  # a file may be written in another zone than its mtime is read in


def in_year(wall: datetime, year: int) -> datetime | None:
    """Move a local time into ``year``; None when it has no such day."""
    try:
        return wall.replace(year=year)
    except ValueError:
        return None


def nearest_year(wall: datetime, near: datetime) -> datetime:
    """Return ``wall`` in the year that brings it nearest to ``near``."""
    tries = (in_year(wall, year) for year in range(max(1, near.year - 1), min(9999, near.year + 1) + 1))
    found = [moment for moment in tries if moment is not None]
    if not found:  # 29 February, and no leap year next to it
        found = [moment for d in range(2, 9) if (moment := in_year(wall, near.year - d)) is not None]
    return min(found, key=lambda moment: abs(moment - near))


def fill(
    stamps: Sequence[Stamp], *, year: int | None, spans: Sequence[Span], mtime: datetime | None, now: datetime
) -> list[datetime]:
    """Return the local times of stamps with a date, in file order, each with a year.

    ``year`` is that of the first year-less stamp. Without it the stamps of the same file that carry a year decide, then
    ``spans`` of other files, then the latest year that is not after ``mtime`` (or ``now``).
    """
    if year is None and any(stamp.has_year for stamp in stamps):
        return _by_own(stamps)
    steps = unwrap([stamp.wall for stamp in stamps if not stamp.has_year], strict=year is not None)
    if not steps:
        return [stamp.wall for stamp in stamps]
    first = year if year is not None else _base(stamps, steps, spans, mtime or now)
    taken = iter(steps)
    return [s.wall if s.has_year else _exact(s.wall, first + next(taken)) for s in stamps]


def unwrap(walls: Sequence[datetime], *, strict: bool = False) -> list[int]:
    """Return for each local time the years since the first one's year.

    The clock is taken to go forward: a step back of more than half a year is a new year, a step forward of more is a
    stray line of the old one. ``strict`` only believes December to January.
    """
    limit = _NEARLY_A_YEAR if strict else _HALF_YEAR
    steps: list[int] = []
    step = 0
    for index, wall in enumerate(walls):
        if index:
            gap = wall - walls[index - 1]
            if gap < -limit:
                step += 1
            elif gap > limit and step > 0:
                step -= 1
        steps.append(step)
    return steps


def _exact(wall: datetime, year: int) -> datetime:
    """``wall`` in ``year``; 29 February of another year becomes 1 March."""
    return in_year(wall, year) or in_year(wall.replace(month=3, day=1), year) or wall


def _by_own(stamps: Sequence[Stamp]) -> list[datetime]:
    """Chain year-less stamps to the nearest stamp before (or the first one behind) that carries a year."""
    first = next(stamp.wall for stamp in stamps if stamp.has_year)
    near = first
    filled: list[datetime] = []
    for stamp in stamps:
        near = stamp.wall if stamp.has_year else nearest_year(stamp.wall, near)
        filled.append(near)
    return filled


def _base(stamps: Sequence[Stamp], steps: Sequence[int], spans: Sequence[Span], limit: datetime) -> int:
    """Year of the first stamp."""
    walls = [stamp.wall for stamp in stamps if not stamp.has_year]
    years = {moment.year + d for span in spans for moment in span for d in (-1, 0, 1)}
    if years:
        return min(sorted(years, reverse=True), key=lambda year: _distance(walls, steps, year, spans))
    last = _exact(walls[-1], limit.year)
    return (limit.year if last <= limit + _SLACK else limit.year - 1) - steps[-1]


def _distance(walls: Sequence[datetime], steps: Sequence[int], year: int, spans: Iterable[Span]) -> timedelta:
    """How far the file lies from the nearest dated span if its first line is of ``year``."""
    first, last = _exact(walls[0], year + steps[0]), _exact(walls[-1], year + steps[-1])
    return min(max(start - last, first - end, timedelta(0)) for start, end in spans)
