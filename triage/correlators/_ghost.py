"""Ghosts: harm to training that a forgotten scheduled job explains.

Adapts a bundle to :func:`triage.correlators._periodic.find_culprits`: tables, timers and the cron daemon's log on one
side; missing or shortened checkpoint files, metrics that dip and the cleaners' own words on the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from triage.correlators._ghost_harms import Damage, damage, original
from triage.correlators._ghost_lines import script_line, texts, zones
from triage.correlators._ghost_schedules import mounts, table_hosts, timetable
from triage.correlators._periodic import Culprit, Harm, Site, find_culprits
from triage.correlators.base import DEVICE_FAULT, Context, Correlation, Suspect
from triage.model import Event, Evidence, Link, Place, Scalar, When
from triage.schedules import ScheduleRun, short
from triage.vocabulary import Level, Noise, Origin, Role, Scope, Strength, TimeBasis

CLASS: Final = "cron-rsync-race"
MAX_LINES: Final = 6
MAX_EVENTS: Final = 60
SURE_BITS: Final = 15.0
SURE_CHANCE: Final = 0.005
EXPLAINED: Final = 0.85


def correlate(context: Context) -> Correlation:
    """Return one event per harmful start of every culprit, links to the harm, and the culprit's place."""
    found = damage(context)
    if not found.harms:
        return Correlation()
    where = zones(context, table_hosts(context))
    table = timetable(context, where)
    if not table.schedules:
        return Correlation()
    site = Site(mounts(context), context.topology.racks, texts(context), where, _window(context))
    culprits = find_culprits(table.schedules, table.runs, found.harms, found.writes, site)
    events: list[Event] = []
    links: list[Link] = []
    suspects: list[Suspect] = []
    for number, culprit in enumerate(culprits, 1):
        own = _events(context, culprit, found, number)
        events.extend(own)
        links.extend(_links(own, culprit, found))
        place = own[0].place
        suspects.append(Suspect(place, DEVICE_FAULT, culprit.reasons[0], own[0].lines, frozenset({CLASS})))
    return Correlation(tuple(events), tuple(links), tuple(suspects))


def _window(context: Context) -> tuple[datetime, datetime] | None:
    start, end = context.window
    return (start, end) if start is not None and end is not None else None


def _events(context: Context, culprit: Culprit, found: Damage, number: int) -> list[Event]:
    """One event per start that did harm, so that each lies just before what it explains; one undated event else."""
    groups = _by_run(culprit)
    last = max((h.at.at for h in culprit.harms if h.at.at is not None), default=None)
    out = [_event(context, culprit, found, run, harms) for run, harms in groups[:MAX_EVENTS]]
    if last is not None:
        # The first one lasts until the last harm: all starts of one culprit are one incident.
        out[0] = replace(out[0], last=When(last, 1.0, TimeBasis.STAMP))
    return [replace(event, id=f"schedule{number}.{index}") for index, event in enumerate(out, 1)]


def _by_run(culprit: Culprit) -> list[tuple[ScheduleRun | None, list[Harm]]]:
    runs = sorted(culprit.runs, key=lambda run: run.at)
    if not runs:
        return [(None, list(culprit.harms))]
    groups: list[tuple[ScheduleRun | None, list[Harm]]] = [(run, []) for run in runs]
    for harm in culprit.harms:
        at = harm.at.at
        begun = [i for i, run in enumerate(runs) if at is not None and (run.at - at).total_seconds() <= 60.0]
        groups[begun[-1] if begun else 0][1].append(harm)
    return groups


def _event(context: Context, culprit: Culprit, found: Damage, run: ScheduleRun | None, harms: Sequence[Harm]) -> Event:
    schedule = culprit.schedule
    strength, noise = _surety(culprit)
    begun = When() if run is None else _when(run)
    lines = _lines(context, culprit, found, run, harms)
    return Event(
        id="",
        signature="schedule-race",
        title="A scheduled job changes files that training uses",
        class_=CLASS,
        role=Role.ROOT,
        level=Level.HIGH,
        strength=strength,
        noise=noise,
        scope=Scope.HOST,
        place=_place(culprit),
        first=begun,
        last=begun,
        effective=begun,
        count=1,
        lines=lines,
        fields=_fields(culprit, found, harms),
        group="schedule-race",
        order=schedule.line,
        origin=Origin.CRONTAB,
        why=" ".join(culprit.reasons),
    )


def _when(run: ScheduleRun) -> When:
    if run.proof is not None:
        return replace(run.proof.when, at=run.at)
    return When(run.at, 60.0 + run.schedule.spread_s, TimeBasis.ASSUMED_ZONE)


def _surety(culprit: Culprit) -> tuple[Strength, Noise]:
    """Conclusive only when a line says what was lost, and it recurs or the tool itself names the file."""
    direct = any(harm.direct for harm in culprit.harms)
    recurs = len(culprit.runs) >= 2 and culprit.p_coincidence <= SURE_CHANCE
    if culprit.confidence_bits >= SURE_BITS and direct and (recurs or culprit.witness):
        return Strength.CONCLUSIVE, Noise.NEVER
    return Strength.STRONG, Noise.RARE


def _place(culprit: Culprit) -> Place:
    paths = [effect.path for effect in culprit.effects if effect.path]
    jobs = {harm.job for harm in culprit.harms if harm.job and "/" not in harm.job and "." not in harm.job}
    host = short(culprit.schedule.host) or (culprit.hosts[0] if len(culprit.hosts) == 1 else None)
    job = jobs.pop() if len(jobs) == 1 else None
    return Place(job=job, host=host, rack=culprit.rack, path=paths[0] if paths else None)


def _fields(culprit: Culprit, found: Damage, harms: Iterable[Harm]) -> Mapping[str, Scalar]:
    schedule, effect = culprit.schedule, culprit.effects[0] if culprit.effects else None
    fields: dict[str, Scalar] = {
        "command": schedule.command,
        "user": schedule.user,
        "schedule": schedule.expr or None,
        "table": schedule.table or None,
        "tool": effect.tool if effect else None,
        "script": effect.script if effect else None,
        "bits": round(culprit.confidence_bits, 1),
        "p_coincidence": culprit.p_coincidence,
        "quiet": culprit.quiet_nights,
        "good_checkpoint": found.good_checkpoint(culprit.harms),
        "checkpoint": next((path for h in harms if (path := found.checkpoint_of(h))), None),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _lines(
    context: Context, culprit: Culprit, found: Damage, run: ScheduleRun | None, harms: Sequence[Harm]
) -> tuple[Evidence, ...]:
    """The table's line, the script's line, the logged start, then what was harmed."""
    schedule = culprit.schedule
    out = [Evidence(schedule.path, schedule.line, schedule.text, host=schedule.host)]
    if run is not None and run.proof is not None:
        out.append(run.proof)
    effect = culprit.effects[0] if culprit.effects else None
    if effect is not None and effect.script and (line := script_line(context, effect.script, effect.line)) is not None:
        out.append(line)
    out.extend(original(h, found.event_of(h)) for h in sorted(harms, key=lambda h: not (h.direct or h.witness)))
    unique = {(line.path, line.line): line for line in reversed(out)}
    return tuple(reversed(unique.values()))[:MAX_LINES]


def _links(own: Sequence[Event], culprit: Culprit, found: Damage) -> list[Link]:
    """Say which events each start explains."""
    out = []
    for event, (_, harms) in zip(own, _by_run(culprit)[:MAX_EVENTS], strict=True):
        for harm in harms:
            effect = found.event_of(harm)
            if effect is not None:
                out.append(Link(event.id, effect.id, "schedule", EXPLAINED, culprit.reasons[0]))
    return out
