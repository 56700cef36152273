"""Accepted roots -> incidents with confidence, the evidence that carries them, their symptoms and their rivals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from triage.causes import (
    LEAK,
    SAME_EPISODE_S,
    STRENGTH,
    Hypothesis,
    Item,
    log_odds,
    paths,
)
from triage.gates import Gate
from triage.hypotheses import open_hypotheses
from triage.model import Event
from triage.network import Cover, Network, accept, connect, gain, likelier, rivals, share
from triage.report import MAX_EVIDENCE, Cited, Reason
from triage.signature import Edge
from triage.vocabulary import UNKNOWN_CLASS, Level, Role

TEMPERATURE = 2.0  # evidence is never as independent as the network assumes
OWN_LINES = 9
SAME_SIGNATURE = 5  # lines of one signature before others get their turn


@dataclass(frozen=True, slots=True)
class Rival:
    """Another explanation of an incident; ``class_`` None stands for no incident."""

    class_: str | None
    variant: str | None
    probability: float
    events: tuple[Event, ...]
    why_not: str


@dataclass(frozen=True, slots=True)
class Incident:
    """One accepted root with what it explains. ``probability`` is the posterior among its rivals, uncalibrated."""

    class_: str
    root: Item | None
    own: tuple[Event, ...]
    symptoms: Mapping[str, tuple[Event, ...]]
    probability: float
    rivals: tuple[Rival, ...]
    reasons: tuple[Reason, ...]
    level: Level
    start: datetime | None

    @property
    def events(self) -> tuple[Event, ...]:
        """All events of the incident: its own first."""
        return (*self.own, *(e for events in self.symptoms.values() for e in events))


def rank(
    items: Sequence[Item],
    edges: Mapping[str, Sequence[Edge]],
    priors: Mapping[str, float],
    job_hosts: Mapping[str, set[str]],
    keep: Callable[[Sequence[Event]], bool] = lambda _events: True,
    linked: Collection[tuple[str, str]] = (),
) -> list[Incident]:
    """Return the incidents, best first by (level, confidence, start); "unknown" stands behind every named cause.

    ``edges`` by cause class, ``priors`` as chances by class. ``keep`` may refuse an incident (e.g. one of an earlier attempt).
    """
    gate = Gate(job_hosts, linked)
    network = connect(items, open_hypotheses(items, priors, gate), paths(edges), gate)
    roots = accept(network)
    owned = share(network, roots)
    cover = Cover(network, roots)
    incidents = [
        _incident(network, roots, root, owned[root.key], cover.without(root)) for root in roots if owned[root.key]
    ]
    incidents = [incident for incident in _by_server(incidents) if keep(incident.events)]
    far = datetime.max.replace(tzinfo=timezone.utc)
    return sorted(
        incidents, key=lambda i: (i.class_ == UNKNOWN_CLASS, -i.level.order, -round(i.probability, 6), i.start or far)
    )


def _by_server(incidents: Sequence[Incident]) -> list[Incident]:
    """Join what several hosts say of one server at one time: one outage, seen by each of its clients.

    The host that speaks most surely, then first, stands for all.
    """
    far = datetime.max.replace(tzinfo=timezone.utc)
    out: list[Incident] = []
    heads: dict[tuple[str, str], list[int]] = defaultdict(list)
    for incident in sorted(incidents, key=lambda i: (-round(i.probability, 6), i.start or far)):
        server = incident.root.events[0].place.server if incident.root else None
        found = next((at for at in heads[incident.class_, server or ""] if _together(out[at], incident)), None)
        if server is None or found is None:
            heads[incident.class_, server or ""].append(len(out))
            out.append(incident)
        else:
            out[found] = _join(out[found], incident)
    return out


def _together(one: Incident, other: Incident) -> bool:
    if one.start is None or other.start is None:
        return one.start is other.start
    return abs((one.start - other.start).total_seconds()) <= SAME_EPISODE_S


def _join(head: Incident, other: Incident) -> Incident:
    symptoms = {
        name: (*head.symptoms.get(name, ()), *other.symptoms.get(name, ()))
        for name in (*head.symptoms, *other.symptoms)
    }
    starts = [start for start in (head.start, other.start) if start is not None]
    return replace(head, own=(*head.own, *other.own), symptoms=symptoms, start=min(starts, default=None))


def _incident(
    network: Network, roots: Sequence[Hypothesis], root: Hypothesis, owned: Sequence[int], misses: Sequence[float]
) -> Incident:
    """Describe a root. ``misses``: for every item the chance that neither chance nor another root produces it."""
    mine = [network.items[i] for i in owned]
    own_items = sorted((i for i in mine if i.class_ == root.class_), key=_worth, reverse=True)
    own = [event for item in own_items for event in item.events]
    symptoms: dict[str, list[Event]] = defaultdict(list)
    for item in mine:
        if item.class_ != root.class_:
            symptoms[item.class_].extend(item.events)
    if not own and root.class_ == UNKNOWN_CLASS:
        own, symptoms = [e for item in mine for e in item.events], defaultdict(list)
    ranked = rivals(network, misses, roots, root, TEMPERATURE)
    probability = next(p for h, p in ranked if h is root)
    times = [e.effective.at for e in own or [e for v in symptoms.values() for e in v] if e.effective.at]
    return Incident(
        class_=root.class_,
        root=root.opener,
        own=tuple(sorted(own, key=_decisive)),
        symptoms={name: tuple(sorted(events, key=_decisive)) for name, events in symptoms.items()},
        probability=probability,
        rivals=tuple(_rivals(network, root, ranked, misses)),
        reasons=tuple(_reasons(network, root, misses)),
        level=max(
            (e.level for e in own or [e for v in symptoms.values() for e in v]),
            key=lambda level: level.order,
            default=Level.MEDIUM,
        ),
        start=min(times, default=None),
    )


def _worth(item: Item) -> float:
    return item.strength / item.leak


def _decisive(event: Event) -> tuple[object, ...]:
    """Sort key: roots before confirmations, telling lines before common ones, early before late."""
    order = {Role.ROOT: 0, Role.SYMPTOM: 1, Role.CONFIRMATION: 1}.get(event.role, 2)
    far = datetime.max.replace(tzinfo=timezone.utc)
    return (
        order,
        -STRENGTH[event.strength] / LEAK[event.noise],
        event.first.at or far,
        event.lines[0].path,
        event.order,
    )


def _rivals(
    network: Network,
    root: Hypothesis,
    ranked: Sequence[tuple[Hypothesis | None, float]],
    misses: Sequence[float],
) -> list[Rival]:
    """One rival per class, with what speaks against it."""
    best = gain(network, misses, root)
    out: dict[str | None, Rival] = {}
    for hypothesis, probability in ranked:
        if hypothesis is root or (hypothesis is not None and hypothesis.class_ == root.class_):
            continue
        name = hypothesis.class_ if hypothesis else None
        if name in out:
            old = out[name]
            out[name] = Rival(name, old.variant, old.probability + probability, old.events, old.why_not)
            continue
        events = tuple(sorted(hypothesis.opener.events, key=_decisive)) if hypothesis and hypothesis.opener else ()
        out[name] = Rival(
            name,
            events[0].variant if events else None,
            probability,
            events,
            _why_not(network, root, hypothesis, best, misses),
        )
    return list(out.values())


def _why_not(network: Network, root: Hypothesis, rival: Hypothesis | None, best: float, misses: Sequence[float]) -> str:
    if rival is None:
        return f"the evidence is {_times(best)} likelier with a cause than by chance"
    theirs, ours = network.weights[rival.key], network.weights[root.key]
    behind = best - gain(network, misses, rival)
    unexplained = [
        i for i, w in ours.items() if w > network.items[i].leak and theirs.get(i, 0.0) <= network.items[i].leak
    ]
    if unexplained:
        worst = max(unexplained, key=lambda i: _worth(network.items[i]))
        return f"does not explain \u201c{network.items[worst].events[0].title}\u201d ({_times(behind)} less likely)"
    if (
        rival.opener is not None
        and rival.opener is not root.opener
        and network.weights[root.key].get(_index(network, rival.opener), 0) > 0
    ):
        return f"is itself explained by {root.class_} ({_times(behind)} less likely)"
    return f"{_times(behind)} less likely"


def _index(network: Network, item: Item) -> int:
    return next(i for i, other in enumerate(network.items) if other is item)


def _times(nats: float) -> str:
    factor = math.exp(min(abs(nats) / TEMPERATURE, 25))
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.1f} times"


def _reasons(network: Network, root: Hypothesis, misses: Sequence[float]) -> list[Reason]:
    """The arithmetic: the prior, then each piece of evidence with its factor, strongest first."""
    reasons = [Reason(f"prior of {root.class_}: {root.prior:.1%} of interruptions", log_odds(root.prior))]
    parts = []
    for index, weight in network.weights[root.key].items():
        item = network.items[index]
        factor = math.log(likelier(network, misses, index, weight))
        verb = "speaks for it" if item.class_ == root.class_ else f"{item.class_} explained by it"
        count = sum(e.count for e in item.events)
        where = f"{item.events[0].lines[0].path}:{item.events[0].lines[0].line}"
        parts.append(
            Reason(f"{item.events[0].title} ({where}{f', {count} times' if count > 1 else ''}): {verb}", factor)
        )
    return [*reasons, *sorted(parts, key=lambda r: -r.weight)]


def cite(incident: Incident) -> tuple[tuple[Cited, ...], tuple[tuple[str, tuple[Cited, ...]], ...]]:
    """Return (decisive evidence, at most twelve lines; symptoms by class with at most four lines each)."""
    evidence: list[Cited] = []
    seen: set[tuple[str, int]] = set()

    def add(event: Event, position: int, limit: int) -> None:
        if len(evidence) >= limit or position >= len(event.lines):
            return
        line = event.lines[position]
        if (line.path, line.line) not in seen:
            seen.add((line.path, line.line))
            evidence.append(Cited(event, line))

    shown: dict[str, int] = defaultdict(int)
    for event in incident.own:
        if shown[event.signature] < SAME_SIGNATURE:
            shown[event.signature] += 1
            add(event, 0, OWN_LINES)
    for position in (1, 2):
        for event in incident.own:
            add(event, position, OWN_LINES)
    for events in incident.symptoms.values():
        add(events[0], 0, MAX_EVIDENCE)
    symptoms = tuple(
        (name, tuple(Cited(e, e.lines[0]) for e in events[:4])) for name, events in sorted(incident.symptoms.items())
    )
    return tuple(evidence), symptoms
