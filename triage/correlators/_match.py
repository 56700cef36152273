"""Occurrences of harm beside the starts of one schedule."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from triage.correlators._harm import Write
from triage.correlators._reach import Reach, Site, harm_time, save_of
from triage.schedules import Schedule, ScheduleRun, occurrences, short

EPISODE: Final = timedelta(minutes=30)  # harm lines closer than this are one occurrence
SLACK_S: Final = 60.0  # cron starts on the minute, clocks differ by seconds
ONE_RUN_S: Final = 3600.0  # one occurrence must follow its run within this


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule with the harm it may have done and the saves of the harmed jobs."""

    schedule: Schedule
    reaches: tuple[Reach, ...]
    writes: tuple[Write, ...]  # saves of the harmed jobs in reach

    @property
    def is_unknown(self) -> bool:
        """Whether nobody can tell what it runs."""
        return all(r.effect.kind == "unknown" for r in self.reaches)


@dataclass(frozen=True, slots=True)
class Hit:
    """One occurrence of harm and the start before it; ``save`` is the one that was harmed."""

    reaches: tuple[Reach, ...]  # one episode
    run: ScheduleRun
    delay_s: float
    save: Write | None

    @property
    def is_direct(self) -> bool:
        """Whether a line says what was lost."""
        return any(r.harm.direct or r.harm.witness for r in self.reaches)


@dataclass(frozen=True, slots=True)
class Match:
    """All occurrences against all starts in the observed span."""

    hits: tuple[Hit, ...]
    episodes: int
    runs: tuple[ScheduleRun, ...]  # all in the observed span
    period_s: float

    @property
    def reach_s(self) -> float:
        """How long after its start the job still does harm, as seen."""
        return max((hit.delay_s for hit in self.hits), default=0.0)


def match_starts(candidate: Candidate, runs: Sequence[ScheduleRun], site: Site) -> Match | None:
    """Put every occurrence of harm beside the last start before it; None when no harm is dated."""
    late = timedelta(seconds=site.max_run_s)
    dated = []
    for reached in candidate.reaches:
        at = harm_time(reached.case, late)
        if at is not None:
            dated.append((at, reached))
    if not dated:
        return None
    episodes = _episodes(sorted(dated, key=lambda pair: pair[0]))
    times = [at for at, _ in dated]
    window = site.window or (min(times), max(times))
    span = (min(*times, window[0]) - timedelta(days=1), max(*times, window[1]))
    starts, period_s = _starts(candidate.schedule, runs, span, site)
    hits = [hit for episode in episodes if (hit := _hit(candidate, episode, starts, site)) is not None]
    seen = tuple(run for run in starts if window[0] - late <= run.at <= window[1])
    return Match(tuple(hits), len(episodes), seen, period_s)


def _episodes(dated: Sequence[tuple[datetime, Reach]]) -> list[list[tuple[datetime, Reach]]]:
    episodes: list[list[tuple[datetime, Reach]]] = []
    for at, reached in dated:
        if episodes and at - episodes[-1][-1][0] <= EPISODE:
            episodes[-1].append((at, reached))
        else:
            episodes.append([(at, reached)])
    return episodes


def _starts(
    schedule: Schedule, runs: Sequence[ScheduleRun], span: tuple[datetime, datetime], site: Site
) -> tuple[list[ScheduleRun], float]:
    """Logged starts, joined by computed ones where the log does not speak; and the mean distance of two starts."""
    own = [run for run in runs if run.schedule == schedule]
    logged = [run for run in own if span[0] <= run.at <= span[1]]
    zone = site.zones.get(schedule.host or "") or site.zones.get(short(schedule.host) or "")
    nominal = occurrences(schedule, span[0], span[1], zone)
    others = [run.at for run in runs if run.proof is not None and short(run.schedule.host) == short(schedule.host)]
    width = timedelta(seconds=schedule.spread_s + 90)
    starts = list(logged)
    for at in nominal:
        is_logged = any(at - timedelta(seconds=90) <= run.at <= at + width for run in logged)
        # The daemon logs this line on other days and logged other jobs around this time: it did not run.
        is_denied = bool(own) and any(abs(at - other) <= timedelta(hours=2) for other in others)
        if not is_logged and not is_denied:
            starts.append(ScheduleRun(schedule, at))
    starts.sort(key=lambda run: run.at)
    return starts, _period_s(schedule, starts, span[1], zone)


def _period_s(schedule: Schedule, starts: Sequence[ScheduleRun], end: datetime, zone: str | None) -> float:
    day = occurrences(schedule, end - timedelta(days=1), end, zone)
    if len(day) >= 24:
        return 86400 / len(day)
    month = occurrences(schedule, end - timedelta(days=28), end, zone)
    if month:
        return 28 * 86400 / len(month)
    if len(starts) > 1:
        return max(60.0, (starts[-1].at - starts[0].at).total_seconds() / (len(starts) - 1))
    return 86400.0


def _hit(
    candidate: Candidate, episode: Sequence[tuple[datetime, Reach]], starts: Sequence[ScheduleRun], site: Site
) -> Hit | None:
    at, first = episode[0]
    slack = SLACK_S + first.harm.at.uncertainty_s
    run = max((r for r in starts if (r.at - at).total_seconds() <= slack), key=lambda r: r.at, default=None)
    if run is None:
        return None
    delay_s = max(0.0, (at - run.at).total_seconds())
    allowed = site.max_run_s + (0.0 if run.proof else candidate.schedule.spread_s)
    if run.end is not None:
        # The job is over, but a reader may find the hole an hour later.
        allowed = min(allowed, (run.end - run.at).total_seconds() + ONE_RUN_S)
    if delay_s > allowed + first.harm.at.uncertainty_s:
        return None
    save = save_of(first.harm, first.case.own, at)
    return Hit(tuple(reached for _, reached in episode), run, delay_s, save)


def busy_run(write: Write, starts: Sequence[ScheduleRun], reach_s: float) -> ScheduleRun | None:
    """The run that may have been busy while ``write`` was under way; ``starts`` are in time order."""
    place = bisect_right(starts, write.until, key=lambda run: run.at)
    run = starts[place - 1] if place else None
    return run if run is not None and write.at <= run.at + timedelta(seconds=reach_s) else None
