"""Events for tests, built from what matters to a test and nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path

from triage.hypotheses import make_items
from triage.knowledge import chance
from triage.model import Event, Evidence, Place, Scalar, When
from triage.playbooks import load_playbooks
from triage.ranking import Incident, rank
from triage.signature import Edge
from triage.vocabulary import Level, Noise, Origin, Role, Scope, Strength, TimeBasis

ROOT = Path(__file__).resolve().parent.parent
START = datetime(2026, 3, 1, 2, 0, tzinfo=timezone.utc)
_IDS = count(1)


def at(seconds: float | None, uncertainty_s: float = 0.0) -> When:
    """Return a time ``seconds`` after the start of the story; None for an undated line."""
    if seconds is None:
        return When()
    return When(START + timedelta(seconds=seconds), uncertainty_s, TimeBasis.STAMP)


def event(
    class_: str,
    seconds: float | None = 0.0,
    *,
    role: Role = Role.ROOT,
    strength: Strength = Strength.STRONG,
    noise: Noise = Noise.RARE,
    scope: Scope = Scope.JOB,
    began: float | None = None,
    signature: str | None = None,
    path: str = "train.log",
    line: int | None = None,
    level: Level = Level.HIGH,
    fields: dict[str, Scalar] | None = None,
    **place: str | int | None,
) -> Event:
    """Return an event of a class at a place; ``began`` dates it back like a time-out's span."""
    number = next(_IDS)
    when = at(seconds)
    shown = line if line is not None else number
    return Event(
        id=f"t{number}", signature=signature or f"{class_}-{role.value}", title=f"{class_} seen", class_=class_, role=role, level=level,
        strength=strength, noise=noise, scope=scope, place=Place(**place), first=when, last=when,  # type: ignore[arg-type]
        effective=when if began is None else at(began), count=1, lines=(Evidence(path, shown, f"{class_} line"),), fields=fields or {},
        order=shown, origin=Origin.KERNEL if scope in (Scope.DEVICE, Scope.HOST) else Origin.TRAINING,
    )  # fmt: skip


def knowledge() -> tuple[dict[str, list[Edge]], dict[str, float]]:
    """Return the edges and priors of our playbooks."""
    books = load_playbooks(ROOT / "playbooks").playbooks
    return {n: list(b.explains) for n, b in books.items()}, {n: chance(n, b.prior) for n, b in books.items()}


EDGES, PRIORS = knowledge()


def incidents(*events: Event) -> list[Incident]:
    """Rank events with our playbooks' graph."""
    return rank(make_items(events, lambda _path, _line: False), EDGES, PRIORS, {})


def timeouts(ranks: int, seconds: float = 2400.0, waited: float = 1800.0, *, job: str | None = None) -> list[Event]:
    """Return watchdog time-outs of many ranks, dated back by the time they waited."""
    return [
        event("nccl-timeout", seconds + r * 0.01, began=seconds - waited, role=Role.SYMPTOM, strength=Strength.CONCLUSIVE,
              signature="watchdog-timeout", rank=r, job=job, fields={"seq": 7, "last_enqueued": 7})
        for r in range(ranks)
    ]  # fmt: skip
