"""The part of systemd's ``OnCalendar=`` grammar that timers in the field use."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

_SHORTHANDS: Final = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
}
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DATE: Final = re.compile(r"^(?:([\d*,./]+)-)?([\d*,./]+)([-~])([\d*,./]+)$")


@dataclass(frozen=True, slots=True)
class Calendar:
    """A parsed expression. ``from_end`` counts ``days`` back from the month's last day (``~01`` is the last one)."""

    weekdays: frozenset[int]
    years: frozenset[int] | None
    months: frozenset[int]
    days: frozenset[int]
    from_end: bool
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    zone: str | None

    def matches(self, day: date) -> bool:
        """Say whether the timer elapses at all on ``day`` (week day **and** date, unlike cron)."""
        last = calendar.monthrange(day.year, day.month)[1]
        number = last - day.day + 1 if self.from_end else day.day
        in_year = self.years is None or day.year in self.years
        return in_year and day.weekday() in self.weekdays and day.month in self.months and number in self.days

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the naive wall-clock times from ``start`` up to and including ``end``."""
        day = start.date()
        while day <= end.date():
            if self.matches(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        yield from self._seconds(datetime.combine(day, time(hour, minute)), start, end)
            day += timedelta(days=1)

    def _seconds(self, minute: datetime, start: datetime, end: datetime) -> Iterator[datetime]:
        for second in self.seconds:
            at = minute + timedelta(seconds=second)
            if start <= at <= end:
                yield at


def parse(expression: str) -> Calendar | None:
    """Read one expression; None when it is not of this grammar."""
    words = _SHORTHANDS.get(expression.strip().lower(), expression.strip()).split()
    zone = words.pop() if words and _is_zone(words[-1]) else None
    if len(words) == 1 and words[0].lower() in _SHORTHANDS:
        words = _SHORTHANDS[words[0].lower()].split()
    try:
        weekdays = _weekdays(words.pop(0)) if words and words[0][:1].isalpha() else frozenset(range(7))
        dated = _DATE.match(words[0]) if words else None
        if dated:
            words = words[1:]
        clock = _clock(words[0]) if words else ((0,), (0,), (0,))
        if len(words) > 1 or not (dated or words or len(weekdays) < 7):
            return None
        return _build(weekdays, dated, clock, zone)
    except ValueError:
        return None


def _build(
    weekdays: frozenset[int], dated: re.Match[str] | None, clock: tuple[tuple[int, ...], ...], zone: str | None
) -> Calendar:
    year, month, mark, day = dated.groups() if dated else (None, "*", "-", "*")
    years = None if year in {None, "*"} else frozenset(_numbers(year, 1970, 2199))
    days, months = frozenset(_numbers(day, 1, 31)), frozenset(_numbers(month, 1, 12))
    return Calendar(weekdays, years, months, days, mark == "~", clock[0], clock[1], clock[2], zone)


def _is_zone(word: str) -> bool:
    return word == "UTC" or bool(re.fullmatch(r"[A-Z][A-Za-z_]+/[\w/+-]+", word))


def _weekdays(text: str) -> frozenset[int]:
    found: set[int] = set()
    for item in text.lower().rstrip(",").split(","):
        low, _, high = item.replace("-", "..").partition("..")
        first, last = _DAYS.index(low[:3]), _DAYS.index((high or low)[:3])
        found.update(day % 7 for day in range(first, last + 1 + (7 if last < first else 0)))
    return frozenset(found)


def _clock(text: str) -> tuple[tuple[int, ...], ...]:
    parts = text.split(":")
    if not 2 <= len(parts) <= 3:
        raise ValueError(text)
    seconds = parts[2].partition(".")[0] if len(parts) == 3 else "00"
    return _numbers(parts[0], 0, 23), _numbers(parts[1], 0, 59), _numbers(seconds, 0, 59)


def _numbers(text: str, low: int, high: int) -> tuple[int, ...]:
    found: set[int] = set()
    for item in text.split(","):
        body, slash, step = item.partition("/")
        first, dots, last = body.partition("..")
        start = low if body == "*" else int(first)
        stop = int(last) if dots else high if body == "*" or slash else start
        if not low <= start <= high:
            raise ValueError(text)
        found.update(range(start, min(stop, high) + 1, max(1, int(step) if slash else 1)))
    return tuple(sorted(found))
