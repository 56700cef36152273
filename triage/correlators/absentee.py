"""The rank that did not complain: collectives time out on those who waited, not on the one they waited for.

Two proofs, each within one process group of one job: a rank that is absent from the list of time-outs, and a rank whose
last enqueued (or started, completed) sequence number is lower than everybody else's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final, NamedTuple

from triage.correlators.base import ABSENT_RANK, Context, Correlation, Suspect
from triage.model import Event, Evidence, Place
from triage.vocabulary import Noise, Role, Strength

TIMEOUT_CLASS = "nccl-timeout"
CLASSES = frozenset(
    {TIMEOUT_CLASS, "straggler", "storage-stall", "dataloader-hang", "rank-crash", "unknown", "file-lock-contention"}
)
EPISODE = timedelta(minutes=30)
SENTINELS = frozenset({-1, 18446744073709551615})
MAX_NAMED = 4
# The tag names the global rank; [Rank n] counts inside a process group and stands in only where lines have no tag.
TAG: Final = re.compile(r"\[rank(\d{1,6})\]:")
GROUP_RANK: Final = re.compile(r"\bRank (\d{1,6})\]")
HEADLINE: Final = "Watchdog caught collective operation timeout"
AFTERMATH: Final = "pytorch-watchdog-aftermath"  # of a time-out or of another error, so it only tips the scales


def correlate(context: Context) -> Correlation:
    """Return suspects among the ranks of every job with collective time-outs."""
    jobs: dict[str | None, list[Event]] = defaultdict(list)
    for event in context.events:
        if event.class_ == TIMEOUT_CLASS and event.place.rank is not None:
            jobs[event.place.job].append(event)
    seen = _seen_ranks(context)
    gave_up: dict[str | None, set[int]] = defaultdict(set)
    for event in context.events:
        if event.signature == AFTERMATH and event.place.rank is not None:
            gave_up[event.place.job].add(event.place.rank)
    suspects: list[Suspect] = []
    derived: list[Event] = []
    for job, events in jobs.items():
        last = _last_episode(events)
        behind = list(_lagging(job, last))
        complained = _complainers(last) - {suspect.place.rank for suspect in behind if suspect.place.rank is not None}
        heard = seen.get(job, set()) | seen.get(None, set())
        known = _Known(heard, complained, gave_up.get(job, set()), context.topology.world.get(job))
        found = [*behind, *_absent(job, last, known)]
        suspects.extend(found)
        derived.extend(_event(suspect, last[0]) for suspect in found[:MAX_NAMED])
    return Correlation(events=tuple(derived), suspects=tuple(suspects))


def _event(suspect: Suspect, timeout: Event) -> Event:
    """Make the finding citable: a confirmation of the time-out that names the rank."""
    return replace(
        timeout,
        id=f"a:{suspect.place.rank}:{timeout.id}",
        signature="rank-left-behind",
        title=suspect.reason,
        role=Role.CONFIRMATION,
        strength=Strength.MODERATE,
        noise=Noise.RARE,
        place=suspect.place,
        lines=suspect.evidence,
        count=1,
        fields={},
        group="rank-left-behind",
        why=suspect.reason,
    )


def _last_episode(events: Sequence[Event]) -> list[Event]:
    times = [e.last.at for e in events if e.last.at is not None]
    if not times:
        return list(events)
    newest = max(times)
    return [e for e in events if e.last.at is None or newest - e.last.at <= EPISODE]


def _seen_ranks(context: Context) -> dict[str | None, set[int]]:
    """Return the ranks that print anything, by job."""
    seen: dict[str | None, set[int]] = defaultdict(set)
    for scan in context.scans:
        facts = context.topology.files[scan.path]
        if facts.rank is not None:
            seen[facts.job].add(facts.rank)
        seen[facts.job].update(p.rank for _, p in scan.samples if p.rank is not None)
    for event in context.events:
        if event.place.rank is not None and event.class_ != TIMEOUT_CLASS:
            seen[event.place.job].add(event.place.rank)
    return seen


def _complains(event: Event) -> bool:
    """Whether this is the headline of a rank's own watchdog (torch before 1.13 and torn lines name no sequence)."""
    return "seq" in event.fields or any(HEADLINE in line.text for line in event.lines)


def _complainers(events: Iterable[Event]) -> set[int]:
    """Return the ranks that say their own watchdog fired, also in a line that another rank's line tore."""
    own = [e for e in events if _complains(e) or "last_enqueued" in e.fields]
    texts = [line.text for event in own for line in event.lines]
    named = (TAG.findall(text) or GROUP_RANK.findall(text) for text in texts)
    return {e.place.rank for e in own if e.place.rank is not None}.union(int(n) for found in named for n in found)


class _Known(NamedTuple):
    """What is known of a job's ranks: who prints at all, whose watchdog fired, who was taken down, how many there are."""

    seen: set[int]
    complained: set[int]
    gave_up: set[int]
    world: int | None


def _absent(job: str | None, events: Sequence[Event], known: _Known) -> Iterable[Suspect]:
    seen, world = known.seen, known.world
    reporters = {rank for e in events if _complains(e) and (rank := e.place.rank) is not None}
    if len(reporters) < 2 and not (reporters and world == 2):
        return
    everyone = (
        set(range(world))
        if world and world <= 65536 and max(reporters) < world
        else seen | set(range(max(reporters) + 1))
    )
    reporters |= known.complained & everyone
    missing = sorted(everyone - reporters)
    if not missing or len(missing) > max(1, len(everyone) // 4):
        return
    missing = [rank for rank in missing if rank not in known.gave_up] or missing
    heard = [rank for rank in missing if rank in seen] or missing
    if len(heard) > MAX_NAMED:
        return
    shown = tuple(e.lines[0] for e in sorted(events, key=lambda e: e.place.rank or 0)[:3])
    for rank in heard:
        others = f"{len(reporters)} of {len(everyone)} ranks report the time-out"
        yield Suspect(Place(job=job, rank=rank), ABSENT_RANK, f"rank {rank} does not: {others}", shown, CLASSES)


def _lagging(job: str | None, events: Sequence[Event]) -> Iterable[Suspect]:
    """Compare sequence numbers inside one process group only."""
    groups: dict[str, dict[int, tuple[int, Evidence]]] = defaultdict(dict)
    for event in events:
        number = _number(event.fields, "last_enqueued")
        if number is not None and event.place.rank is not None:
            groups[str(event.fields.get("pg", ""))][event.place.rank] = (number, event.lines[0])
    for numbers in groups.values():
        values = [number for number, _ in numbers.values()]
        lowest, highest = min(values), max(values)
        behind = sorted(rank for rank, (number, _) in numbers.items() if number == lowest)
        if lowest < highest and len(behind) <= max(1, len(numbers) // 4):
            for rank in behind:
                reason = f"rank {rank} stopped at collective {lowest}, the others at {highest}"
                yield Suspect(Place(job=job, rank=rank), ABSENT_RANK, reason, (numbers[rank][1],), CLASSES)


def _number(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and value not in SENTINELS else None
