"""A schedule of any kind (cron, anacron, systemd timer, seen in the log only) and when it starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import takewhile
from typing import Final, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from triage.schedules.oncalendar import parse

UTC: Final = timezone.utc
NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every_minute": "* * * * *",
}
_LIMIT: Final = 20_000
_LOWS: Final = (0, 0, 1, 1, 0)
_HIGHS: Final = (59, 23, 31, 12, 6)
_STEPS_S: Final = (60, 3600, 86400, 86400 * 30, 86400)
_RANDOM: Final = re.compile(r"(\d*)~(\d*)(?:/\d+)?")

ScheduleKind = Literal["cron", "calendar", "anacron", "instants", "observed"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """One line of a schedule.

    ``expr`` is what the line says (five cron fields, an @name, an OnCalendar expression); ``tz`` the zone the line
    itself names, None for the host's. ``path``, ``line`` and ``text`` cite it. Kind ``instants``: only single times are
    known (``list-timers``); ``observed``: the daemon's log shows runs, no table in the bundle holds the line.
    """

    host: str | None
    table: str
    user: str | None
    command: str
    expr: str
    tz: str | None
    enabled: bool
    path: str
    line: int
    text: str
    kind: ScheduleKind = "cron"
    random_delay_s: float = 0.0
    instants: tuple[datetime, ...] = ()

    @property
    def spread_s(self) -> float:
        """How much later than the nominal time it may start: random delays and cronie's ``~`` ranges."""
        return self.random_delay_s + (_ranges(self.expr)[1] if self.kind == "cron" else 0.0)


def zone_of(name: str | tzinfo | None, default: tzinfo = UTC) -> tzinfo:
    """Zone for a name (``Europe/Oslo``, ``UTC``, ``+01:00``, ``+0100``); ``default`` when it is unknown."""
    if isinstance(name, tzinfo):
        return name
    if not name:
        return default
    match = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)", name.strip())
    if match:
        span = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-span if match[1] == "-" else span)
    try:
        return ZoneInfo(name.strip().lstrip(":"))
    except (ValueError, OSError, LookupError):
        return default


def cron_fields(expr: str) -> str | None:
    """The five fields of ``expr`` with @names written out; None for ``@reboot`` and for what is no schedule."""
    expr = NICKNAMES.get(expr.strip().lower(), expr)
    return expr if len(expr.split()) == 5 else None


def _ranges(expr: str) -> tuple[str, float]:
    """Replace ``a~b`` by ``a`` and say how many seconds later it may be: cronie draws once, when it reads the table."""
    fields = expr.split()
    spread = 0.0
    for place, value in enumerate(fields[:5]):
        for match in _RANDOM.finditer(value):
            low = int(match[1] or _LOWS[place])
            spread += (int(match[2] or _HIGHS[place]) - low) * _STEPS_S[place]
            fields[place] = fields[place].replace(match[0], str(low), 1)
    return " ".join(fields), spread


def occurrences(schedule: Schedule, start: datetime, end: datetime, tz: str | tzinfo | None = None) -> list[datetime]:
    """Return the nominal start times in [start, end] as UTC, in order; empty where they cannot be computed.

    ``tz`` is the host's zone, used when the line names none. ``@reboot`` and anacron have no computable time. A start
    is the beginning of an interval of ``schedule.spread_s`` seconds, and the job then runs for some time.
    """
    zone = zone_of(schedule.tz, zone_of(tz))
    if schedule.kind == "instants":
        return [at for at in schedule.instants if start <= at <= end]
    if schedule.kind == "cron":
        return _cron(schedule.expr, start, end, zone)
    return _calendar(schedule.expr, start, end, zone) if schedule.kind == "calendar" else []


def _cron(expr: str, start: datetime, end: datetime, zone: tzinfo) -> list[datetime]:
    fields = cron_fields(expr)
    if fields is None:
        return []
    try:
        # A start at exactly ``start`` counts; CronSim yields later ones only.
        times = CronSim(_ranges(fields)[0], (start - timedelta(seconds=1)).astimezone(zone))
        limited = (at for at, _ in zip(times, range(_LIMIT), strict=False))
        return [at.astimezone(UTC) for at in takewhile(lambda at: at <= end, limited)]
    except (CronSimError, StopIteration, OverflowError):
        return []


def _calendar(expr: str, start: datetime, end: datetime, zone: tzinfo) -> list[datetime]:
    parsed = parse(expr)
    if parsed is None:
        return []
    zone = zone_of(parsed.zone, zone)
    walls = parsed.between(start.astimezone(zone).replace(tzinfo=None), end.astimezone(zone).replace(tzinfo=None))
    limited = (wall for wall, _ in zip(walls, range(_LIMIT), strict=False))
    return sorted({wall.replace(tzinfo=zone).astimezone(UTC) for wall in limited})
