"""Hits of all files -> events: dated, placed, deduplicated over repeats and over copies of the same line in other files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from triage.causes import LEAK, STRENGTH
from triage.filescan import FileScan, Hit, Tally
from triage.model import Event, Evidence, Place, Scalar, When
from triage.sources.base import Parsed
from triage.stamps import STAMPS
from triage.topology import Topology, short
from triage.vocabulary import Noise, Origin, Role, TimeBasis

REPEAT_GAP = timedelta(minutes=10)
KEEP_LINES = 6
INHERIT_LINES = 400  # how far below a stamped line an unstamped one may stand to be dated by it
CANCEL_S = 60.0
LATE = 10.0  # an alarm that recovered within this many spans did harm only if something else tells so
START_GROUP = "attempt-start"
MAX_EVENTS_PER_KEY = 500
CLEARLY = 5.0  # how much more telling a root must be to silence another root on its line
_UNKNOWN_WORDS = frozenset({"<unknown>", "unknown", "n/a", "none", "-", "", "'<unknown>'", "<n/a>"})


class Dater(Protocol):
    """The clock as the event builder needs it."""

    def when(self, path: str, host: str | None, parsed: Parsed, line_no: int) -> When:
        """Return when a peeled line was written."""
        ...


@dataclass(frozen=True, slots=True)
class _Dated:
    hit: Hit
    path: str
    when: When
    place: Place


def build(scans: Sequence[FileScan], topology: Topology, clock: Dater) -> list[Event]:
    """Return the events of all files in order of effective time (undated ones in file order, after the dated ones)."""
    groups: dict[tuple[object, ...], list[tuple[_Dated, Tally]]] = defaultdict(list)
    _learn_processes(scans, topology)
    for scan in scans:
        for tally in scan.tallies.values():
            for hit in tally.hits():
                dated = _date(hit, scan.path, topology, clock)
                groups[_key(dated)].append((dated, tally))
    events = [event for members in groups.values() for event in _events(members)]
    events = _one_voice_per_line(events)
    events.sort(key=lambda e: (e.effective.at is None, e.effective.at or datetime.min, e.lines[0].path, e.order))
    return [replace(event, id=f"e{number}") for number, event in enumerate(events, 1)]


def _one_voice_per_line(events: Sequence[Event]) -> list[Event]:
    """Of several meanings of one line only the most telling counts: a root before symptoms, a sure word before a vague one."""
    best: dict[tuple[str, int], Event] = {}
    for event in events:
        if event.role is Role.ROOT:
            for line in event.lines:
                key = (line.path, line.line)
                if key not in best or _telling(event) > _telling(best[key]):
                    best[key] = event
    out = []
    for event in events:
        said = best.get((event.lines[0].path, event.lines[0].line))
        if said is not None and said.class_ != event.class_ and _yields(event, said):
            event = replace(event, role=Role.CONTEXT, why=f"the same line speaks for {said.class_}")
        out.append(event)
    return out


def _yields(event: Event, said: Event) -> bool:
    """Say whether an event is silenced by a root that stands on its line."""
    clearly = _telling(said) > CLEARLY * _telling(event)
    return event.role is Role.SYMPTOM or (event.role is Role.ROOT and clearly)


def _telling(event: Event) -> float:
    return STRENGTH[event.strength] / LEAK[event.noise]


def _date(hit: Hit, path: str, topology: Topology, clock: Dater) -> _Dated:
    """Date a hit: by a time inside the message, by its own stamp, else by the last stamped line closely above it."""
    place = place_of(hit, path, topology)
    when = _inner_time(hit, path, place.host, clock)
    if when is None and (hit.parsed.stamp is not None or hit.parsed.uptime_s is not None):
        when = clock.when(path, place.host, hit.parsed, hit.line)
    if when is None and hit.near is not None and hit.line - hit.near[0] <= INHERIT_LINES:
        line, parsed = hit.near
        near = clock.when(path, place.host, parsed, line)
        if near.at is not None:
            when = When(near.at, max(near.uncertainty_s, 1.0) + min(600.0, hit.line - line), TimeBasis.INHERITED)
    return _Dated(hit, path, when or When(), place)


def _inner_time(hit: Hit, path: str, host: str | None, clock: Dater) -> When | None:
    """Read the capture ``at``: a time in the message that dates the event better than the line."""
    text = hit.fields.get("at")
    if not isinstance(text, str):
        return None
    stamp = STAMPS["iso"](text) or STAMPS["slurm"](text)
    if stamp is None or not stamp.has_year:
        return None
    when = clock.when(path, host, replace(hit.parsed, stamp=stamp, uptime_s=None), hit.line)
    return when if when.at is not None else None


def _learn_processes(scans: Iterable[FileScan], topology: Topology) -> None:
    """Join (host, pid) to the global rank from lines that name both (NCCL init, torchrun summaries, tagged lines)."""
    for scan in scans:
        job = topology.files[scan.path].job
        if any(parsed.local_rank is not None for _, parsed in scan.samples):
            topology.local_ranks.add(job)
        for tally in scan.tallies.values():
            for hit in tally.hits():
                if hit.fields.get("local_rank") is not None:
                    topology.local_ranks.add(job)
                rank = _number(hit.fields.get("rank"))
                rank = rank if rank is not None else hit.parsed.rank
                pid = _number(hit.fields.get("pid")) if hit.parsed.pid is None else hit.parsed.pid
                if rank is not None and pid is not None:
                    host = text_of(hit.fields.get("host")) or hit.parsed.host or topology.files[scan.path].host
                    topology.learn_process(short(host) if host else None, pid, hit.parsed.gpu, rank)


def text_of(value: Scalar) -> str | None:
    """Return a capture as text, None for the words that mean unknown."""
    if value is None or str(value).strip().lower() in _UNKNOWN_WORDS:
        return None
    return str(value)


def _number(value: Scalar) -> int | None:
    try:
        return None if value is None else int(str(value))
    except ValueError:
        return None


def place_of(hit: Hit, path: str, topology: Topology) -> Place:
    """Return where a hit happened: what the line says, else its prefix, else its file."""
    fields, parsed, facts = hit.fields, hit.parsed, topology.files[path]
    host = text_of(fields.get("host")) or parsed.host or facts.host
    rank = next((n for n in (_number(fields.get("rank")), parsed.rank, facts.rank) if n is not None), None)
    if rank is None and parsed.origin not in (Origin.KERNEL, Origin.SYSLOG, Origin.CRON):
        pid = parsed.pid if parsed.pid is not None else _number(fields.get("pid"))
        rank = topology.rank_of_process(short(host) if host else None, pid, parsed.gpu) if pid is not None else None
        rank = rank if rank is not None else _weak_rank(fields, parsed, topology, facts.job)
    kind, device = _device(hit)
    place = Place(
        job=text_of(fields.get("job")) if facts.job is None else facts.job,
        host=short(host) if host else None,
        rank=rank,
        gpu=_number(fields.get("gpu")),
        pci=text_of(fields.get("pci")),
        device=device,
        kind=kind,
        uuid=text_of(fields.get("uuid")),
        rack=facts.rack,
        path=text_of(fields.get("path")),
        server=text_of(fields.get("server")),
    )
    return topology.place(place)


def _weak_rank(fields: Mapping[str, Scalar], parsed: Parsed, topology: Topology, job: str | None) -> int | None:
    """Ranks that are global only under conditions: Slurm task ids, process-group ranks, local ranks of a one-host job."""
    local = _number(fields.get("local_rank")) if fields.get("local_rank") is not None else parsed.local_rank
    # A Slurm task may be a torchrun agent: then its number is no rank.
    tasks: tuple[int | None, ...] = () if job in topology.local_ranks else (parsed.task, _number(fields.get("task")))
    for value in (*tasks, _number(fields.get("pg_rank"))):
        if value is not None:
            return value
    return _number(local) if topology.one_host(job) else None


def _device(hit: Hit) -> tuple[str | None, str | None]:
    """Return (kind, name) of the device a line is about; a bare PCI address is told by class or driver word."""
    fields = hit.fields
    for kind in ("nic", "nvme", "dimm", "switch"):
        if (value := text_of(fields.get(kind))) is not None:
            return kind, value
    if fields.get("pci") is None and fields.get("gpu") is None and fields.get("uuid") is None:
        return None, text_of(fields.get("device"))
    return _kind_of_class(hit.signature.class_, hit.text), text_of(fields.get("device"))


def _kind_of_class(class_: str, text: str) -> str:
    if class_.startswith(("ib-", "network-")) or "mlx5" in text or "bnxt" in text:
        return "nic"
    return "nvme" if class_ == "nvme-failure" or "nvme" in text else "gpu"


def _key(dated: _Dated) -> tuple[object, ...]:
    place, signature = dated.place, dated.hit.signature
    job = place.job or (None if place.host else dated.path)
    return (signature.id, job, place.host, place.rank, place.gpu, place.pci, place.device, place.server, place.path)


def _events(members: Sequence[tuple[_Dated, Tally]]) -> Iterator[Event]:
    """Split the hits of one signature at one place into runs without a gap of ten minutes; copies count once."""
    ordered = sorted(
        members, key=lambda m: (m[0].when.at is None, m[0].when.at or datetime.min, m[0].path, m[0].hit.line)
    )
    runs: list[list[tuple[_Dated, Tally]]] = []
    holes = list(_holes(ordered))
    for member in ordered:
        at = member[0].when.at
        last = runs[-1][-1][0].when.at if runs else None
        near = at is None or last is None or at - last <= REPEAT_GAP or any(a <= last and at <= b for a, b in holes)
        if runs and (len(runs) >= MAX_EVENTS_PER_KEY or near):
            runs[-1].append(member)
        else:
            runs.append([member])
    for run in runs:
        yield _event(run)


def _dropped(tally: Tally) -> int:
    """Return how many hits between the first and the last ones were counted and not kept."""
    return max(0, tally.count - len(tally.first) - len(tally.last))


def _holes(members: Sequence[tuple[_Dated, Tally]]) -> Iterator[tuple[datetime, datetime]]:
    """Yield the spans whose hits were not kept: nobody can say that there was a gap in them."""
    times = {id(d.hit): d.when.at for d, _ in members}
    for tally in {id(t): t for _, t in members}.values():
        if tally.last and _dropped(tally):
            start, end = times.get(id(tally.first[-1])), times.get(id(tally.last[0]))
            if start is not None and end is not None:
                yield start, end


def _event(run: Sequence[tuple[_Dated, Tally]]) -> Event:
    dated = [d for d, _ in run]
    first, signature = dated[0], dated[0].hit.signature
    tallies = {id(t): t for _, t in run}.values()
    per_file: dict[str, int] = defaultdict(int)
    for d in dated:
        per_file[d.path] += 1
    in_run = {id(d.hit) for d in dated}
    for d, t in {id(t): (d, t) for d, t in run}.values():  # what was not kept belongs to the run of the hits around it
        if not t.last or id(t.last[0]) in in_run:
            per_file[d.path] += _dropped(t)
    return Event(
        id="",
        signature=signature.id,
        title=signature.title,
        class_=signature.class_,
        role=signature.role,
        level=signature.level,
        strength=signature.strength,
        noise=signature.noise,
        scope=signature.scope,
        place=first.place,
        first=first.when,
        last=dated[-1].when,
        effective=_effective(first),
        count=max(per_file.values()) if _is_copy(first) else sum(per_file.values()),
        lines=tuple(_evidence(d) for d in _chosen(dated)),
        fields={
            **first.hit.fields,
            **({"uptime_s": first.hit.parsed.uptime_s} if first.hit.parsed.uptime_s is not None else {}),
        },
        group=signature.group,
        variant=signature.variant,
        count_is_lower_bound=any(t.lower_bound for t in tallies),
        order=first.hit.line,
        origin=first.hit.parsed.origin,
    )


def _is_copy(dated: _Dated) -> bool:
    """Kernel lines reach dmesg, kern.log, syslog and the journal: the same line in two files is one line."""
    return dated.hit.parsed.origin in (Origin.KERNEL, Origin.SYSLOG, Origin.CRON)


def _chosen(dated: Sequence[_Dated]) -> list[_Dated]:
    """Return the first hits, one per file first, then the last one; of starts of a job all, for they cut its log."""
    if dated[0].hit.signature.group == START_GROUP:
        return list(dated)
    files: dict[str, _Dated] = {}
    for d in dated:
        files.setdefault(d.path, d)
    chosen = list(files.values())[:3]
    chosen.extend(d for d in dated[: KEEP_LINES - 1] if d not in chosen)
    chosen = chosen[: KEEP_LINES - 1]
    if dated[-1] not in chosen:
        chosen.append(dated[-1])
    return chosen


def _evidence(dated: _Dated) -> Evidence:
    hit = dated.hit
    return Evidence(dated.path, hit.line, hit.text, dated.when, dated.place.host, dated.place.rank)


def _effective(dated: _Dated) -> When:
    """Date an event back by the span its line names (``ran for N ms``)."""
    when, fields = dated.when, dated.hit.fields
    span = next(
        (
            float(v) / d
            for k, d in (("ran_for_ms", 1000.0), ("ran_for_s", 1.0))
            if isinstance(v := fields.get(k), (int, float))
        ),
        0.0,
    )
    if when.at is None or not 0 < span < 30 * 86400:
        return when
    return When(when.at - timedelta(seconds=span), when.uncertainty_s, when.basis)


def drop_recovered(events: Sequence[Event], recovered_by: Mapping[str, tuple[tuple[str, ...], float]]) -> list[Event]:
    """Turn alarms that recovered in time into context; those that recovered late say little by themselves.

    ``recovered_by`` maps a signature id to (ids of recoveries, span in seconds). A recovery counts for the same host
    (and server / device where both name one) at or after the alarm, within the span; undated ones by order in the file.
    """
    by_id: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_id[event.signature].append(event)
    out = []
    for event in events:
        names, span = (
            recovered_by.get(event.signature) or recovered_by.get(event.signature.partition("/")[0]) or ((), 0.0)
        )
        recoveries = [other for name in names for other in by_id.get(name, ())]
        if any(_recovers(event, other, span) for other in recoveries):
            event = replace(event, role=Role.CONTEXT, why="recovered")
        elif any(_recovers(event, other, LATE * span) for other in recoveries):
            event = replace(event, noise=Noise.COMMON)
        out.append(event)
    return out


def drop_cancelled(events: Sequence[Event], cancels: Mapping[str, tuple[str, ...]]) -> list[Event]:
    """Turn events into context that another event of the same host, within a minute, shows to be harmless.

    ``cancels`` maps a signature id to the ids it silences.
    """
    silencers = [e for e in events if e.signature.partition("/")[0] in cancels]
    if not silencers:
        return list(events)
    out = []
    for event in events:
        names = (event.signature, event.signature.partition("/")[0])
        for other in silencers:
            if set(names) & set(cancels[other.signature.partition("/")[0]]) and _together(event, other):
                event = replace(event, role=Role.CONTEXT, why=f"silenced by {other.signature}")
                break
        out.append(event)
    return out


def _together(one: Event, other: Event) -> bool:
    if one.place.host != other.place.host:
        return False
    if one.first.at is None or other.first.at is None:
        return one.lines[0].path == other.lines[0].path and abs(one.order - other.order) <= 200
    return abs((one.first.at - other.first.at).total_seconds()) <= CANCEL_S


def _recovers(alarm: Event, recovery: Event, span: float) -> bool:
    a, b = alarm.place, recovery.place
    pairs = ((a.host, b.host), (a.server, b.server), (a.device, b.device), (a.pci, b.pci), (a.rank, b.rank))
    if any(x is not None and y is not None and x != y for x, y in pairs):
        return False
    if alarm.last.at is not None and recovery.last.at is not None:
        return -1.0 <= (recovery.last.at - alarm.last.at).total_seconds() <= span
    return recovery.lines[-1].path == alarm.lines[0].path and recovery.lines[-1].line > alarm.lines[-1].line


def iter_fields(events: Iterable[Event], name: str) -> Iterator[tuple[Event, Scalar]]:
    """Yield (event, value) for the events that carry a capture."""
    for event in events:
        if (value := event.fields.get(name)) is not None:
            yield event, value
