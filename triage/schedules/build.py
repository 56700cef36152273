"""Join rows of the sources ``crontab`` and ``timers`` with paths, hosts and zones, and with the daemon's log."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Final

from triage.model import Evidence, Record
from triage.schedules.mounts import short
from triage.schedules.runs import ScheduleRun
from triage.schedules.schedule import UTC, Schedule, ScheduleKind, zone_of

_SYSTEM_PATH: Final = re.compile(r"(?:^|[/_.-])etc[/_.-]crontab$|(?:^|/)crontab$|cron\.d[/_.-]")
_USER_PATH: Final = re.compile(r"spool[/_.-]cron[/_.-](?:crontabs[/_.-]|tabs[/_.-])?(?P<user>[\w-]+)(?:\.txt)?$")
_LISTED_PATH: Final = re.compile(r"crontab[-_. ]*l(?:[-_. ]*u)?[-_. ]*(?P<user>[a-z][\w-]*)?(?:\.\w+)?$")
_ZONES: Final = {"UTC": "UTC", "GMT": "UTC", "Z": "UTC"}
_CD: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """A start that the cron daemon logged: ``CRON[pid]: (user) CMD (command)``."""

    host: str | None
    user: str | None
    command: str
    at: datetime
    evidence: Evidence
    end: datetime | None = None


def schedules_from_records(
    records: Iterable[Record], zones: Mapping[str, str | tzinfo] | None = None
) -> list[Schedule]:
    """Turn rows (``Record.attributes`` = ``Row.fields``) into schedules; timers get their service's command.

    ``zones`` gives hosts' time zones; it dates ``list-timers`` rows, whose zone is an abbreviation.
    """
    rows = [record for record in records if "form" in record.attributes]
    services: dict[tuple[str | None, str], tuple[str, str | None]] = {}
    for record in rows:
        if record.attributes["form"] == "service":
            command, user = _text(record, "command"), _text(record, "user") or None
            known = services.get((record.host, _unit(record)))
            services[record.host, _unit(record)] = (f"{known[0]}; {command}" if known else command, user)
    found = [_cron(r) for r in rows if r.attributes["form"] in {"user", "system", "anacron"}]
    timers = [_timer(r, services) for r in rows if r.attributes["form"] == "timer"]
    have = {(short(s.host), s.table) for s in timers}
    states = [_state(r, services, zones or {}) for r in rows if r.attributes["form"] == "timer-state"]
    return [*found, *timers, *(s for s in states if (short(s.host), s.table) not in have)]


def _text(record: Record, key: str) -> str:
    value = record.attributes.get(key)
    return str(value) if value is not None else ""


def _cron(record: Record) -> Schedule:
    is_sure = bool(record.attributes.get("form_is_sure"))
    form, user = _text(record, "form"), _text(record, "user") or None
    command = _text(record, "command")
    if not is_sure:
        form, user, command = _by_path(record, form, user, command)
    kind: ScheduleKind = "anacron" if form == "anacron" else "cron"
    delay = float(record.attributes.get("random_delay_s") or 0.0)
    return Schedule(
        host=_text(record, "host") or record.host,
        table=_text(record, "table") or record.path,
        user=user,
        command=command,
        expr=_text(record, "schedule"),
        tz=_text(record, "tz") or None,
        enabled=bool(record.attributes.get("enabled", True)),
        path=record.path,
        line=record.line,
        text=record.original,
        kind=kind,
        random_delay_s=delay,
    )


def _by_path(record: Record, form: str, user: str | None, command: str) -> tuple[str, str | None, str]:
    """The path knows better than the words: cron.d has a user column, a spool file or ``crontab -l`` has none."""
    rest = _text(record, "rest")
    match = _USER_PATH.search(record.path) or _LISTED_PATH.search(record.path)
    if match:
        text = re.split(r"(?<!\\)%", rest)[0].replace("\\%", "%").rstrip()
        return "user", match["user"] or (user if form == "user" else None), text
    words = rest.split(None, 1)
    if form == "user" and _SYSTEM_PATH.search(record.path) and len(words) == 2 and "/" not in words[0]:
        return "system", words[0], re.split(r"(?<!\\)%", words[1])[0].replace("\\%", "%").rstrip()
    return form, user, command


def _unit(record: Record) -> str:
    """Name of the unit without its suffix; a unit file's own name serves when the row has none."""
    return (_text(record, "unit") or posixpath.basename(record.path)).rpartition(".")[0]


def _timer(record: Record, services: Mapping[tuple[str | None, str], tuple[str, str | None]]) -> Schedule:
    unit = _unit(record)
    started = (_text(record, "activates") or f"{unit}.service").rpartition(".")[0]
    command, user = services.get((record.host, started)) or (f"systemctl start {started}.service", None)
    return Schedule(
        host=record.host,
        table=f"{unit}.timer",
        user=user,
        command=command,
        expr=_text(record, "schedule"),
        tz=None,
        enabled=True,
        path=record.path,
        line=record.line,
        text=record.original,
        kind="calendar",
        random_delay_s=float(record.attributes.get("random_delay_s") or 0.0),
    )


def _state(
    record: Record,
    services: Mapping[tuple[str | None, str], tuple[str, str | None]],
    zones: Mapping[str, str | tzinfo],
) -> Schedule:
    timer = replace(_timer(record, services), kind="instants", expr="")
    zone = zone_of(zones.get(record.host or ""))
    times = [_instant(_text(record, key), zone) for key in ("last", "next")]
    return replace(timer, instants=tuple(at for at in times if at is not None))


def _instant(text: str, zone: tzinfo) -> datetime | None:
    match = re.search(r"(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?)(?: (\S+))?", text)
    if match is None:
        return None
    try:
        wall = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return wall.replace(tzinfo=zone_of(_ZONES.get(match[2] or ""), zone)).astimezone(UTC)


def _key(command: str) -> str:
    return _CD.sub(" ", re.split(r"(?<!\\)%", command)[0]).strip()


def match_runs(
    logged: Sequence[LoggedCommand], schedules: Sequence[Schedule]
) -> tuple[list[ScheduleRun], list[Schedule]]:
    """Join logged starts with schedules of the same host and command; the second list holds commands no table names.

    A log line of a host without tables makes a schedule of kind ``observed``: the log alone can name a culprit.
    """
    by_command: dict[tuple[str | None, str], list[Schedule]] = {}
    for schedule in schedules:
        if schedule.enabled:
            by_command.setdefault((short(schedule.host), _key(schedule.command)), []).append(schedule)
    runs: list[ScheduleRun] = []
    extra: dict[tuple[str | None, str], Schedule] = {}
    for entry in logged:
        key = (short(entry.host), _key(entry.command))
        known = by_command.get(key) or by_command.get((None, key[1]))
        if not known:
            known = [extra.setdefault(key, _observed(entry))]
        runs.append(ScheduleRun(known[0], entry.at, entry.evidence, entry.end))
    return runs, list(extra.values())


def _observed(entry: LoggedCommand) -> Schedule:
    cited = entry.evidence
    return Schedule(
        entry.host, "", entry.user, entry.command, "", None, True, cited.path, cited.line, cited.text, kind="observed"
    )
