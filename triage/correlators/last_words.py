"""What the job was doing when everybody began to wait: a save that had begun and not ended points at the rank that saves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from triage.correlators.base import ABSENT_RANK, Context, Correlation, Suspect
from triage.model import Event, Place
from triage.vocabulary import Noise, Role, Strength

STARTED, ENDED = "checkpoint-save-started", "checkpoint-saved"
BEFORE_S, AFTER_S = 1800.0, 90.0
CLASSES = frozenset({"nccl-timeout", "storage-stall", "straggler", "unknown"})


def correlate(context: Context) -> Correlation:
    """Return, per job, the unfinished save at the start of a stall and the rank that was saving (0 unless the line says)."""
    derived: list[Event] = []
    suspects: list[Suspect] = []
    jobs = {e.place.job for e in context.events if e.class_ == "nccl-timeout"}
    for job in jobs:
        stalled = [
            e for e in context.events if e.class_ == "nccl-timeout" and e.place.job == job and e.role is Role.SYMPTOM
        ]
        start = min((t for e in stalled if (t := e.effective.at) is not None), default=None)
        save = _unfinished(context.events, job, stalled, start)
        if save is None:
            continue
        rank = save.place.rank if save.place.rank is not None else 0
        if any(e.place.rank == rank and "seq" in e.fields for e in stalled):
            continue  # it waits like the others: the save did not hold it back
        derived.append(_event(save, stalled[0], rank))
        reason = f"rank {rank} had begun to save and does not report the time-out"
        suspects.append(Suspect(Place(job=job, rank=rank), ABSENT_RANK, reason, save.lines[:1], CLASSES))
    return Correlation(events=tuple(derived), suspects=tuple(suspects))


def _unfinished(
    events: Sequence[Event], job: str | None, stalled: Sequence[Event], start: datetime | None
) -> Event | None:
    """Return the last save begun before the stall that did not end before it."""
    saves = [
        e for e in events if e.signature.startswith(STARTED) and e.place.job == job and _just_before(e, stalled, start)
    ]
    if not saves:
        return None
    last = saves[-1]
    return None if any(_ends(e, last) for e in events if e.signature.startswith(ENDED) and e.place.job == job) else last


def _just_before(save: Event, stalled: Iterable[Event], start: datetime | None) -> bool:
    if save.last.at is not None and start is not None:
        return -AFTER_S <= (start - save.last.at).total_seconds() <= BEFORE_S
    return any(e.lines[0].path == save.lines[-1].path and e.lines[0].line > save.lines[-1].line for e in stalled)


def _ends(end: Event, save: Event) -> bool:
    if end.last.at is not None and save.last.at is not None:
        return end.last.at >= save.last.at
    return end.lines[-1].path == save.lines[-1].path and end.lines[-1].line > save.lines[-1].line


def _event(save: Event, timeout: Event, rank: int) -> Event:
    return replace(
        timeout,
        id=f"l:{save.id}",
        signature="save-unfinished-at-stall",
        title="a checkpoint save had begun and not ended when the others began to wait",
        role=Role.CONFIRMATION,
        strength=Strength.STRONG,
        noise=Noise.RARE,
        place=replace(save.place, rank=rank),
        first=save.last,
        last=save.last,
        effective=save.last,
        count=1,
        lines=save.lines[-1:],
        group="save-unfinished-at-stall",
        order=save.lines[-1].line,
        why=f"rank {rank} was saving",
    )
