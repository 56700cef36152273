"""Events -> pieces of evidence -> hypotheses, and the gates of time and place between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone

from triage.causes import (
    CONSEQUENCE_PRIOR,
    CONSEQUENCES,
    LEAK,
    OPENS_AT,
    STANDS_ALONE,
    STRENGTH,
    SYMPTOM_PRIOR,
    Hypothesis,
    Item,
    Path,
)
from triage.model import Event, Place
from triage.vocabulary import UNKNOWN_CLASS, Noise, Origin, Role, Scope

EVIDENCE = frozenset({Role.ROOT, Role.SYMPTOM, Role.CONFIRMATION})
DEGRADATIONS = frozenset({"network-fallback", "straggler", "gpu-thermal"})
LOCAL = frozenset({Scope.DEVICE, Scope.HOST})
SAME_EPISODE_S = 1800.0
CLOCK_TOLERANCE_S = 5.0
OWN_WINDOW_S = 3600.0
MAX_STARTS = 50  # starts of a recurring cause that are each tried against an effect
LATE_ORDER = 0.5  # an undated effect that stands above its cause in the same file
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
    def worth(event: Event) -> tuple[float, int]:
        return (STRENGTH[event.strength] / LEAK[event.noise], -_ROLE_ORDER[event.role])

    best = max(events, key=worth)
    strength, leak = STRENGTH[best.strength], LEAK[best.noise]
    if _fatal_word(best) and all(alive_after(line.path, line.line) for event in events for line in event.lines[-1:]):
        strength, leak = strength * ALIVE_STRENGTH, max(leak, ALIVE_LEAK)
    role = min((e.role for e in events), key=lambda r: _ROLE_ORDER[r])
    return Item(key, best.class_, role, strength, leak, tuple(sorted(events, key=lambda e: -worth(e)[0])))


def open_hypotheses(items: Sequence[Item], priors: Mapping[str, float], gate: Gate) -> list[Hypothesis]:
    """Return (class, place) pairs with evidence of their own, and one ``unknown`` per job with symptoms.

    Evidence of one class that can belong to one place and episode opens one hypothesis, by its most telling piece.
    ``priors`` are chances per incident (0..1) by class.
    """
    found: list[Hypothesis] = []
    for item in sorted(items, key=_telling):
        if item.role is Role.CONFIRMATION or item.strength / item.leak < OPENS_AT:
            continue
        prior = priors.get(item.class_, 0.01)
        if item.role is Role.SYMPTOM and item.class_ not in STANDS_ALONE:
            prior *= CONSEQUENCE_PRIOR if item.class_ in CONSEQUENCES else SYMPTOM_PRIOR
        same = (h for h in found if h.class_ == item.class_)
        if not any(gate(h, item, None) > 0 for h in same):
            found.append(Hypothesis(f"{item.class_}@{item.key}", item.class_, item, prior))
    jobs: dict[str | None, Item] = {}
    for item in items:
        if item.role is Role.SYMPTOM:
            jobs.setdefault(item.events[0].place.job, item)
    unknown = priors.get(UNKNOWN_CLASS, 0.05)
    found.extend(Hypothesis(f"{UNKNOWN_CLASS}@{job}", UNKNOWN_CLASS, item, unknown) for job, item in jobs.items())
    return found


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


class Gate:
    """Time and place between a hypothesis and a piece of evidence: 0 forbids, 1 allows.

    ``linked`` are (cause event, effect event) ids that a correlator tied together.
    """

    def __init__(self, job_hosts: Mapping[str, set[str]], linked: Collection[tuple[str, str]] = ()) -> None:
        self._job_hosts = job_hosts
        self._linked = frozenset(linked)

    def __call__(self, hypothesis: Hypothesis, item: Item, edge: Path | None) -> float:
        """Return 0..1; ``edge`` None asks about evidence of the hypothesis' own class."""
        opener = hypothesis.opener
        if opener is None or opener is item or (edge is not None and self._is_linked(opener, item)):
            return 1.0
        scope = item.events[0].scope if edge is None else edge.scope
        cause = opener.events[0]
        if not any(
            self._near(cause.place, e.place, scope) or (edge is None and _names(e, cause)) for e in item.events[:20]
        ):
            return 0.0
        window = (-OWN_WINDOW_S, OWN_WINDOW_S) if edge is None else edge.lag_s
        if not _in_time(opener, item, window):
            return 0.0
        return LATE_ORDER if edge is not None and _above(item, opener) else 1.0

    def _is_linked(self, cause: Item, effect: Item) -> bool:
        """Say whether a correlator tied the two together: it knows more of time and place than a lag window."""
        return bool(self._linked) and any((c.id, e.id) in self._linked for c in cause.events for e in effect.events)

    def _near(self, cause: Place, effect: Place, scope: Scope) -> bool:
        if scope is Scope.DEVICE and _differ(cause.pci, effect.pci):
            return False
        if scope in LOCAL and _differ(cause.host, effect.host):
            return False
        if scope is Scope.RACK and _differ(cause.rack, effect.rack):
            return False
        if scope is Scope.CLUSTER:
            return True
        if _differ(cause.job, effect.job) and not (cause.host and cause.host == effect.host):
            return False
        return scope in LOCAL or (self._serves(cause, effect) and self._serves(effect, cause))

    def _serves(self, one: Place, other: Place) -> bool:
        """Say whether a host can belong to the other's job, as far as anything is known of the job's hosts."""
        known = self._job_hosts.get(other.job) if other.job else None
        return not known or one.host is None or one.host in known or one.job == other.job


def _names(event: Event, cause: Event) -> bool:
    """Say whether one of the two names the other's host as its peer: both ends of one transfer."""
    hosts = (cause.place.host, event.place.host)
    return None not in hosts and (
        event.fields.get("peer_host") == hosts[0] or cause.fields.get("peer_host") == hosts[1]
    )


def _differ(a: object, b: object) -> bool:
    return a is not None and b is not None and a != b


def _in_time(cause: Item, effect: Item, window: tuple[float, float]) -> bool:
    """Say whether some cause event and some effect event lie within the window, with their uncertainties."""
    starts = [e for e in cause.events if e.effective.at is not None]
    ends = [e for e in effect.events if e.effective.at is not None]
    if not starts or not ends:
        return True
    for begun in starts if len(starts) <= MAX_STARTS else (min(starts, key=_start), max(starts, key=_start)):
        for seen in (min(ends, key=_start), max(ends, key=_start)):
            slack = CLOCK_TOLERANCE_S + begun.first.uncertainty_s + seen.first.uncertainty_s
            begins = _start(begun).timestamp()
            # An effect spans from when the stuck thing began to when it was reported.
            if _start(seen).timestamp() - begins <= window[1] + slack and _end(seen) - begins >= window[0] - slack:
                return True
    return False


def _start(event: Event) -> datetime:
    assert event.effective.at is not None  # noqa: S101 - callers filter undated events
    return event.effective.at


def _end(event: Event) -> float:
    return max(t.at.timestamp() for t in (event.effective, event.first, event.last) if t.at is not None)


def _above(effect: Item, cause: Item) -> bool:
    """Say whether an undated effect stands wholly above its cause in one file."""
    if any(e.first.at is not None for e in (*effect.events, *cause.events)):
        return False
    above = [(a.lines[0].path, a.lines[-1].line) for a in effect.events]
    below = {c.lines[0].path: c.lines[0].line for c in cause.events}
    return all(path in below and line < below[path] for path, line in above)
