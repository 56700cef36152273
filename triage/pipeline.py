"""The one place that wires the stages: paths in, report out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from triage import __version__, attempts, calibration, conditions, correlators, diagnosis, events, registry, topology
from triage.clock import Clock, FileSample
from triage.correlators.base import Context, Correlation
from triage.correlators.schedules import wants_text
from triage.filescan import FileScan
from triage.hypotheses import make_items
from triage.ingest import Input, Progress, find_inputs, scan_inputs
from triage.knowledge import Knowledge
from triage.model import Event
from triage.ranking import Incident, rank
from triage.report import Coverage, Report
from triage.seriesevents import series_events
from triage.vocabulary import Role

ALIVE_POINTS = 3  # metric lines after an error that show the job went on
RACK_FILE_BYTES = 4 << 20
SCRIPT_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for. Times are aware; ``attempt`` is a number, ``last`` or ``all``."""

    year: int | None = None
    tz: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    host: str | None = None
    job: str | None = None
    attempt: str = "last"
    topology: Path | None = None
    workers: int | None = None


@dataclass(slots=True)
class Findings:
    """Everything between the scan and the report: what ``correlate`` returns."""

    events: list[Event]
    incidents: list[Incident]
    correlation: Correlation
    attempts: attempts.Attempts
    topology: topology.Topology
    warnings: list[str] = field(default_factory=list)


def postmortem(
    paths: Sequence[str], knowledge: Knowledge, options: Options, *, now: datetime, progress: Progress | None = None
) -> Report:
    """Read a bundle and return the report. Raises :class:`triage.errors.UsageError` when no path can be opened."""
    inputs = find_inputs(paths)
    scans = scan_inputs(inputs, knowledge.plan, workers=options.workers, progress=progress)
    where = topology.build(scans, _rack_texts(inputs, options))
    clock = make_clock(scans, where, options, now)
    found = correlate(scans, where, clock, knowledge, options, texts=_texts(inputs, wants_text, SCRIPT_BYTES))
    return make_report(scans, where, clock, found, knowledge)


def make_clock(scans: Iterable[FileScan], where: topology.Topology, options: Options, now: datetime) -> Clock:
    """Anchor the bundle's clocks by the sampled lines of every file."""
    samples = [FileSample(s.path, where.files[s.path].host, s.mtime, s.samples) for s in scans]
    return Clock.build(samples, year=options.year, tz=options.tz, now=now)


def _rack_texts(inputs: Sequence[Input], options: Options) -> Mapping[str, str]:
    if options.topology is not None:
        return {str(options.topology): options.topology.read_text(encoding="utf-8", errors="replace")}
    return _texts(inputs, topology.is_rack_file, RACK_FILE_BYTES)


def _texts(inputs: Sequence[Input], wanted: Callable[[str], bool], limit: int) -> dict[str, str]:
    """Return the texts of small files by name; what cannot be read is left out (its coverage row says so)."""
    found: dict[str, str] = {}
    for item in inputs:
        if item.path is None or item.problem or item.size > limit or not wanted(item.name):
            continue
        try:
            found[item.name] = item.path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
    return found


def correlate(
    scans: Sequence[FileScan],
    where: topology.Topology,
    clock: Clock,
    knowledge: Knowledge,
    options: Options,
    *,
    texts: Mapping[str, str] | None = None,
) -> Findings:
    """Events, correlators and ranking: a pure function of what was scanned (and of the scripts in ``texts``)."""
    found = events.build(scans, where, clock)
    _learn(found, where)
    found = [_placed(e, where) for e in found]
    recoveries = {s.id: (s.recovered_by, s.recovery_s) for s in knowledge.signatures if s.recovered_by}
    found = events.drop_recovered(found, recoveries)
    found = events.drop_cancelled(found, {s.id: s.cancels for s in knowledge.signatures if s.cancels})
    numbers = series_events(scans, where, clock)
    found += numbers.events
    found = select(found, options)
    found += conditions.derive(found, knowledge.signatures)
    progress = {scan.path: [line for line, _ in scan.metrics] for scan in scans if scan.metrics}
    starts = attempts.find(found, progress, numbers.restarts)
    found = attempts.number_events(found, starts)
    context = Context(
        found, where, scans, _window(found), lambda scan, line: _line_time(clock, where, scan, line), texts or {}
    )
    correlation = _run_correlators(context)
    found = attempts.number_events([*found, *correlation.events], starts)
    items = make_items(found, _alive(progress, starts))
    links = frozenset((link.cause, link.effect) for link in correlation.links)
    incidents = rank(items, knowledge.edges, knowledge.priors, where.job_hosts, _keeper(found, starts, options), links)
    return Findings(found, incidents, correlation, starts, where, list(correlation.warnings))


def _learn(found: Sequence[Event], where: topology.Topology) -> None:
    """Join ranks, hosts and devices from the events that name several of them."""
    for event in found:
        place = event.place
        job = place.job
        if place.host and job:
            where.job_hosts[job].add(place.host)
        if place.rank is not None and place.host and event.fields.get("rank") is not None:
            where.rank_host.setdefault((job, place.rank), place.host)
        if (address := event.fields.get("address")) and place.host:
            where.addresses.setdefault(str(address), place.host)


def _placed(event: Event, where: topology.Topology) -> Event:
    """Complete an event's place by what was learnt, and resolve the peer it names to a host."""
    peer = where.named(str(event.fields["peer"])) if event.fields.get("peer") else None
    fields = {**event.fields, "peer_host": peer} if peer in where.hosts else event.fields
    return replace(event, place=where.place(event.place), fields=fields)


def select(found: Sequence[Event], options: Options) -> list[Event]:
    """Keep the events of the asked span, host and job; undated ones stay."""

    def wanted(event: Event) -> bool:
        at = event.last.at
        if at is not None and (
            (options.since and at < options.since) or (options.until and (event.effective.at or at) > options.until)
        ):
            return False
        if options.host and event.place.host not in (None, options.host):
            return False
        return not (options.job and event.place.job not in (None, options.job))

    return [event for event in found if wanted(event)]


def _run_correlators(context: Context) -> Correlation:
    """Run every correlator; they see the same events and never each other."""
    results = [module.correlate(context) for module in registry.modules(correlators) if hasattr(module, "correlate")]
    return Correlation(
        events=tuple(e for r in results for e in r.events),
        links=tuple(link for r in results for link in r.links),
        suspects=tuple(s for r in results for s in r.suspects),
        warnings=tuple(w for r in results for w in r.warnings),
    )


def _alive(progress: Mapping[str, Sequence[int]], starts: attempts.Attempts) -> Callable[[str, int], bool]:
    def alive_after(path: str, line: int) -> bool:
        end = starts.end(path, line)
        after = [n for n in progress.get(path, ()) if n > line and (end is None or n < end)]
        return len(after) >= ALIVE_POINTS

    return alive_after


def _keeper(found: Sequence[Event], starts: attempts.Attempts, options: Options) -> Callable[[Sequence[Event]], bool]:
    """Say which incidents the verdict is about: those that touch the last attempt (or the one asked for)."""
    if options.attempt == "all":
        return lambda _events: True

    def current(event: Event) -> bool:
        if event.attempt is None or event.role not in (Role.ROOT, Role.SYMPTOM):
            return event.attempt is None
        wanted = starts.last(event.lines[0].path) if options.attempt == "last" else int(options.attempt)
        return event.attempt == wanted

    if not any(current(e) for e in found if e.role in (Role.ROOT, Role.SYMPTOM) and e.attempt is not None):
        return lambda _events: True
    return lambda members: any(map(current, members))


def _window(found: Iterable[Event]) -> tuple[datetime | None, datetime | None]:
    times = [t.at for e in found for t in (e.first, e.last) if t.at is not None]
    return (min(times), max(times)) if times else (None, None)


def _line_time(clock: Clock, where: topology.Topology, scan: FileScan, line: int) -> datetime | None:
    host = where.files[scan.path].host
    best = None
    for number, parsed in scan.samples:
        if number > line:
            break
        if parsed.stamp is not None or parsed.uptime_s is not None:
            best = (number, parsed)
    return clock.when(scan.path, host, best[1], best[0]).at if best else None


def make_report(
    scans: Sequence[FileScan], where: topology.Topology, clock: Clock, found: Findings, knowledge: Knowledge
) -> Report:
    """Turn findings into the report."""
    points = calibration.load()
    around = diagnosis.Surroundings(where, found.correlation.suspects, _covered(scans, where))
    diagnoses = tuple(
        diagnosis.diagnose(
            incident,
            number,
            knowledge.playbooks.get(incident.class_),
            around,
            calibration.apply(points, incident.probability),
        )
        for number, incident in enumerate(found.incidents, 1)
    )
    coverage = [_coverage(scan, where, clock) for scan in scans]
    read = [c for c in coverage if c.lines]
    verdict = "incident" if diagnoses else "no-incident" if read else "no-evidence"
    warnings = [*clock.notes, *found.warnings]
    return Report(
        version=__version__,
        signatures=knowledge.digest,
        verdict=verdict,
        start=min((c.first for c in coverage if c.first), default=None),
        end=max((c.last for c in coverage if c.last), default=None),
        decision=diagnosis.decide(diagnoses),
        diagnoses=diagnoses,
        coverage=tuple(coverage),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _covered(scans: Iterable[FileScan], where: topology.Topology) -> set[tuple[str | None, str]]:
    found: set[tuple[str | None, str]] = set()
    for scan in scans:
        host = where.files[scan.path].host
        for _, parsed in scan.samples[:400]:
            found.add((host, parsed.origin.value))
            found.add((host, parsed.source))
        for source, _, _ in scan.rows:
            found.add((host, source))
    return found


def _coverage(scan: FileScan, where: topology.Topology, clock: Clock) -> Coverage:
    host = where.files[scan.path].host
    times = []
    stamped = [s for s in scan.samples if s[1].stamp is not None or s[1].uptime_s is not None]
    for number, parsed in (*stamped[:20], *stamped[-20:]):
        if (at := clock.when(scan.path, host, parsed, number).at) is not None:
            times.append(at)
    return Coverage(
        path=scan.path,
        source=scan.majority("source"),
        layout=scan.majority("layout"),
        lines=scan.lines,
        undated_lines=max(0, scan.undated),
        host=host,
        first=min(times, default=None),
        last=max(times, default=None),
        skipped=scan.skipped,
    )


def around(moment: datetime, span: timedelta) -> tuple[datetime, datetime]:
    """Return the window ``--around T --span D`` stands for."""
    return moment - span, moment + span
