"""Incidents -> diagnoses: culprit, words and steps from the playbook, impact, what is missing, and the decision."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any

from triage import playbooks as pb
from triage.causes import CONSEQUENCES
from triage.correlators.base import Suspect
from triage.model import Event, Place
from triage.ranking import Incident, Rival, cite
from triage.report import Alternative, Cited, Decision, Diagnosis, Impact, Missing, Step
from triage.topology import Topology
from triage.vocabulary import UNKNOWN_CLASS, Owner, Restart, Risk, Role, Scope, StepKind

_FAR = datetime.max.replace(tzinfo=timezone.utc)
MAX_ALTERNATIVES = 5
MIN_ALTERNATIVE = 0.002


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the whole bundle tells a diagnosis. ``covered`` holds (host or None, origin) pairs that some file covers."""

    topology: Topology
    suspects: Sequence[Suspect]
    covered: Collection[tuple[str | None, str]]
    calibrate: Mapping[str, Any] | None = None
    checkpoints: Sequence[tuple[str, int | None]] = ()


def diagnose(
    incident: Incident, number: int, playbook: pb.Playbook | None, around: Surroundings, confidence: float
) -> Diagnosis:
    """Return the diagnosis of one incident."""
    place = _culprit(incident, around)
    variant = _variant(incident)
    evidence, symptoms = cite(incident)
    values = _values(incident, place, variant, evidence)
    steps: tuple[Step, ...] = ()
    missing: tuple[Missing, ...] = ()
    summary = _plain_summary(incident, place)
    if playbook is not None:
        steps = tuple(
            Step(StepKind(s.kind), s.text, s.command, Risk(s.risk)) for s in pb.render(playbook, values, variant)
        )
        summary = pb.summary(playbook, values) or summary
        missing = tuple(_missing(playbook, values, place, around))
    return Diagnosis(
        incident=f"i{number}",
        class_=incident.class_,
        variant=variant,
        level=incident.level,
        title=playbook.title if playbook else incident.class_,
        confidence=confidence,
        summary=summary,
        owner=Owner(playbook.owner) if playbook else Owner.UNKNOWN,
        attempt=max((e.attempt for e in incident.events if e.attempt is not None), default=None),
        place=place,
        time=incident.start,
        evidence=evidence,
        symptoms=symptoms,
        reasons=incident.reasons,
        alternatives=_alternatives(incident, confidence),
        remediation=steps,
        missing=missing,
        impact=_impact(incident, playbook),
        playbook=playbook.class_ if playbook else None,
        fingerprint=fingerprint(incident.class_, variant, incident.own),
        restart=Restart(playbook.restart) if playbook else Restart.UNCLEAR,
        exclude_host=bool(playbook and playbook.exclude_host),
        suspect_checkpoints=tuple(sorted({str(p) for e in incident.events if (p := e.fields.get("checkpoint"))})),
    )


def _culprit(incident: Incident, around: Surroundings) -> Place:
    """Return where it failed first: the place of the earliest own evidence, completed by its symptoms and by correlators."""
    roots = [e for e in incident.own if e.role is Role.ROOT] or [e for e in incident.own if e.role is Role.SYMPTOM]
    place = Place()
    for event in sorted(roots, key=_earliest):
        place = _join(place, event.place)
    if place.host is None and place.rank is None:
        placed = [e for e in incident.events if e.place.host or e.place.rank is not None]
        place = _join(place, min(placed, key=_earliest).place) if placed else place
    place = _failing_device(incident, place)
    hosts = {e.place.host for e in roots} - {None}
    ranks = {e.place.rank for e in roots} - {None}
    named = roots and roots[0].role is Role.ROOT and (place.pci or place.device or len(hosts) == 1 or len(ranks) == 1)
    if not named:
        place = _suspected(incident, place, around)
    place = around.topology.place(_with_rank(incident, place))
    return around.topology.gpu_of(place) if incident.class_.startswith("gpu-") else place


def _earliest(event: Event) -> tuple[object, ...]:
    return (event.effective.at is None, event.effective.at or _FAR, event.lines[0].path, event.order)


def _suspected(incident: Incident, place: Place, around: Surroundings) -> Place:
    for suspect in sorted(around.suspects, key=lambda s: s.tier):
        if (not suspect.classes or incident.class_ in suspect.classes) and _compatible(suspect.place, incident):
            names_process = suspect.place.host or suspect.place.rank is not None
            return _join(suspect.place, replace(place, host=None, rank=None) if names_process else place)
    return _unblamed(incident, place)


def _unblamed(incident: Incident, place: Place) -> Place:
    """Of several ranks whose watchdogs fired none is the culprit: they waited for somebody."""
    waiting = {e.place.rank for e in incident.own if e.class_ == "nccl-timeout"} - {None}
    if incident.class_ != "nccl-timeout" or len(waiting) < 2:
        return place
    hosts = {e.place.host for e in incident.own if e.place.rank in waiting}
    return replace(place, host=place.host if hosts == {place.host} else None, rank=None, gpu=None)


def _failing_device(incident: Incident, place: Place) -> Place:
    """A PCIe port reports for the device below it: take the device whose loss it explains."""
    devices = {
        e.place.pci: e.place
        for events in incident.symptoms.values()
        for e in events
        if e.role is Role.ROOT and e.scope is Scope.DEVICE and e.place.pci and e.place.host in (None, place.host)
    }
    if incident.class_ != "pcie-aer" or len(devices) != 1:
        return place
    below = next(iter(devices.values()))
    return replace(place, pci=below.pci, gpu=below.gpu, kind=below.kind, device=below.device)


def _with_rank(incident: Incident, place: Place) -> Place:
    """A fault of a host took a rank down: name it if its own symptoms, else its crash, name just one rank there."""
    if place.rank is not None:
        return place
    near = [
        e
        for e in incident.events
        if e.place.rank is not None and (place.host is None or e.place.host in (None, place.host))
    ]
    local = {e.place.rank for e in near if e.class_ not in CONSEQUENCES and e.class_ != "nccl-timeout"}
    crashed = {e.place.rank for e in near if e.class_ == "rank-crash" and _died_itself(e, place)}
    for ranks in (local, crashed):
        if len(ranks) == 1:
            return replace(place, rank=ranks.pop())
    return place


def _died_itself(event: Event, place: Place) -> bool:
    """Say whether a crash line is about the process on this host, not about a lost peer or the watchdog's abort."""
    if (
        event.fields.get("exitcode") in (-6, -15)
        or event.fields.get("peer") is not None
        or event.signature.startswith("nccl-")
    ):
        return False
    return event.place.host == place.host or place.host is None


def _join(first: Place, second: Place) -> Place:
    """Fill unknown parts of ``first`` from ``second`` as long as they do not contradict each other."""
    if first.host and second.host and first.host != second.host:
        return first
    if first.pci and second.pci and first.pci != second.pci:
        return first
    values = {f.name: getattr(first, f.name) for f in fields(first)}
    if first.rank is not None and second.rank is not None and first.rank != second.rank:
        return first
    for name, value in values.items():
        if value is None:
            values[name] = getattr(second, name)
    return Place(**values)


def _compatible(place: Place, incident: Incident) -> bool:
    jobs = {e.place.job for e in incident.events} - {None}
    return place.job is None or not jobs or place.job in jobs


def _variant(incident: Incident) -> str | None:
    found = Counter(e.variant for e in incident.own if e.variant and e.role is Role.ROOT)
    found = found or Counter(e.variant for e in incident.own if e.variant)
    return found.most_common(1)[0][0] if found else None


def _values(incident: Incident, place: Place, variant: str | None, evidence: Sequence[Cited]) -> dict[str, Any]:
    hosts = sorted({e.place.host for e in incident.own if e.place.host})
    ranks = sorted({e.place.rank for e in incident.own if e.place.rank is not None})
    first = incident.own[0] if incident.own else None
    captured = dict(first.fields) if first else {}
    return {
        **{f.name: getattr(place, f.name) for f in fields(place)},
        "hosts": hosts,
        "ranks": ranks,
        "peer": captured.get("peer"),
        "time": incident.start,
        "pid": captured.get("pid"),
        "user": captured.get("user"),
        "step": captured.get("step"),
        "checkpoint": captured.get("checkpoint"),
        "variant": variant,
        "count": sum(e.count for e in incident.own),
        "fields": captured,
    }


def _plain_summary(incident: Incident, place: Place) -> str:
    where = place.host or (f"rank {place.rank}" if place.rank is not None else "an unknown place")
    title = incident.own[0].title if incident.own else incident.class_
    return f"{title} ({where})."


def _missing(playbook: pb.Playbook, values: Mapping[str, Any], place: Place, around: Surroundings) -> list[Missing]:
    """What the playbook wants and no file of that host covers."""
    out = []
    for want, filled in zip(playbook.missing, pb.missing_evidence(playbook, values), strict=True):
        covered = (place.host, want.source) in around.covered
        if not covered and not (place.host is None and any(origin == want.source for _, origin in around.covered)):
            out.append(Missing(str(filled["what"]), filled["command"], str(filled["why"])))
    return out


def _alternatives(incident: Incident, confidence: float) -> tuple[Alternative, ...]:
    """Rivals with their share of what the diagnosis leaves, so that all sum to at most 1."""
    rivals: list[Rival] = [r for r in incident.rivals if r.class_ is not None]
    mass = sum(r.probability for r in incident.rivals)
    left = max(0.0, 1.0 - confidence)
    out: list[Alternative] = []
    for rival in sorted(rivals, key=lambda r: -r.probability)[:MAX_ALTERNATIVES]:
        share = left * rival.probability / mass if mass > 0 else 0.0
        if share >= MIN_ALTERNATIVE or len(out) < 2:
            cited = tuple(Cited(e, e.lines[0]) for e in rival.events[:3])
            out.append(Alternative(str(rival.class_), rival.variant, share, cited, rival.why_not))
    return tuple(out)


def _impact(incident: Incident, playbook: pb.Playbook | None) -> Impact:
    events = incident.events
    ranks = {e.place.rank for e in events if e.place.rank is not None}
    return Impact(
        jobs=tuple(sorted({e.place.job for e in events if e.place.job})),
        hosts=tuple(sorted({e.place.host for e in events if e.place.host})),
        ranks=len(ranks) or None,
        recovery_min=playbook.recovery_min if playbook else None,
    )


def fingerprint(class_: str, variant: str | None, own: Sequence[Event]) -> str:
    """Return an id of the kind of incident that is the same under other hosts, ranks, times and jobs."""
    signatures = sorted({e.signature for e in own if e.role is Role.ROOT} or {e.signature for e in own})
    text = "\0".join([class_, variant or "", *signatures])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def decide(diagnoses: Sequence[Diagnosis], checkpoints: Sequence[tuple[str, int | None]] = ()) -> Decision:
    """Join the diagnoses into one decision: the most cautious restart word wins."""
    if not diagnoses:
        return Decision(Restart.UNCLEAR, (), (), None, (), "no incident found")
    order = [Restart.NOW, Restart.UNCLEAR, Restart.AFTER_FIX, Restart.DO_NOT]
    leading = max(diagnoses, key=lambda d: (order.index(d.restart), d.confidence))
    hosts = tuple(sorted({d.place.host for d in diagnoses if d.exclude_host and d.place.host and d.confidence >= 0.5}))
    drain = tuple(
        f"scontrol update NodeName={shlex.quote(h)} State=DRAIN Reason={shlex.quote('triage: ' + _class_of(diagnoses, h))}"
        for h in hosts
    )
    suspects = tuple(sorted({c for d in diagnoses for c in d.suspect_checkpoints}))
    good = [path for path, _ in checkpoints if path not in suspects]
    first = diagnoses[0]
    restart = leading.restart if first.class_ != UNKNOWN_CLASS else Restart.UNCLEAR
    return Decision(
        restart, hosts, drain, good[-1] if good else None, suspects, f"{first.title}: {_first_sentence(first.summary)}"
    )


def _class_of(diagnoses: Sequence[Diagnosis], host: str) -> str:
    return next(d.class_ for d in diagnoses if d.place.host == host)


def _first_sentence(text: str) -> str:
    head, dot, _ = text.partition(". ")
    return head + ("." if dot else "")
