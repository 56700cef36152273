"""Events -> pieces of evidence -> hypotheses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain
from operator import itemgetter

from triage.causes import (
    CONSEQUENCE_PRIOR,
    CONSEQUENCES,
    LEAK,
    OPENS_AT,
    SAME_EPISODE_S,
    STANDS_ALONE,
    STRENGTH,
    SYMPTOM_PRIOR,
    Hypothesis,
    Item,
    Span,
)
from triage.gates import LOCAL, PLACED_EVENTS, Gate, Shelf
from triage.model import Event
from triage.vocabulary import UNKNOWN_CLASS, Noise, Origin, Role, Scope

EVIDENCE = frozenset({Role.ROOT, Role.SYMPTOM, Role.CONFIRMATION})
DEGRADATIONS = frozenset({"network-fallback", "straggler", "gpu-thermal"})
MAX_STARTS = 50  # starts of a recurring cause that are each tried against an effect
ALIVE_LEAK, ALIVE_STRENGTH = 0.2, 0.5  # what a line is worth when the job goes on after it
_FAR = datetime.max.replace(tzinfo=timezone.utc)
_ROLE_ORDER = {Role.ROOT: 0, Role.SYMPTOM: 1, Role.CONFIRMATION: 2}

AliveAfter = Callable[[str, int], bool]


def make_items(events: Iterable[Event], alive_after: AliveAfter) -> list[Item]:
    """Collapse events that count as one: same class and group (or signature), same place by scope, same episode."""
    groups: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for event in events:
        if event.role in EVIDENCE:
            groups[_bucket(event)].append(event)
    items: list[Item] = []
    for key, members in groups.items():
        for number, episode in enumerate(_episodes(members)):
            items.append(_item("|".join(map(str, key)) + f"#{number}", episode, alive_after))
    return items


def _bucket(event: Event) -> tuple[object, ...]:
    """Local faults count per host and device; what happens to a job counts once over its ranks."""
    name = event.group or event.signature.partition("/")[0]
    place = event.place
    if event.scope in LOCAL:
        device = (place.pci or place.device or place.gpu) if event.scope is Scope.DEVICE else None
        return (event.class_, name, place.job if place.host is None else None, place.host, device)
    return (event.class_, name, place.job, None, None)


def _episodes(events: Sequence[Event]) -> list[list[Event]]:
    """Cut at gaps of half an hour; undated events join the first episode."""
    if len(events) == 1:
        return [list(events)]
    dated = sorted((e for e in events if e.effective.at is not None), key=lambda e: e.effective.at or datetime.min)
    undated = [e for e in events if e.effective.at is None]
    runs: list[list[Event]] = []
    end: datetime | None = None
    for event in dated:
        start = event.effective.at
        if end is None or start is None or (start - end).total_seconds() > SAME_EPISODE_S:
            runs.append([])
        runs[-1].append(event)
        last = event.last.at or start
        end = last if end is None or (last is not None and last > end) else end
    if not runs:
        return [undated]
    runs[0].extend(undated)
    return runs


def _item(key: str, events: Sequence[Event], alive_after: AliveAfter) -> Item:
    telling = sorted(((_worth(e), e) for e in events), key=itemgetter(0), reverse=True)
    best = min((e for worth, e in telling if worth == telling[0][0]), key=lambda e: _ROLE_ORDER[e.role])
    strength, leak = STRENGTH[best.strength], LEAK[best.noise]
    if _fatal_word(best) and all(alive_after(line.path, line.line) for event in events for line in event.lines[-1:]):
        strength, leak = strength * ALIVE_STRENGTH, max(leak, ALIVE_LEAK)
    role = min((e.role for e in events), key=lambda r: _ROLE_ORDER[r])
    ordered = tuple(e for _, e in telling)
    return Item(key, best.class_, role, strength, leak, ordered, _span(ordered))


def _worth(event: Event) -> float:
    return STRENGTH[event.strength] / LEAK[event.noise]


def _span(events: Sequence[Event]) -> Span:
    dated = [(e.effective.at.timestamp(), e) for e in events if e.effective.at is not None]
    if not dated:
        return Span()
    start = itemgetter(0)
    ends = dated if len(dated) == 1 else (min(dated, key=start), max(dated, key=start))
    return Span(
        tuple((at, e.first.uncertainty_s) for at, e in (dated if len(dated) <= MAX_STARTS else ends)),
        tuple((at, _end(e), e.first.uncertainty_s) for at, e in ends),
    )


def _end(event: Event) -> float:
    return max(t.at for t in (event.effective, event.first, event.last) if t.at is not None).timestamp()


def open_hypotheses(items: Sequence[Item], priors: Mapping[str, float], gate: Gate) -> list[Hypothesis]:
    """Return (class, place) pairs with evidence of their own, and one ``unknown`` per job with symptoms.

    Evidence of one class that can belong to one place and episode opens one hypothesis, by its most telling piece.
    ``priors`` are chances per incident (0..1) by class.
    """
    found: list[Hypothesis] = []
    shelves: dict[str, Shelf] = defaultdict(Shelf)
    for item in sorted(items, key=_telling):
        if item.role is Role.CONFIRMATION or item.strength / item.leak < OPENS_AT:
            continue
        prior = priors.get(item.class_, 0.01)
        if item.role is Role.SYMPTOM and item.class_ not in STANDS_ALONE:
            prior *= CONSEQUENCE_PRIOR if item.class_ in CONSEQUENCES else SYMPTOM_PRIOR
        shelf = shelves[item.class_]
        if not any(gate(found[n], item, None) > 0 for n in _near(item, shelf)):
            shelf.add(len(found), item.events[:1])
            found.append(Hypothesis(f"{item.class_}@{item.key}", item.class_, item, prior))
    jobs: dict[str | None, Item] = {}
    for item in items:
        if item.role is Role.SYMPTOM:
            jobs.setdefault(item.events[0].place.job, item)
    unknown = priors.get(UNKNOWN_CLASS, 0.05)
    found.extend(Hypothesis(f"{UNKNOWN_CLASS}@{job}", UNKNOWN_CLASS, item, unknown) for job, item in jobs.items())
    return found


def _near(item: Item, shelf: Shelf) -> Iterable[int]:
    """Yield the hypotheses that an item may belong to by its places."""
    places = {(e.place.host, e.place.job, e.fields.get("peer_host")): e for e in item.events[:PLACED_EVENTS]}
    ask = shelf.on_host if item.events[0].scope in LOCAL else shelf.in_job
    return chain.from_iterable(ask(event, named=True) for event in places.values())


def _fatal_word(event: Event) -> bool:
    """Say whether an event claims that the job broke, so that progress after it is evidence against it.

    Detectors of series look at the end of the attempt themselves; a degraded job goes on by definition.
    """
    if event.noise is Noise.NEVER or event.signature.startswith("series-") or event.class_ in DEGRADATIONS:
        return False
    return event.origin in (Origin.TRAINING, Origin.GENERIC, Origin.NCCL)


def _telling(item: Item) -> tuple[object, ...]:
    starts = [e.effective.at for e in item.events if e.effective.at is not None]
    return (_ROLE_ORDER[item.role], -item.strength / item.leak, min(starts, default=_FAR), item.key)
