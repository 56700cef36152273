"""Rows and log lines of a bundle -> schedules, their starts and mounts, as :mod:`triage.schedules` takes them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from triage.correlators._ghost_lines import Seen, rows, seen
from triage.correlators.base import Context
from triage.model import Record
from triage.schedules import (
    LoggedCommand,
    Mount,
    Schedule,
    ScheduleRun,
    match_runs,
    normalise,
    schedules_from_records,
    short,
)
from triage.sources.base import Row
from triage.vocabulary import Origin

_TABLES: Final = frozenset({"crontab", "timers"})
_STARTS: Final = frozenset({"cron-command-started", "cron-command-busybox"})
_ENDS: Final = frozenset({"cron-command-ended", "cron-session-closed"})
_PERIODIC: Final = frozenset({"anacron-job"})
_UNITS: Final = frozenset({"cron-unit-started", "maintenance-started"})
# What systemd before 249 prints instead of the unit's name.
_DESCRIBED: Final = {"Cleanup of Temporary Directories": "systemd-tmpfiles-clean", "Rotate log files": "logrotate"}
_STOCK: Final = {"systemd-tmpfiles-clean": "systemd-tmpfiles --clean", "apt-daily-upgrade": "unattended-upgrade"}
_LONGEST: Final = timedelta(hours=24)
_SAME_START: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Timetable:
    """All schedules of a bundle and the starts that its logs show."""

    schedules: tuple[Schedule, ...]
    runs: tuple[ScheduleRun, ...]


def table_hosts(context: Context) -> set[str | None]:
    """Return the hosts whose schedules the bundle shows."""
    return {host for _, _, _, host in rows(context, _TABLES)}


def timetable(context: Context, zones: Mapping[str, str]) -> Timetable:
    """Read every table and join it with the daemons' logs."""
    records = [_record(scan.path, source, row, host) for scan, source, row, host in rows(context, _TABLES)]
    known = _once(schedules_from_records(records, zones))
    logged = [*_commands(context), *_periodic(context, known), *_units(context, known)]
    runs, extra = match_runs(sorted(logged, key=lambda entry: entry.at), known)
    return Timetable((*known, *extra), tuple(runs))


def _record(path: str, source: str, row: Row, host: str | None) -> Record:
    text, fields = row.text, row.fields
    return Record(path, row.line, row.end_line, text, text, Origin.CRONTAB, source, host=host, attributes=fields)


def _once(schedules: Sequence[Schedule]) -> list[Schedule]:
    """A table that the bundle holds twice (``crontab -l`` and the spool file) counts once."""
    found: dict[tuple[object, ...], Schedule] = {}
    for each in schedules:
        found.setdefault((short(each.host), each.expr, each.command, each.kind, each.enabled), each)
    return list(found.values())


def _commands(context: Context) -> list[LoggedCommand]:
    ends = _Ends(seen(context, _ENDS))
    found: dict[tuple[object, ...], LoggedCommand] = {}
    for line in seen(context, _STARTS):
        command = line.field("command")
        if line.when.at is not None and command:
            key = (short(line.place.host), command.strip(), line.when.at.replace(microsecond=0))
            found.setdefault(key, _logged(line, command, ends.of(line)))
    return list(found.values())


def _logged(line: Seen, command: str, end: datetime | None = None) -> LoggedCommand:
    assert line.when.at is not None  # noqa: S101 - callers pass dated lines
    return LoggedCommand(line.place.host, line.field("user"), command.strip(), line.when.at, line.evidence, end)


class _Ends:
    """Ends of commands, by what ties them to their start: the command, or the daemon's process number."""

    def __init__(self, lines: Sequence[Seen]) -> None:
        self._by: dict[tuple[object, ...], list[datetime]] = defaultdict(list)
        for line in lines:
            if line.when.at is not None:
                self._by[self._key(line, line.field("command") or line.hit.parsed.pid)].append(line.when.at)

    @staticmethod
    def _key(line: Seen, what: object) -> tuple[object, ...]:
        return (short(line.place.host), line.field("user"), what.strip() if isinstance(what, str) else what)

    def of(self, start: Seen) -> datetime | None:
        """Return the first end after ``start`` that belongs to it; Debian's session is the parent of the command."""
        begun, pid = start.when.at, start.hit.parsed.pid
        if begun is None:
            return None
        for what in (start.field("command"), *((pid, pid - 1) if pid is not None else ())):
            times = self._by.get(self._key(start, what), [])
            place = bisect_left(times, begun)
            if place < len(times) and times[place] - begun <= _LONGEST:
                return times[place]
        return None


def _periodic(context: Context, known: Sequence[Schedule]) -> list[LoggedCommand]:
    """Starts that anacron and run-parts log: a job's name, or the script of a folder."""
    found = []
    for line in seen(context, _PERIODIC):
        name, folder, text = line.field("command") or "", line.field("path"), line.hit.text
        if line.when.at is None or not name:
            continue
        if folder and " starting " in text:
            found.append(_logged(line, f"{folder.rstrip('/')}/{name}"))
        elif not folder and text.rstrip().endswith("started"):
            here = (s for s in known if s.kind == "anacron" and short(s.host) in {short(line.place.host), None})
            found.extend(_logged(line, s.command) for s in here if name in s.text.split())
    return found


def _units(context: Context, known: Sequence[Schedule]) -> list[LoggedCommand]:
    """Starts of services that a timer of the host activates (or of a stock cleaner), with their ends."""
    commands = _timer_commands(context, known)
    begun: list[LoggedCommand] = []
    for line in seen(context, _UNITS):
        unit = line.field("unit") or ""
        unit = _DESCRIBED.get(unit, unit.removesuffix(".service"))
        command = commands.get((short(line.place.host), unit)) or commands.get((None, unit)) or _STOCK.get(unit)
        if line.when.at is None or command is None:
            continue
        last = next((i for i in reversed(range(len(begun))) if _is_same(begun[i], line, command)), None)
        is_start = " Starting " in line.hit.text or " Started " in line.hit.text
        if is_start and (last is None or line.when.at - begun[last].at > _SAME_START):
            begun.append(_logged(line, command))
        elif not is_start and last is not None and begun[last].end is None:
            begun[last] = replace(begun[last], end=line.when.at)
    return begun


def _timer_commands(context: Context, known: Sequence[Schedule]) -> dict[tuple[str | None, str], str]:
    """Return (host, service without suffix) -> command, for the services that timers start."""
    started: dict[tuple[str | None, str], str] = {}
    for _, _, row, host in rows(context, {"timers"}):
        unit = str(row.fields.get("unit") or "").rpartition(".")[0]
        if unit and row.fields.get("form") != "service":
            started[short(host), unit] = str(row.fields.get("activates") or f"{unit}.service").rpartition(".")[0]
    timers = [s for s in known if s.kind in {"calendar", "instants"}]
    names = [(short(s.host), s.table.rpartition("/")[2].removesuffix(".timer"), s.command) for s in timers]
    return {(host, started.get((host, unit), unit)): command for host, unit, command in names}


def _is_same(entry: LoggedCommand, line: Seen, command: str) -> bool:
    return entry.command == command and short(entry.host) == short(line.place.host)


def mounts(context: Context) -> list[Mount]:
    """Return the mount tables of all hosts."""
    found = []
    for _, source, row, host in rows(context, {"mounts", "df"}):
        device, point = row.fields.get("source" if source == "mounts" else "filesystem"), row.fields.get("mount")
        if device and point:
            kind, options = row.fields.get("fstype") or "", row.fields.get("options") or ""
            found.append(Mount(host, str(device), normalise(str(point)), str(kind), str(options)))
    return found
