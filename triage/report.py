"""The report: the only thing an output sees. Shape: triage/schemas/report-1.schema.json (DESIGN section 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from triage.model import Event, Evidence, Place
from triage.vocabulary import Level, Owner, Restart, Risk, StepKind

MAX_EVIDENCE = 12
SCHEMA = "triage.report/1"


@dataclass(frozen=True, slots=True)
class Cited:
    """An evidence line together with the event it belongs to."""

    event: Event
    line: Evidence


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence and its weight in nats (positive speaks for the diagnosis)."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """A rival explanation of the same incident."""

    class_: str
    variant: str | None
    confidence: float
    evidence: tuple[Cited, ...]
    why_not: str


@dataclass(frozen=True, slots=True)
class Step:
    """A filled-in playbook step."""

    kind: StepKind
    text: str
    command: str | None
    risk: Risk


@dataclass(frozen=True, slots=True)
class Missing:
    """Evidence that would decide more, and the command that gets it."""

    what: str
    command: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Impact:
    """What the incident cost; None where the logs do not tell."""

    jobs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    ranks: int | None = None
    steps_lost: int | None = None
    last_good_checkpoint: str | None = None
    recovery_min: float | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A claim about one incident."""

    incident: str
    class_: str
    variant: str | None
    level: Level
    title: str
    confidence: float
    summary: str
    owner: Owner
    attempt: int | None
    place: Place
    time: datetime | None
    evidence: tuple[Cited, ...]
    symptoms: tuple[tuple[str, tuple[Cited, ...]], ...]
    reasons: tuple[Reason, ...]
    alternatives: tuple[Alternative, ...]
    remediation: tuple[Step, ...]
    missing: tuple[Missing, ...]
    impact: Impact
    playbook: str | None
    fingerprint: str
    restart: Restart = Restart.UNCLEAR
    exclude_host: bool = False
    suspect_checkpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What a launch script, or a tired human, needs first."""

    restart: Restart
    exclude_hosts: tuple[str, ...]
    drain: tuple[str, ...]
    resume_from: str | None
    suspect_checkpoints: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How one file was read. ``undated_lines`` is estimated from a sample for files above 256 KiB."""

    path: str
    source: str | None
    layout: str | None
    lines: int
    undated_lines: int
    host: str | None
    first: datetime | None
    last: datetime | None
    skipped: str | None


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A template of error lines that no signature knows."""

    template: str
    count: int
    path: str
    line: int
    text: str
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found in one bundle."""

    version: str
    signatures: str
    verdict: str
    start: datetime | None
    end: datetime | None
    decision: Decision
    diagnoses: tuple[Diagnosis, ...]
    coverage: tuple[Coverage, ...]
    warnings: tuple[str, ...]
    unexplained: tuple[Unexplained, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Return the contract form, ready for JSON."""
        return {
            "schema": SCHEMA,
            "tool": {"version": self.version, "signatures": self.signatures},
            "verdict": self.verdict,
            "window": {"start": iso(self.start), "end": iso(self.end)},
            "decision": _decision(self.decision),
            "diagnoses": [_diagnosis(d, position) for position, d in enumerate(self.diagnoses, 1)],
            "unexplained": [_unexplained(u) for u in self.unexplained],
            "coverage": [_coverage(c) for c in self.coverage],
            "warnings": list(self.warnings),
        }


def iso(moment: datetime | None) -> str | None:
    """Return ISO 8601 in UTC with milliseconds where they say something, None for an unknown time."""
    if moment is None:
        return None
    spec = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=spec).replace("+00:00", "Z")


def _decision(d: Decision) -> dict[str, Any]:
    return {
        "restart": d.restart.value,
        "exclude_hosts": list(d.exclude_hosts),
        "drain": list(d.drain),
        "resume_from": d.resume_from,
        "suspect_checkpoints": list(d.suspect_checkpoints),
        "why": d.why,
    }


def _cited(c: Cited) -> dict[str, Any]:
    return {
        "path": c.line.path,
        "line": c.line.line,
        "time": iso(c.line.when.at),
        "uncertainty_s": c.line.when.uncertainty_s if c.line.when.at else None,
        "host": c.line.host,
        "rank": c.line.rank,
        "signature": c.event.signature,
        "role": c.event.role.value,
        "text": c.line.text,
        "count": c.event.count,
        "count_is_lower_bound": c.event.count_is_lower_bound,
    }


def _device(place: Place) -> dict[str, Any] | None:
    if not (place.kind or place.pci or place.device or place.gpu is not None or place.uuid):
        return None
    return {"kind": place.kind, "pci": place.pci, "index": place.gpu, "name": place.device, "uuid": place.uuid}


def _diagnosis(d: Diagnosis, position: int) -> dict[str, Any]:
    place = d.place
    return {
        "position": position,
        "incident": d.incident,
        "class": d.class_,
        "variant": d.variant,
        "level": d.level.value,
        "title": d.title,
        "confidence": round(d.confidence, 4),
        "summary": d.summary,
        "owner": d.owner.value,
        "attempt": d.attempt,
        "first_failing": {
            "rank": place.rank,
            "host": place.host,
            "device": _device(place),
            "rack": place.rack,
            "time": iso(d.time),
        },
        "evidence": [_cited(c) for c in d.evidence],
        "symptoms": [{"class": name, "evidence": [_cited(c) for c in cited]} for name, cited in d.symptoms],
        "reasons": [{"text": r.text, "weight": round(r.weight, 3)} for r in d.reasons],
        "alternatives": [
            {
                "class": a.class_,
                "variant": a.variant,
                "confidence": round(a.confidence, 4),
                "evidence": [_cited(c) for c in a.evidence],
                "why_not": a.why_not,
            }
            for a in d.alternatives
        ],
        "remediation": [
            {"kind": s.kind.value, "text": s.text, "command": s.command, "risk": s.risk.value} for s in d.remediation
        ],
        "missing_evidence": [{"what": m.what, "command": m.command, "why": m.why} for m in d.missing],
        "impact": {
            "jobs": list(d.impact.jobs),
            "hosts": list(d.impact.hosts),
            "ranks": d.impact.ranks,
            "steps_lost": d.impact.steps_lost,
            "last_good_checkpoint": d.impact.last_good_checkpoint,
            "recovery_min": d.impact.recovery_min,
        },
        "playbook": d.playbook,
        "fingerprint": d.fingerprint,
    }


def _coverage(c: Coverage) -> dict[str, Any]:
    return {
        "path": c.path,
        "source": c.source,
        "layout": c.layout,
        "lines": c.lines,
        "undated_lines": c.undated_lines,
        "host": c.host,
        "first": iso(c.first),
        "last": iso(c.last),
        "skipped": c.skipped,
    }


def _unexplained(u: Unexplained) -> dict[str, Any]:
    return {
        "template": u.template,
        "count": u.count,
        "path": u.path,
        "line": u.line,
        "text": u.text,
        "hosts": list(u.hosts),
    }
