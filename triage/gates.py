"""The gates of time and place between a hypothesis and a piece of evidence, and the index that asks few of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from triage.causes import Hypothesis, Item, Path
from triage.model import Event, Place
from triage.vocabulary import Scope

LOCAL: Final = frozenset({Scope.DEVICE, Scope.HOST})
CLOCK_TOLERANCE_S = 5.0
OWN_WINDOW_S = 3600.0
LATE_ORDER = 0.5  # an undated effect that stands above its cause in the same file
PLACED_EVENTS = 20  # events of an item whose places are compared

Allows = Callable[[Hypothesis, Item, "Path | None"], float]
"""Returns 0..1: how far time and place let a hypothesis produce an item over a path (None: as evidence of its own)."""


class Gate:
    """Time and place between a hypothesis and a piece of evidence: 0 forbids, 1 allows.

    ``linked`` are (cause event, effect event) ids that a correlator tied together.
    """

    def __init__(self, job_hosts: Mapping[str, set[str]], linked: Collection[tuple[str, str]] = ()) -> None:
        self._job_hosts = job_hosts
        self._effects: dict[str, set[str]] = defaultdict(set)
        for cause, effect in linked:
            self._effects[cause].add(effect)

    def __call__(self, hypothesis: Hypothesis, item: Item, edge: Path | None) -> float:
        """Return 0..1; ``edge`` None asks about evidence of the hypothesis' own class."""
        opener = hypothesis.opener
        if opener is None or opener is item or (edge is not None and self._is_linked(opener, item)):
            return 1.0
        if not _in_time(opener, item, (-OWN_WINDOW_S, OWN_WINDOW_S) if edge is None else edge.lag_s):
            return 0.0
        scope = item.events[0].scope if edge is None else edge.scope
        cause = opener.events[0]
        for event in item.events[:PLACED_EVENTS]:
            if self._near(cause.place, event.place, scope) or (edge is None and _names(event, cause)):
                break
        else:
            return 0.0
        return LATE_ORDER if edge is not None and _above(item, opener) else 1.0

    def links(self, opener: Item) -> bool:
        """Say whether a correlator tied anything to the events of an item."""
        return bool(self._effects) and any(event.id in self._effects for event in opener.events)

    def _is_linked(self, cause: Item, effect: Item) -> bool:
        """Say whether a correlator tied the two together: it knows more of time and place than a lag window."""
        if not self.links(cause):
            return False
        found = set().union(*(self._effects.get(event.id, ()) for event in cause.events))
        return any(event.id in found for event in effect.events)

    def _near(self, cause: Place, effect: Place, scope: Scope) -> bool:
        if scope is Scope.DEVICE and _differ(cause.pci, effect.pci):
            return False
        local = scope is Scope.DEVICE or scope is Scope.HOST
        if local and _differ(cause.host, effect.host):
            return False
        if scope is Scope.RACK and _differ(cause.rack, effect.rack):
            return False
        if scope is Scope.CLUSTER:
            return True
        if _differ(cause.job, effect.job) and not (cause.host and cause.host == effect.host):
            return False
        return local or (self._serves(cause, effect) and self._serves(effect, cause))

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
    begins, seen = cause.span.begins, effect.span.seen
    if not begins or not seen:
        return True
    for begun, unsure in begins:
        for start, end, vague in seen:
            slack = CLOCK_TOLERANCE_S + unsure + vague
            # An effect spans from when the stuck thing began to when it was reported.
            if start - begun <= window[1] + slack and end - begun >= window[0] - slack:
                return True
    return False


def _above(effect: Item, cause: Item) -> bool:
    """Say whether an undated effect stands wholly above its cause in one file."""
    if any(e.first.at is not None for e in chain(effect.events, cause.events)):
        return False
    above = [(a.lines[0].path, a.lines[-1].line) for a in effect.events]
    below = {c.lines[0].path: c.lines[0].line for c in cause.events}
    return all(path in below and line < below[path] for path, line in above)


class Shelf:
    """Numbered items by host and job: of thousands at as many places, only those are asked that can be near.

    What is left out, a :class:`Gate` would refuse by its place; what is offered, it still has to allow.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._host: dict[str | None, list[int]] = defaultdict(list)
        self._job: dict[str | None, list[int]] = defaultdict(list)
        self._peer: dict[object, list[int]] = defaultdict(list)

    def add(self, number: int, events: Iterable[Event]) -> None:
        """Put an item on the shelf; numbers come in rising order."""
        self.numbers.append(number)
        for event in events:
            for place, key in ((self._host, event.place.host), (self._job, event.place.job)):
                if not place[key] or place[key][-1] != number:
                    place[key].append(number)
            if (peer := event.fields.get("peer_host")) is not None:
                self._peer[peer].append(number)

    def on_host(self, cause: Event, *, named: bool = False) -> Sequence[int]:
        """Return the numbers, rising, that may share the host of ``cause``; ``named`` adds both ends of a transfer."""
        host = cause.place.host
        if host is None or not self.numbers:
            return self.numbers
        found = [self._host.get(host, ()), self._host.get(None, ())]
        return _union(found + self._ends(cause) if named else found)

    def in_job(self, cause: Event, *, named: bool = False) -> Sequence[int]:
        """Return the numbers, rising, that may share the job of ``cause``, or its host."""
        job, host = cause.place.job, cause.place.host
        if job is None or not self.numbers:
            return self.numbers
        found = [self._job.get(job, ()), self._job.get(None, ()), self._host.get(host, ()) if host else ()]
        return _union(found + self._ends(cause) if named else found)

    def _ends(self, cause: Event) -> list[Sequence[int]]:
        peer = cause.fields.get("peer_host")
        return [self._peer.get(cause.place.host, ()), self._host.get(peer, ()) if isinstance(peer, str) else ()]


def _union(lists: Sequence[Sequence[int]]) -> Sequence[int]:
    filled = [numbers for numbers in lists if numbers]
    return sorted(set().union(*filled)) if len(filled) > 1 else filled[0] if filled else ()
