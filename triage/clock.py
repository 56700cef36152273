"""From a line's stamp to a point in time: missing year, zone and date, and seconds since boot.

Pure: everything is learnt from samples of the bundle's files (:class:`FileSample`) handed to :meth:`Clock.build`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Final

from triage.boottime import BootTimes
from triage.errors import UsageError
from triage.model import When
from triage.sources.base import Parsed, Stamp
from triage.vocabulary import TimeBasis
from triage.years import Span, fill, nearest_year
from triage.zones import Zones, find_zone

_NONE: Final = When()
_DAY: Final = timedelta(days=1)
_MOST_NAMED: Final = 5
_UNKNOWN_GAP_S: Final = 600.0  # uncertainty of an undated line behind the last dated one
_NO_OFFSETS: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FileSample:
    """Parsed lines of one file, in file order; need not be all of them. ``mtime`` is epoch seconds."""

    path: str
    host: str | None
    mtime: float | None
    lines: Sequence[tuple[int, Parsed]]


@dataclass
class _File:
    """Local times of the dated lines of a file, by line number, each with its year filled in."""

    host: str | None
    numbers: list[int] = field(default_factory=list)
    walls: list[datetime] = field(default_factory=list)
    offsets: list[int | None] = field(default_factory=list)


class Clock:
    """Resolves stamps of the bundle it was built from. ``notes`` are sentences for the report's warnings."""

    def __init__(self, zones: Zones, offsets: Mapping[str, float]) -> None:
        self._zones = zones
        self._offsets = offsets
        self._files: dict[str, _File] = {}
        self._boots = BootTimes(self._epoch_of_line)
        self._notes: list[str] = []
        self._zoneless: dict[str, None] = {}  # an ordered set: hosts, or paths of files without one

    @classmethod
    def build(
        cls,
        samples: Iterable[FileSample],
        *,
        year: int | None = None,
        tz: str | None = None,
        now: datetime,
        offsets: Mapping[str, float] = _NO_OFFSETS,
    ) -> Clock:
        """Learn years, zones and boots. ``year`` is that of the first year-less line of every file, ``tz`` the zone of
        lines without one, ``offsets`` seconds by which the clock of a host is ahead (subtracted)."""
        fixed = find_zone(tz) if tz else None
        if tz and fixed is None:
            raise UsageError(
                f"unknown time zone {tz!r}; use an IANA name such as Europe/Berlin or an offset such as +02:00"
            )
        clock = cls(Zones(fixed), offsets)
        taken = list(samples)
        for sample in taken:
            for _, parsed in sample.lines:
                clock._zones.learn(parsed.host or sample.host, parsed)
        spans = [span for span in (_full_span(sample.lines) for sample in taken) if span is not None]
        for sample in taken:
            clock._learn_file(sample, year, spans, now)
        for sample in taken:
            clock._boots.learn(sample.path, sample.host, sample.lines)
        return clock

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed so far: years of files, zones of hosts."""
        if not self._zoneless:
            return tuple(self._notes)
        named = sorted(self._zoneless)
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        zone = f"no zone known for {', '.join(named[:_MOST_NAMED])}{more}: times without one are read as UTC"
        return (*self._notes, zone)

    def when(self, path: str, host: str | None, parsed: Parsed, line_no: int) -> When:
        """Return the time of a line: its own stamp, else its uptime if the boot is anchored, else its neighbours'."""
        place = parsed.host or host
        if parsed.stamp is not None:
            own = self._of_stamp(path, place, parsed.stamp, line_no)
            if own is not None:
                return own
        if parsed.uptime_s is not None:
            found = self._boots.wall(path, parsed.host, line_no, parsed.uptime_s)
            if found is not None:
                return self._shifted(place, found[0], found[1], TimeBasis.UPTIME)
            if parsed.stamp is None:
                return _NONE
        return self._inherited(path, place, line_no)

    def own_time(self, path: str, host: str | None, parsed: Parsed, line_no: int) -> tuple[datetime, int | None] | None:
        """Return (local time as written with the year filled in, offset in seconds if known) of a line's own date."""
        stamp = parsed.stamp
        if stamp is None or not stamp.has_date:
            return None
        wall = self._wall(path, stamp, line_no)
        return None if wall is None else (wall, stamp.offset_s)

    def known_offset(self, host: str | None, wall: datetime) -> int | None:
        """Seconds east of UTC that ``host`` shows at local time ``wall``, None when nothing in the bundle tells."""
        return self._zones.offset(host, wall)

    def _of_stamp(self, path: str, host: str | None, stamp: Stamp, line_no: int) -> When | None:
        wall = self._wall(path, stamp, line_no)
        if wall is None:
            return None
        basis = TimeBasis.STAMP
        offset = stamp.offset_s
        if offset is None:
            basis = TimeBasis.ASSUMED_ZONE
            offset = self._zones.offset(host, wall)
            if offset is None:
                offset = 0
                self._zoneless[host or path] = None
        if not stamp.has_year:
            basis = TimeBasis.ASSUMED_YEAR
        try:
            epoch = (wall - timedelta(seconds=offset)).replace(tzinfo=timezone.utc).timestamp()
        except OverflowError:
            return None
        return self._shifted(host, epoch, stamp.step_s, basis)

    def _shifted(self, host: str | None, epoch: float, uncertainty_s: float, basis: TimeBasis) -> When:
        """Apply the host's clock offset."""
        shift = self._offsets.get(host, 0.0) if host is not None else 0.0
        at = datetime.fromtimestamp(0, timezone.utc) + timedelta(seconds=round(epoch - shift, 6))
        return When(at, uncertainty_s, basis)

    def _epoch_of_line(self, path: str, host: str | None, parsed: Parsed, line_no: int) -> float | None:
        when = self._of_stamp(path, parsed.host or host, parsed.stamp, line_no) if parsed.stamp is not None else None
        return when.at.timestamp() if when is not None and when.at is not None else None

    def _wall(self, path: str, stamp: Stamp, line_no: int) -> datetime | None:
        """Local time of a stamp with year and date filled in from the dated lines around it."""
        if stamp.has_date and stamp.has_year:
            return stamp.wall
        file = self._files.get(path)
        if file is None or not file.numbers:
            return None
        index = max(0, bisect_right(file.numbers, line_no) - 1)
        near = file.walls[index]
        if stamp.has_date and file.numbers[index] == line_no and _same_day(stamp.wall, near):
            return near
        if stamp.has_date:
            return nearest_year(stamp.wall, near)
        return min(
            (_on_day(stamp.wall, near + step) for step in (-_DAY, timedelta(0), _DAY)), key=lambda t: abs(t - near)
        )

    def _inherited(self, path: str, host: str | None, line_no: int) -> When:
        """Time of a line without one: that of the dated line before it, uncertain up to the one after it."""
        file = self._files.get(path)
        if file is None or not file.numbers:
            return _NONE
        index = bisect_right(file.numbers, line_no) - 1
        before = file.walls[max(0, index)]
        after = file.walls[index + 1] if index + 1 < len(file.walls) else None
        gap = abs((after - before).total_seconds()) if after is not None and index >= 0 else _UNKNOWN_GAP_S
        stamp = Stamp(before, offset_s=file.offsets[max(0, index)])
        found = self._of_stamp(path, file.host or host, stamp, line_no)
        return When(found.at, max(gap, 1.0), TimeBasis.INHERITED) if found is not None else _NONE

    def _learn_file(self, sample: FileSample, year: int | None, spans: Sequence[Span], now: datetime) -> None:
        """Keep the local times of a sample's dated lines, years filled in."""
        file = self._files[sample.path] = _File(sample.host)
        dated = [(number, p.stamp) for number, p in sample.lines if p.stamp is not None and p.stamp.has_date]
        mtime = (
            None if sample.mtime is None else datetime.fromtimestamp(sample.mtime, timezone.utc).replace(tzinfo=None)
        )
        today = now.astimezone(timezone.utc).replace(tzinfo=None)
        file.walls = fill([stamp for _, stamp in dated], year=year, spans=spans, mtime=mtime, now=today)
        file.numbers = [number for number, _ in dated]
        file.offsets = [stamp.offset_s for _, stamp in dated]
        if year is None and dated and not any(stamp.has_year for _, stamp in dated):
            self._notes.append(
                f"{sample.path}: its lines carry no year; {file.walls[0].year} inferred for the first one"
            )
        _add_deltas(file, sample.lines)


def _full_span(lines: Sequence[tuple[int, Parsed]]) -> Span | None:
    """First and last date of a file whose lines carry a year."""
    walls = [p.stamp.wall for _, p in lines if p.stamp is not None and p.stamp.has_date and p.stamp.has_year]
    return (min(walls), max(walls)) if walls else None


def _same_day(one: datetime, other: datetime) -> bool:
    return (one.month, one.day, one.time()) == (other.month, other.day, other.time())


def _on_day(clock: datetime, day: datetime) -> datetime:
    return clock.replace(year=day.year, month=day.month, day=day.day)


def _add_deltas(file: _File, lines: Sequence[tuple[int, Parsed]]) -> None:
    """Date the lines of ``dmesg -H`` that only say how long after the previous line they came."""
    dates = dict(zip(file.numbers, zip(file.walls, file.offsets, strict=True), strict=True))
    if not dates or not any("delta" in parsed.attributes for _, parsed in lines):
        return
    current: tuple[datetime, int | None] | None = None
    for number, parsed in lines:
        delta = parsed.attributes.get("delta")
        if number in dates:
            current = dates[number]
        elif isinstance(delta, str) and current is not None:
            current = dates[number] = (current[0] + timedelta(seconds=float(delta)), current[1])
    file.numbers = sorted(dates)
    file.walls = [dates[number][0] for number in file.numbers]
    file.offsets = [dates[number][1] for number in file.numbers]
